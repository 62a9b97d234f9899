# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The network interfaces of a host as they are: addresses from C(ip -j -d address show), structure from sysfs.

Names prove nothing, so nothing here looks at them: a NIC is what has a C(device) link, and what is stacked on it is found through
the recursive C(lower_*) links that the kernel keeps (Documentation/ABI/testing/sysfs-class-net).
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any, Dict, List, Optional, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import addresses, sysfs
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.host import Runner, run_command

_COMMAND = ("ip", "-j", "-d", "address", "show")
_LOWER = "lower_"
# Operational states (RFC 2863) in which nothing is carried; many drivers never leave UNKNOWN.
_STATES_DOWN = ("DOWN", "LOWERLAYERDOWN", "NOTPRESENT", "DORMANT")
_MARKS = ("secondary", "deprecated", "tentative", "temporary", "dadfailed")


@dataclass(frozen=True)
class HeldAddress:
    """An address of an interface. C(scope): global, site, link or host. C(marks): those of _MARKS that the kernel sets."""

    address: addresses.Address
    prefix_length: int
    scope: str = "global"
    marks: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Interface:
    """An interface of this network namespace.

    C(kind): as iproute2 names it (bond, vlan, bridge, veth, ...), empty for a NIC. C(down): why nothing is carried, empty when
    it is up. C(master) and C(master_kind): what it is a port of. C(known): sysfs describes this very interface, and the rest is
    from there. C(device): backed by a device. C(bus): the device's subsystem (pci, virtio, usb). C(lower): what it is directly
    stacked on.
    """

    name: str
    index: Optional[int] = None
    kind: str = ""
    altnames: Tuple[str, ...] = ()
    loopback: bool = False
    down: str = ""
    master: str = ""
    master_kind: str = ""
    addresses: Tuple[HeldAddress, ...] = ()
    known: bool = False
    device: bool = False
    bus: str = ""
    virtual_function: bool = False
    lower: Tuple[str, ...] = ()


def read_interfaces(sysfs_root: str = sysfs.ROOT, run: Runner = run_command) -> Dict[str, Interface]:
    """Name -> interface, sorted naturally. Raises FindingError where iproute2 does not answer or there is no sysfs."""
    status, text = run(_COMMAND)
    try:
        listed = parse_listing(text) if status == 0 else None
    except ValueError:
        listed = None
    if listed is None:
        raise _unreadable(
            "ip",
            f"`{' '.join(_COMMAND)}` does not list the interfaces (exit status {status})",
            "Install iproute2 (RHEL: iproute), then see what the command says.",
        )
    folder = os.path.join(sysfs_root, "class", "net")
    if not os.path.isdir(folder):
        raise _unreadable(folder, "is not there", "Mount sysfs, or correct sysfs_root.")
    return {interface.name: _with_structure(interface, os.path.join(folder, interface.name)) for interface in listed}


def parse_listing(text: str) -> List[Interface]:
    """What C(ip -j -d address show) printed, sorted naturally and without structure. Raises ValueError where it is not that."""
    try:
        # Older iproute2 leaves empty objects in the list.
        listed = [_listed(entry) for entry in json.loads(text) if entry.get("ifname")]
    except (TypeError, AttributeError) as error:
        raise ValueError(str(error)) from error
    return sorted(listed, key=lambda interface: sysfs.natural_key(interface.name))


def layers(name: str, interfaces: Dict[str, Interface]) -> Tuple[List[Interface], List[Optional[Interface]]]:
    """What an interface is made of: the stacked interfaces from the top (itself first), and the leaves below them.

    An interface with nothing below it is its own leaf. A leaf is None where it is not of this namespace. A loop ends where it closes.
    """
    stacked: Dict[str, Interface] = {}
    leaves: Dict[str, Optional[Interface]] = {}
    todo = [name]
    while todo:
        current = todo.pop(0)
        interface = interfaces.get(current)
        if interface is None or interface.device or not interface.lower:
            leaves[current] = interface
        elif current not in stacked:
            stacked[current] = interface
            todo += interface.lower
    return list(stacked.values()), list(leaves.values())


def _unreadable(where: str, message: str, fix: str) -> FindingError:
    return FindingError(Finding("interfaces_unreadable", "error", message, fix, where))


def _listed(entry: Dict[str, Any]) -> Interface:
    link = entry.get("linkinfo") or {}
    flags = entry.get("flags") or []
    return Interface(
        name=str(entry["ifname"]),
        index=entry.get("ifindex"),
        kind=str(link.get("info_kind") or ""),
        altnames=tuple(str(text) for text in entry.get("altnames") or ()),
        loopback="LOOPBACK" in flags,
        down=_down(flags, str(entry.get("operstate") or "")),
        master=str(entry.get("master") or ""),
        master_kind=str(link.get("info_slave_kind") or ""),
        addresses=tuple(_held(item) for item in entry.get("addr_info") or () if item.get("local")),
    )


def _with_structure(interface: Interface, path: str) -> Interface:
    # The same name with another index is another namespace's: sysfs shows the namespace in which it was mounted.
    if not os.path.isdir(path) or sysfs.read_int(path, "ifindex") not in (None, interface.index):
        return interface
    return replace(
        interface,
        known=True,
        device=sysfs.link_path(path, "device") is not None,
        bus=os.path.basename(sysfs.link_path(path, "device", "subsystem") or ""),
        virtual_function=sysfs.link_path(path, "device", "physfn") is not None,
        lower=tuple(entry[len(_LOWER) :] for entry in sysfs.names(path) if entry.startswith(_LOWER)),
    )


def _down(flags: List[str], state: str) -> str:
    if "UP" not in flags:
        return "not set up"
    if "LOWER_UP" not in flags:
        return "no carrier"
    return f"operational state {state}" if state in _STATES_DOWN else ""


def _held(item: Dict[str, Any]) -> HeldAddress:
    address = addresses.parse(item["local"])
    return HeldAddress(
        address,
        int(item.get("prefixlen", address.max_prefixlen)),
        str(item.get("scope") or "global"),
        tuple(mark for mark in _MARKS if item.get(mark)),
    )
