# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPUs, RDMA drivers and what lies around them on one host, as far as workers depend on it. Reads only; what is not there is null.

Sources: KFD's topology (Documentation of amdgpu: C(gfx_target_version) is major*10000 + minor*100 + stepping), sysfs-class-infiniband, the
kernel's configuration, /proc/cmdline, systemd's limits, nicctl of the AINIC bundle.
"""

from __future__ import annotations

import gzip
import os
import re
from typing import Any, Callable, Dict, List, Optional, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import sysfs
from ansible_collections.infera.baremetal.plugins.module_utils.verbs_abi import driver_files

Runner = Callable[[List[str]], Tuple[int, str]]

MODULES = ("amdgpu", "ionic", "ionic_rdma", "ib_peer_mem")
CONFIG = ("CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY")
NICCTL = {"qos": ["nicctl", "show", "qos"], "dcqcn": ["nicctl", "show", "dcqcn"]}
# What differs from card to card and from call to call, and says nothing about a setting.
_OWN = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.\d|(?:[0-9a-f]{2}:){5}[0-9a-f]{2}",
    re.I,
)


def read_hardware(sysfs_root: str, run: Runner, root: str = "/") -> Dict[str, Any]:
    """See RV(host.hardware) of the module host_info for the shape."""
    infiniband = os.path.join(sysfs_root, "class/infiniband")
    devices = sysfs.names(infiniband)
    return {
        "gpus": gpus(sysfs_root),
        "rdma_devices": devices,
        "vendors": sorted({sysfs.read_text(infiniband, name, "device/vendor") or "" for name in devices} - {""}),
        "firmware": sorted({sysfs.read_text(infiniband, name, "fw_ver") or "" for name in devices} - {""}),
        "modules": {name: module_version(sysfs_root, name) for name in MODULES},
        "driver_files": driver_files(root, "ionic"),
        "kernel_config": kernel_config(root),
        "iommu": iommu(sysfs_root, root),
        "memlock": memlock(run),
        "nicctl": {name: settings(run, command) for name, command in NICCTL.items()} if devices else {},
    }


def gpus(sysfs_root: str) -> Optional[List[Dict[str, Any]]]:
    """C(gfx) and C(node) of each GPU that KFD lists; None where KFD is not there."""
    folder = os.path.join(sysfs_root, "class/kfd/kfd/topology/nodes")
    if not os.path.isdir(folder):
        return None
    found = []
    for node in sysfs.names(folder):
        properties = dict(
            line.split(None, 1)
            for line in (sysfs.read_text(folder, node, "properties") or "").splitlines()
            if " " in line
        )
        # A node of KFD is a GPU when it has SIMD units; the others are CPUs.
        if _number(properties.get("simd_count")):
            found.append(
                {
                    "node": int(node) if node.isdigit() else 0,
                    "gfx": gfx_name(_number(properties.get("gfx_target_version"))),
                }
            )
    return found


def gfx_name(version: int) -> str:
    """C(90500) is gfx950, C(90402) is gfx942: minor and stepping are hexadecimal digits of the name."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}" if version else ""


def _number(text: Optional[str]) -> int:
    try:
        return int((text or "").strip())
    except ValueError:
        return 0


def module_version(sysfs_root: str, name: str) -> Optional[str]:
    """The version of a loaded module; an in-tree one has none and says C(in-tree). None where it is not loaded."""
    folder = os.path.join(sysfs_root, "module", name)
    if not os.path.isdir(folder):
        return None
    return sysfs.read_text(folder, "version") or "in-tree"


def kernel_config(root: str) -> Dict[str, Optional[bool]]:
    """Whether the kernel has each of CONFIG; None where its configuration cannot be read."""
    text = _config_text(root)
    if text is None:
        return dict.fromkeys(CONFIG)
    return {name: f"\n{name}=y\n" in text for name in CONFIG}


def _config_text(root: str) -> Optional[str]:
    release = sysfs.read_text(root, "proc/sys/kernel/osrelease") or ""
    plain = os.path.join(root, "boot", f"config-{release}")
    try:
        with open(plain, encoding="ascii", errors="replace") as handle:
            return "\n" + handle.read()
    except OSError:
        pass
    try:
        with gzip.open(os.path.join(root, "proc/config.gz"), "rt", encoding="ascii", errors="replace") as packed:
            return "\n" + packed.read()
    except (OSError, EOFError):
        return None


def iommu(sysfs_root: str, root: str) -> Dict[str, Any]:
    """C(groups): how many; C(types): of their default domains (C(identity) is passthrough); C(cmdline): what was asked for."""
    folder = os.path.join(sysfs_root, "kernel/iommu_groups")
    groups = sysfs.names(folder)
    words = (sysfs.read_text(root, "proc/cmdline") or "").split()
    return {
        "groups": len(groups),
        "types": sorted({sysfs.read_text(folder, group, "type") or "" for group in groups} - {""}),
        "cmdline": [word for word in words if re.match(r"(amd_|intel_)?iommu[=.]", word)],
    }


def memlock(run: Runner) -> Optional[str]:
    """What k3s's containers may lock, as systemd says (C(infinity), or bytes): its unit's where there is one, else the default."""
    for command in (
        ["systemctl", "show", "k3s", "k3s-agent", "--property=LoadState,LimitMEMLOCK"],
        ["systemctl", "show", "--property=DefaultLimitMEMLOCK"],
    ):
        status, text = run(command)
        for block in text.split("\n\n") if status == 0 else ():
            values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
            if values.get("LoadState", "loaded") == "loaded":
                limit = values.get("LimitMEMLOCK") or values.get("DefaultLimitMEMLOCK")
                if limit:
                    return limit
    return None


def settings(run: Runner, command: List[str]) -> Optional[str]:
    """A tool's listing without what is each card's own, its lines once and sorted, to be compared; None where the tool is not there."""
    status, text = run(command)
    if status != 0:
        return None
    lines = {" ".join(_OWN.sub("*", line).split()) for line in text.splitlines()}
    return "\n".join(sorted(lines - {""}))


def peer_memory(hardware: Dict[str, Any]) -> Optional[bool]:
    """Whether NICs can read and write GPU memory: by ib_peer_mem, or by the kernel itself. None where that cannot be told."""
    if hardware["modules"]["ib_peer_mem"] is not None:
        return True
    in_kernel = [hardware["kernel_config"][name] for name in CONFIG]
    return None if None in in_kernel else all(in_kernel)
