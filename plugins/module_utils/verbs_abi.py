# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host's side of a verbs driver: the ABI that its kernel speaks, and the libraries that user space would load.

C(/sys/class/infiniband_verbs/uverbsN/abi_version) is the driver's; the file of the same name one folder higher is the uverbs core's (6),
and says nothing about the driver.
"""

from __future__ import annotations

import base64
import glob
import hashlib
import os
from typing import Any, Dict, List, Optional

from ansible_collections.infera.baremetal.plugins.module_utils import sysfs

# PCI vendors of drivers whose devices are told by them; the others' by the name of the kernel driver, or of the device.
VENDORS = {"ionic": "0x1dd8", "mlx5": "0x15b3", "mlx4": "0x15b3", "bnxt_re": "0x14e4"}
FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")
DRIVER_FOLDERS = ("/etc/libibverbs.d", "/usr/etc/libibverbs.d", "/usr/local/etc/libibverbs.d")
# A provider is about 100 KB; what is larger is not one, and is not sent.
MOST_BYTES = 8 << 20


def kernel(sysfs_root: str, driver: str) -> Dict[str, Any]:
    """C(abi): what all devices of the driver speak (null where they differ, or there is none), C(devices): C(name), C(uverbs), C(abi)."""
    folder = os.path.join(sysfs_root, "class/infiniband_verbs")
    devices = []
    for uverbs in sysfs.names(folder):
        name = sysfs.read_text(folder, uverbs, "ibdev")
        if name and _is_of(sysfs_root, os.path.join(folder, uverbs), name, driver):
            devices.append({"name": name, "uverbs": uverbs, "abi": sysfs.read_int(folder, uverbs, "abi_version")})
    abis = {device["abi"] for device in devices}
    return {"abi": abis.pop() if len(abis) == 1 else None, "devices": devices}


def _is_of(sysfs_root: str, uverbs: str, name: str, driver: str) -> bool:
    for device in (os.path.join(uverbs, "device"), os.path.join(sysfs_root, "class/infiniband", name, "device")):
        vendor = sysfs.read_text(device, "vendor")
        if vendor and driver in VENDORS:
            return vendor == VENDORS[driver]
        bound = sysfs.link_path(device, "driver")
        if bound:
            return os.path.basename(bound).startswith(driver)
    # Soft-RoCE and siw have no device; their names are what somebody chose, and mostly hold the driver's.
    return driver in name


def library(given: str, root: str, driver: str = "") -> Optional[Dict[str, Any]]:
    """A library with its content: C(path), C(real_path), C(sha256), C(content) (base64), or C(error). None where there is none.

    C(driver): its provider, by soname or by the link that libibverbs follows; empty: libibverbs itself.
    """
    path = given or _find(root, driver)
    if not path:
        return None
    real = os.path.realpath(os.path.join(root, path.lstrip("/")))
    found: Dict[str, Any] = {"path": path, "real_path": "/" + os.path.relpath(real, root)}
    try:
        with open(real, "rb") as handle:
            data = handle.read(MOST_BYTES + 1)
    except OSError as error:
        return {**found, "error": error.strerror or str(error)}
    if len(data) > MOST_BYTES:
        return {**found, "error": f"is larger than {MOST_BYTES >> 20} MiB, so it is no such library"}
    return {**found, "sha256": hashlib.sha256(data).hexdigest(), "content": base64.b64encode(data).decode("ascii")}


def _find(root: str, driver: str) -> str:
    names = [f"lib{driver}.so.1", f"libibverbs/lib{driver}-rdmav*.so"] if driver else ["libibverbs.so.1"]
    for folder in FOLDERS:
        for name in names:
            for path in sorted(glob.glob(os.path.join(root, folder.lstrip("/"), name)), key=sysfs.natural_key):
                return "/" + os.path.relpath(path, root)
    return ""


def suffixes(root: str, driver: str) -> List[str]:
    """The numbers of C(libibverbs/lib<driver>-rdmavNN.so) that are there."""
    found = set()
    for folder in FOLDERS:
        for path in glob.glob(os.path.join(root, folder.lstrip("/"), f"libibverbs/lib{driver}-rdmav*.so")):
            found.add(path.rpartition("-rdmav")[2][: -len(".so")])
    return sorted(found, key=sysfs.natural_key)


def driver_files(root: str, driver: str) -> List[str]:
    """Files that tell libibverbs to load the provider; each has a line C(driver <name>)."""
    found = []
    for folder in DRIVER_FOLDERS:
        for name in sysfs.names(root, folder.lstrip("/")):
            text = sysfs.read_text(root, folder.lstrip("/"), name) or ""
            if name.endswith(".driver") and ["driver", driver] in [line.split()[:2] for line in text.splitlines()]:
                found.append(f"{folder}/{name}")
    return found
