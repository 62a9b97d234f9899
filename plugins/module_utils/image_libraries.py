# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The libraries that RDMA in a container would load, found in its image: libibverbs, the driver's provider, the C library."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import posixpath
import re
from typing import Any, Callable, ContextManager, Dict, Iterable, List, Optional

from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Containerd
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_layers import MOST_BYTES, Tree, read
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference
from ansible_collections.infera.baremetal.plugins.module_utils.oci_archive import (
    MAX_DOCUMENT,
    OciArchive,
)
from ansible_collections.infera.baremetal.plugins.module_utils.verbs_abi import DRIVER_FOLDERS, FOLDERS

PLATFORM = "linux/amd64"
_LIBC = ("libc.so.6", re.compile(r"libc-2\.\d+\.so"))
_GLIBC = re.compile(rb"\bGLIBC_(\d+)\.(\d+)\0")
#: Opens a blob by its digest, in pieces.
Open = Callable[[str], ContextManager[Iterable[bytes]]]


def of_archive(path: str, reference: ImageReference, driver: str, where: str = "") -> Dict[str, Any]:
    """What C(libraries) says of an image in an OCI archive. Raises FindingError."""
    with contextlib.closing(OciArchive(path, where or path)) as archive:
        image = archive.image(reference)
        blobs = {blob.digest: blob for blob in image.blobs}
        return _of(
            reference, driver, lambda digest: contextlib.nullcontext(archive.pieces(blobs[digest])), where or path
        )


def of_containerd(
    store: Containerd, reference: ImageReference, driver: str, where: str = ""
) -> Optional[Dict[str, Any]]:
    """What C(libraries) says of an image in containerd; None where the store does not hold it. Raises FindingError."""
    images = [image for image in store.images() if image.digest == reference.digest]
    if not images:
        return None
    return _of(reference, driver, store.content, where)


def _of(reference: ImageReference, driver: str, open_blob: Open, where: str) -> Dict[str, Any]:
    layers = [_opener(open_blob, digest) for digest in _layers(reference.digest, open_blob, where)]
    tree = read(layers, lambda path: _is_wanted(path, driver), where)
    return {"digest": reference.digest, "driver": driver, **libraries(tree, driver)}


def _opener(open_blob: Open, digest: str) -> Callable[[], ContextManager[Iterable[bytes]]]:
    return lambda: open_blob(digest)


def libraries(tree: Tree, driver: str) -> Dict[str, Any]:
    """C(libibverbs) and C(providers) as verbs_abi's C(library) gives them, C(driver_files), and C(glibc) (such as C(2.39); empty if none).

    C(providers) begins with C(lib<driver>.so.1), over which a container's start-up copies the host's; after it the names by which libibverbs
    looks for it.
    """
    places = [(folder, f"lib{driver}.so.1") for folder in FOLDERS]
    for folder in FOLDERS:
        names = [name for name in tree.names(f"{folder}/libibverbs") if _suffix(name, driver)]
        places += [(f"{folder}/libibverbs", name) for name in names]
    found = [_library(tree, *place) for place in places]
    verbs = [_library(tree, folder, "libibverbs.so.1") for folder in FOLDERS]
    return {
        "libibverbs": next((library for library in verbs if library), None),
        "providers": [library for library in found if library],
        "driver_files": _driver_files(tree, driver),
        "glibc": _glibc(tree),
    }


def _library(tree: Tree, folder: str, name: str) -> Optional[Dict[str, Any]]:
    path = f"{folder}/{name}"
    real, file = tree.find(path)
    if file is None:
        if name not in tree.names(folder):
            return None
        return {"path": path, "real_path": real, "error": f"leads to {real}, which the image does not have"}
    if file.content is None:
        return {
            "path": path,
            "real_path": real,
            "error": f"is larger than {MOST_BYTES >> 20} MiB, so it is no such library",
        }
    return {
        "path": path,
        "real_path": real,
        "sha256": hashlib.sha256(file.content).hexdigest(),
        "content": base64.b64encode(file.content).decode("ascii"),
    }


def _is_wanted(path: str, driver: str) -> bool:
    folder, _slash, name = path.rpartition("/")
    if name.endswith(".driver"):
        return posixpath.basename(folder) == "libibverbs.d"
    return (
        name.startswith((f"lib{driver}.so", "libibverbs.so.1"))
        or bool(_suffix(name, driver))
        or name == _LIBC[0]
        or bool(_LIBC[1].fullmatch(name))
    )


def _suffix(name: str, driver: str) -> str:
    """The NN of C(lib<driver>-rdmavNN.so)."""
    match = re.fullmatch(rf"lib{re.escape(driver)}-rdmav(\d+)\.so", name)
    return match[1] if match else ""


def _driver_files(tree: Tree, driver: str) -> List[str]:
    found = []
    for folder in DRIVER_FOLDERS:
        for name in tree.names(folder):
            _real, file = tree.find(f"{folder}/{name}")
            lines = (file.content or b"").split(b"\n") if file else []
            if name.endswith(".driver") and [b"driver", driver.encode()] in [line.split()[:2] for line in lines]:
                found.append(f"{folder}/{name}")
    return found


def _glibc(tree: Tree) -> str:
    """The highest version that the C library has: its names stand in it as text, whether it defines or needs them."""
    for folder in ("/lib/x86_64-linux-gnu", "/lib64", "/lib", *FOLDERS):
        _real, file = tree.find(f"{folder}/{_LIBC[0]}")
        versions = [(int(major), int(minor)) for major, minor in _GLIBC.findall((file and file.content) or b"")]
        if versions:
            return "{}.{}".format(*max(versions))
    return ""


def _layers(digest: str, open_blob: Open, where: str) -> List[str]:
    """Digests of the layers, the lowest first, of the image for PLATFORM."""
    document = _document(digest, open_blob, where)
    if "manifests" in document:
        entries = [entry for entry in document["manifests"] if _platform(entry) == PLATFORM]
        if not entries:
            raise FindingError(_no_platform(digest, where))
        document = _document(str(entries[0].get("digest")), open_blob, where)
    layers = document.get("layers")
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        raise FindingError(_unreadable(digest, "its manifest has no layers", where))
    return [str(layer.get("digest")) for layer in layers]


def _document(digest: str, open_blob: Open, where: str) -> Dict[str, Any]:
    try:
        with open_blob(digest) as pieces:
            text = b""
            for piece in pieces:
                text += piece
                if len(text) > MAX_DOCUMENT:
                    raise ValueError("a manifest of that size is none")
        document = json.loads(text)
        if not isinstance(document, dict):
            raise ValueError("it is no JSON object")
        return document
    except (OSError, ValueError, RecursionError) as error:
        raise FindingError(_unreadable(digest, " ".join(str(error).split()), where)) from error


def _platform(entry: Any) -> str:
    platform = entry.get("platform") if isinstance(entry, dict) else None
    return f"{platform.get('os')}/{platform.get('architecture')}" if isinstance(platform, dict) else ""


def _no_platform(digest: str, where: str) -> Finding:
    return Finding(
        "image_platform_missing",
        "error",
        f"{digest} has no image for {PLATFORM}",
        "pin the digest of an image for the nodes' platform",
        where,
    )


def _unreadable(digest: str, reason: str, where: str) -> Finding:
    return Finding(
        "image_content_missing",
        "error",
        f"the content of {digest} cannot be read: {reason}",
        "import the image again (playbooks/images.yml)",
        where,
    )
