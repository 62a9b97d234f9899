# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster's certificates, made with openssl in `$D/server/tls` under the names that k3s gives them."""

from __future__ import annotations

import ipaddress
import subprocess
from collections.abc import Iterable
from pathlib import Path

from . import files

_DAYS = "3650"
_CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def subject_alt_names(names: Iterable[str]) -> str:
    """The names and addresses as openssl writes them, each once and in the order given."""
    return ",".join(f"{'IP' if _is_address(name) else 'DNS'}:{name}" for name in dict.fromkeys(names))


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Authority:
    """A CA of the cluster: made once, kept for ever (its hash is in every join token)."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder, name
        self.certificate, self.key = folder / f"{name}.crt", folder / f"{name}.key"
        if not self.certificate.exists():
            self._make()

    @property
    def pem(self) -> bytes:
        """The certificate as it is on disk."""
        return self.certificate.read_bytes()

    def _make(self) -> None:
        key, certificate = self.key.with_suffix(".key.new"), self.certificate.with_suffix(".crt.new")
        settings = self.folder / f".{self.name}.cnf"
        extensions = "basicConstraints=critical,CA:TRUE\nkeyUsage=critical,digitalSignature,keyEncipherment,keyCertSign\nsubjectKeyIdentifier=hash\n"
        files.write(settings, f"[req]\ndistinguished_name=dn\nx509_extensions=v3\n[dn]\n[v3]\n{extensions}")
        _openssl(
            "req",
            "-x509",
            *_CURVE,
            "-days",
            _DAYS,
            "-subj",
            f"/CN=k3s-{self.name}",
            "-config",
            settings,
            "-keyout",
            key,
            "-out",
            certificate,
        )
        settings.unlink()
        key.rename(self.key)
        certificate.rename(self.certificate)

    def issue(self, name: str, subject: str, usage: str, alternative_names: str = "") -> tuple[Path, Path]:
        """A new certificate and key for the subject; anew at each start, so that its names are those of today."""
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        request, extensions = self.folder / f".{name}.csr", self.folder / f".{name}.ext"
        lines = [
            "basicConstraints=critical,CA:FALSE",
            "keyUsage=critical,digitalSignature,keyEncipherment",
            f"extendedKeyUsage={usage}",
        ]
        if alternative_names:
            lines.append(f"subjectAltName={alternative_names}")
        files.write(extensions, "\n".join(lines) + "\n")
        _openssl("req", "-new", *_CURVE, "-subj", subject, "-keyout", key, "-out", request)
        sign = ("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial")
        _openssl(*sign, "-days", _DAYS, "-extfile", extensions, "-out", certificate)
        request.unlink()
        extensions.unlink()
        return certificate, key


def service_account_key(folder: Path) -> Path:
    """The key that signs service account tokens, made once."""
    key = folder / "service.key"
    if not key.exists():
        beside = folder / ".service.key.new"
        _openssl("ecparam", "-genkey", "-name", "prime256v1", "-noout", "-out", beside)
        beside.rename(key)
    return key


def _openssl(*arguments: str | Path) -> None:
    # The service's umask is 077: no key is ever readable by others.
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"openssl {arguments[0]}: {done.stderr.strip()}")
