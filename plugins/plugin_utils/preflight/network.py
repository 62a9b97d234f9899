# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's network: its ports, address, interface, and what filters packets."""

from __future__ import annotations

import ipaddress
from typing import Any, Iterator, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.host import K3S_UNITS, PROBE_NAME
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Check, Facts, Settings


def _ports(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    wanted = settings.ports_of(host)
    seen = set()
    for listener in facts["listeners"]:
        port = f"{listener['port']}/{listener['protocol']}"
        holder = _holder(listener, facts)
        if port not in wanted or holder is None or (port, holder) in seen:
            continue
        seen.add((port, holder))
        yield Finding(
            "port_in_use",
            "error",
            f"{port} is held by {holder}",
            "Stop it, or move it to another port." + _port_hint(port, settings),
            host,
        )


def _port_hint(port: str, settings: Settings) -> str:
    return (
        " If that port is not used here, take it out of preflight_worker_ports."
        if port in settings.worker_ports
        else ""
    )


def _holder(listener: Mapping[str, Any], facts: Facts) -> str | None:
    """Who holds a port, for people; None where it is k3s, a pod of it, or a listener of port_probe."""
    process, unit = listener["process"], listener["unit"]
    if unit in K3S_UNITS or unit == "kubepods" or process.startswith("k3s") or process == PROBE_NAME:
        return None
    if process:
        return f"{process} (pid {listener['pid']}{', ' + unit if unit else ''})"
    vxlan = [name for name, entry in (facts["interfaces"] or {}).items() if entry["vxlan_port"] == listener["port"]]
    if listener["protocol"] == "udp" and vxlan:
        return None if all(name.startswith("flannel") for name in vxlan) else f"the VXLAN interface {', '.join(vxlan)}"
    return f"a process that could not be seen (address {listener['address']})"


def _address(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    text = str(facts["declared"].get("address") or "")
    interface = str(facts["declared"].get("interface") or "")
    interfaces = facts["interfaces"]
    if interfaces is None:
        yield Finding(
            "interfaces_unreadable",
            "warning",
            "`ip -j address` does not answer, so cluster_address was not compared with the interfaces",
            "Install iproute2.",
            host,
        )
    yield from _interface(host, interface, interfaces)
    if not text:
        yield Finding(
            "cluster_address_unset",
            "error",
            "cluster_address is not set" + _candidates(interfaces, interface),
            "Set cluster_address for this host to the address that the other nodes reach.",
            host,
        )
        return
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if (
        not isinstance(address, ipaddress.IPv4Address)
        or address.is_loopback
        or address.is_unspecified
        or address.is_multicast
    ):
        yield Finding(
            "cluster_address_invalid",
            "error",
            f"cluster_address is {text!r}, which is no IPv4 address that another node could reach",
            "Set cluster_address for this host to the address that the other nodes reach.",
            host,
        )
        return
    for kind, cidrs in (("pod", settings.pod_cidrs), ("service", settings.service_cidrs)):
        for cidr in cidrs:
            if _inside(address, cidr):
                yield Finding(
                    "cluster_address_in_cidr",
                    "error",
                    f"cluster_address {text} lies inside the {kind} CIDR {cidr}",
                    f"Choose an address of the host's network, or another {kind} CIDR (k3s_{'cluster' if kind == 'pod' else 'service'}_cidr).",
                    host,
                    why="such an address belongs to cni0 and is unreachable from other nodes",
                )
    if interfaces is not None:
        yield from _placed(host, text, interface, interfaces)


def _interface(host: str, interface: str, interfaces: Mapping[str, Any] | None) -> Iterator[Finding]:
    if not interface:
        yield Finding(
            "cluster_interface_unset",
            "error",
            "cluster_interface is not set",
            "Set cluster_interface for this host to the interface that holds cluster_address.",
            host,
            why="flannel would take the default route's interface, on a GPU node often a public one",
        )
    elif interfaces is not None and interface not in interfaces:
        yield Finding(
            "cluster_interface_missing",
            "error",
            f"cluster_interface {interface} does not exist; there are {', '.join(_nics(interfaces)) or 'none'}",
            "Set cluster_interface for this host to the interface that holds cluster_address.",
            host,
        )
    elif interfaces is not None and not interfaces[interface]["up"]:
        yield Finding(
            "cluster_interface_down",
            "error",
            f"cluster_interface {interface} is down or has no carrier",
            f"`ip link set {interface} up`, and check the cable.",
            host,
        )


def _placed(host: str, text: str, interface: str, interfaces: Mapping[str, Any]) -> Iterator[Finding]:
    holders = [name for name, entry in interfaces.items() if text in entry["addresses"]]
    if not holders:
        yield Finding(
            "cluster_address_not_on_host",
            "error",
            f"cluster_address {text} is on none of its interfaces" + _candidates(interfaces, interface),
            "Set cluster_address for this host to an address that it has.",
            host,
        )
    elif interface in interfaces and interface not in holders:
        yield Finding(
            "cluster_address_wrong_interface",
            "error",
            f"cluster_address {text} is on {', '.join(holders)}, and cluster_interface is {interface}",
            "Set cluster_interface to the interface that holds cluster_address.",
            host,
        )


def _nics(interfaces: Mapping[str, Any]) -> list[str]:
    """Interfaces that may be meant, for a message; in a container every one is virtual, then all but the loopback."""
    virtual = ("veth", "bridge", "vxlan", "dummy", "ifb", "tun", "ipip", "sit", "gre")
    names = [name for name in interfaces if name != "lo"]
    return [name for name in names if interfaces[name]["kind"] not in virtual] or names


def _candidates(interfaces: Mapping[str, Any] | None, interface: str) -> str:
    """The IPv4 addresses of the wanted interface, else of all NICs, as a phrase."""
    names = [interface] if interface in (interfaces or {}) else _nics(interfaces or {})
    found = [
        f"{address} ({name})"
        for name in names
        for address in (interfaces or {})[name]["addresses"]
        if ":" not in address
    ]
    return f"; it has {', '.join(found)}" if found else ""


def _inside(address: ipaddress.IPv4Address, cidr: str) -> bool:
    try:
        return address in ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False


def _firewall(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    if facts["firewall"]:
        kinds = "; ".join(f"{entry['kind']} ({entry['detail']})" for entry in facts["firewall"])
        ports = ", ".join(settings.ports_of(host))
        yield Finding(
            "firewall_present",
            "warning",
            f"incoming packets are filtered: {kinds}",
            f"Nothing is edited here. Allow {ports} from the other nodes, and everything from {', '.join([*settings.pod_cidrs, *settings.service_cidrs])}.",
            host,
        )


NETWORK_CHECKS: tuple[Check, ...] = (_ports, _address, _firewall)
