# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rails as the engine sees them: RDMA devices that can be opened from this container, with the address of their GID."""

from __future__ import annotations

import dataclasses
import ipaddress
import pathlib
import re
import socket


@dataclasses.dataclass(frozen=True)
class Rail:
    """One RDMA device. `index` counts all devices in natural order, so a device that is missing moves no other."""

    index: int
    device: str
    netdev: str
    state: str
    """As the kernel names it: ACTIVE, DOWN, ..."""
    gid_index: int | None
    address: str | None
    """IPv6 text, or IPv4 text where the GID is an IPv4-mapped one; None without a usable GID."""


def read_rails(sysfs: pathlib.Path, devices: pathlib.Path = pathlib.Path("/dev")) -> list[Rail]:
    """The rails below `sysfs`/class/infiniband that can be used from here.

    A device counts where libibverbs would list it: its uverbs node is in `devices`/infiniband and its network device is
    in this network namespace (elsewhere the kernel hides it, and its GIDs read as zero).
    """
    names = sorted(_listed(sysfs / "class/infiniband"), key=_natural)
    nodes = {_read(node / "ibdev"): node.name for node in (sysfs / "class/infiniband_verbs").glob("uverbs*")}
    rails = []
    for index, name in enumerate(names):
        device = sysfs / "class/infiniband" / name
        netdev = _netdev(device)
        if name in nodes and (devices / "infiniband" / nodes[name]).exists() and _is_here(netdev):
            state = _read(device / "ports/1/state").partition(": ")[2]
            rails.append(Rail(index, name, netdev, state, *_usable_gid(device / "ports/1", netdev)))
    return rails


def _netdev(device: pathlib.Path) -> str:
    """The network device of a port: what its GIDs name, else what its PCI function has."""
    for entry in sorted(_listed(device / "ports/1/gid_attrs/ndevs"), key=_natural):
        if netdev := _read(device / "ports/1/gid_attrs/ndevs" / entry):
            return netdev
    return next(iter(sorted(_listed(device / "device/net"), key=_natural)), "")


def _usable_gid(port: pathlib.Path, netdev: str) -> tuple[int | None, str | None]:
    """(index, address) of the first RoCE v2 GID that is neither zero nor link-local and belongs to the rail's netdev."""
    for entry in sorted(_listed(port / "gids"), key=_natural):
        try:
            gid = ipaddress.IPv6Address(_read(port / "gids" / entry))
        except ValueError:
            continue
        usable = not (gid.is_unspecified or gid.is_link_local)
        if (
            usable
            and _read(port / "gid_attrs/types" / entry) == "RoCE v2"
            and _read(port / "gid_attrs/ndevs" / entry) == netdev
        ):
            return int(entry), str(gid.ipv4_mapped or gid)
    return None, None


def _is_here(netdev: str) -> bool:
    try:
        return bool(netdev and socket.if_nametoindex(netdev))
    except OSError:
        return False


def _listed(folder: pathlib.Path) -> list[str]:
    try:
        return [path.name for path in folder.iterdir()]
    except OSError:
        return []


def _read(file: pathlib.Path) -> str:
    # Slots without a GID answer EINVAL.
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _natural(name: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]
