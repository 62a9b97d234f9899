# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The k3s that the lab's nodes get: the stand-in, or a real one.

LAB_K3S=/path/to/k3s        takes this binary; LAB_K3S_AIRGAP=/path/to/k3s-airgap-images-amd64.tar[.zst|.gz] its images
LAB_K3S=v1.31.4+k3s1        downloads this release (outside of the lab's namespaces, checked against its sha256 list)
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .build import LAB
from .shell import LabError, output, run

RELEASES = "https://github.com/k3s-io/k3s/releases/download"
AIRGAP = "k3s-airgap-images-amd64.tar"
AIRGAP_SUFFIXES = (".zst", ".gz", "")
VERSION = re.compile(r"v\d+\.\d+\.\d+(?:[+-][0-9A-Za-z.+-]+)?")


@dataclass(frozen=True)
class K3s:
    """What stands in .lab/k3s."""

    version: str
    binary: Path
    airgap: Path

    @property
    def stand_in(self) -> bool:
        """Whether it says of itself that it is a test double."""
        return "stand-in" in output(self.binary, "--version")


def up(directory: Path, cache: Path, images: Path, environment: Mapping[str, str] = os.environ) -> K3s:
    """Put k3s and its air-gap archive into the directory; `images` holds the lab's own air-gap archive."""
    directory.mkdir(parents=True, exist_ok=True)
    choice = environment.get("LAB_K3S", "")
    airgap = Path(environment.get("LAB_K3S_AIRGAP") or images / AIRGAP)
    if not choice:
        run(LAB / "k3s" / "build", directory / "k3s")
    else:
        if VERSION.fullmatch(choice):
            source, downloaded = download(choice, cache)
            airgap = Path(environment.get("LAB_K3S_AIRGAP") or downloaded)
        else:
            source = Path(choice)
        _place(source, directory / "k3s", 0o755)
    for suffix in AIRGAP_SUFFIXES:
        if not airgap.name.endswith(suffix):
            continue
        name = AIRGAP + suffix
        break
    for other in directory.glob(f"{AIRGAP}*"):
        if other.name != name:
            other.unlink()
    _place(airgap, directory / name, 0o644)
    return K3s(version_of(output(directory / "k3s", "--version")), directory / "k3s", directory / name)


def version_of(text: str) -> str:
    """The version in what `k3s --version` prints: "k3s version v1.31.4+k3s1 (a562d090)"."""
    found = VERSION.search(text)
    if not text.startswith("k3s version ") or not found:
        raise LabError(f"LAB_K3S: `k3s --version` answers {text.strip()!r}, which is not k3s's answer")
    return found.group()


def sha256(path: Path) -> str:
    """The file's SHA-256, in hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def download(version: str, cache: Path, releases: str = RELEASES) -> tuple[Path, Path]:
    """(binary, air-gap archive) of a release, kept in the cache."""
    directory = cache / f"k3s-{version}"
    names = ("k3s", f"{AIRGAP}.zst")
    if not directory.is_dir():
        base = f"{releases}/{version.replace('+', '%2B')}"
        partial = directory.with_name(f"{directory.name}.{os.getpid()}.partial")
        partial.mkdir(parents=True)
        try:
            sums = dict(reversed(line.split()) for line in _fetch(f"{base}/sha256sum-amd64.txt").decode().splitlines())
            for name in names:
                content = _fetch(f"{base}/{name}")
                if hashlib.sha256(content).hexdigest() != sums.get(name):
                    raise LabError(f"{base}/{name}: its SHA-256 is not the one in sha256sum-amd64.txt")
                (partial / name).write_bytes(content)
            partial.rename(directory)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return directory / names[0], directory / names[1]


def _fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise LabError(
            f"LAB_K3S: cannot download {url}: {error}. Give a binary instead (LAB_K3S=/path/to/k3s), or leave it out for the stand-in"
        ) from error


def _place(source: Path, target: Path, mode: int) -> None:
    """Copy beside and rename; a file of the same content is left alone."""
    if not source.is_file():
        raise LabError(f"{source}: no such file (LAB_K3S, LAB_K3S_AIRGAP)")
    if target.exists() and target.stat().st_size == source.stat().st_size and sha256(target) == sha256(source):
        return
    beside = target.with_name(f".{target.name}.new")
    shutil.copyfile(source, beside)
    beside.chmod(mode)
    beside.replace(target)
