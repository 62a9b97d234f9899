# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Troubles that can be switched on and off in a standing lab, one node at a time."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address

from . import network, nodes, sysfs
from .plan import RAIL_MTU, Lab, Node

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


def rule_missing(_lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The rail's rule is gone, and a default route leads out by the next rail: replies leave by the wrong one."""
    network.set_rail_rule(node, rail, present=not on)


def rails_swapped(lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The cables of a rail and its neighbour are exchanged; addresses and GIDs follow the port, as with router advertisements."""
    other = (rail + 1) % len(node.rails)
    cables = {rail: other, other: rail} if on else {rail: rail, other: other}
    network.set_cables(lab, node, cables)
    for netdev, wanted in cables.items():
        mine = node.rails[netdev]
        sysfs.set_gids(nodes.sysfs_directory(lab, node), mine, mine.link_local, node.rails[wanted].address.ip)


def hop_mtu(lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The fabric's port of a rail has MTU 1500."""
    network.set_hop_mtu(lab, node, rail, 1500 if on else RAIL_MTU)


def gid_link_local(lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The rail's GID table has its link-local entry alone."""
    _gids(lab, node, rail, () if on else (node.rails[rail].address.ip,))


def gid_ipv4_mapped(lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The rail's GID is that of an IPv4 address, which the netdev does not hold."""
    mapped = IPv6Address(f"::ffff:10.78.{rail}.{node.number}")
    _gids(lab, node, rail, (mapped if on else node.rails[rail].address.ip,))


def _gids(lab: Lab, node: Node, rail: int, more: tuple[IPv6Address, ...]) -> None:
    mine = node.rails[rail]
    sysfs.set_gids(nodes.sysfs_directory(lab, node), mine, mine.link_local, *more)


def rail_absent(lab: Lab, node: Node, rail: int, on: bool) -> None:
    """The driver has made no RDMA device for a rail: a host with seven."""
    sysfs.set_device(nodes.sysfs_directory(lab, node), node.rails[rail], present=not on)


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
    "rule-missing": Fault("a rail's rule is missing: replies leave by the next rail", rule_missing, of_rail=True),
    "rails-swapped": Fault("the cables of a rail and the next one are exchanged", rails_swapped, of_rail=True),
    "hop-mtu": Fault("a port of the fabric has MTU 1500", hop_mtu, of_rail=True),
    "gid-link-local": Fault("a rail has a link-local GID only", gid_link_local, of_rail=True),
    "gid-ipv4-mapped": Fault("a rail's GID is an IPv4 address that it does not hold", gid_ipv4_mapped, of_rail=True),
    "rail-absent": Fault("a rail has no RDMA device", rail_absent, of_rail=True),
    "abi-mismatch": Fault(f"the RDMA driver reports kernel ABI {sysfs.MISMATCHED_ABI}", abi_mismatch),
    "disk-full": Fault("1 MiB is left on the large disk", disk_full),
    "node-unreachable": Fault("the management link is down", node_unreachable),
}
