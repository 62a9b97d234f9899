# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Troubles that can be switched on and off in a standing lab, one node at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from . import network, nodes, sysfs
from .plan import Lab, Node

FILLER = ".lab-disk-full"
LEFT_BYTES = 1 << 20


@dataclass(frozen=True)
class Fault:
    """One kind of trouble."""

    description: str
    switch: Callable[[Lab, Node, int, bool], None]
    of_rail: bool = False


def rail_down(lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The cable of one rail is pulled; the port's state in sysfs follows."""
    network.set_rail(lab, node, rail, plugged=not on)
    sysfs.set_link(nodes.sysfs_directory(lab, node), node.rails[rail], up=not on)


def route_missing(_lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The rail's table has no default route: what is bound to the rail finds no way to other nodes."""
    network.set_rail_route(node, rail, present=not on)


def abi_mismatch(lab: Lab, node: Node, _rail: int, on: bool) -> None:
    """The kernel's driver speaks an ABI that the provider library does not."""
    sysfs.set_abi(nodes.sysfs_directory(lab, node), node, sysfs.MISMATCHED_ABI if on else sysfs.KERNEL_ABI)


def disk_full(lab: Lab, node: Node, _rail: int, on: bool) -> None:
    """A file takes the large disk's space but for 1 MiB (reserved, not written: it costs the machine nothing)."""
    filler = nodes.disk_directory(lab, node) / FILLER
    if not on:
        filler.unlink(missing_ok=True)
        return
    free = os.statvfs(filler.parent)
    size = free.f_bavail * free.f_frsize - LEFT_BYTES
    if size > 0:
        with filler.open("ab") as handle:
            os.posix_fallocate(handle.fileno(), handle.tell(), size)


def node_unreachable(lab: Lab, node: Node, _rail: int, on: bool) -> None:
    """The node's management link is down; the node itself runs on."""
    network.set_management(lab, node, "down" if on else "up")


FAULTS = {
    "rail-down": Fault("the cable of a rail is pulled", rail_down, of_rail=True),
    "route-missing": Fault("a rail's routing table has no default route", route_missing, of_rail=True),
    "abi-mismatch": Fault(f"the RDMA driver reports kernel ABI {sysfs.MISMATCHED_ABI}", abi_mismatch),
    "disk-full": Fault("1 MiB is left on the large disk", disk_full),
    "node-unreachable": Fault("the management link is down", node_unreachable),
}
