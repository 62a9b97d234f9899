# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Files that appear whole, with their final mode from the first moment on."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def write(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Write beside the file and rename, so that a reader sees the old content or the new."""
    folder(path.parent)
    beside = path.with_name(f".{path.name}.new")
    beside.unlink(missing_ok=True)
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
        os.fchmod(descriptor, mode)
    beside.rename(path)


def write_json(path: Path, document: dict[str, Any], mode: int = 0o600) -> None:
    """A JSON document, which the Kubernetes components read as YAML."""
    write(path, json.dumps(document, indent=2) + "\n", mode)


def folder(path: Path, mode: int | None = None) -> Path:
    """Make the folder and its parents where missing; a mode is set each time when given."""
    path.mkdir(parents=True, exist_ok=True)
    if mode is not None:
        path.chmod(mode)
    return path


def kubeconfig(server: str, ca_pem: bytes, user: dict[str, str]) -> dict[str, Any]:
    """A kubeconfig with one context called `default`, as k3s writes it."""
    import base64

    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "default",
                "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca_pem).decode()},
            }
        ],
        "users": [{"name": "default", "user": user}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
        "preferences": {},
    }
