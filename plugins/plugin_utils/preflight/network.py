# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's network: its ports, address, interface, and what filters packets."""

from __future__ import annotations

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
    """What the host itself found about the address that it is to advertise, or could."""
    advertise = facts["advertise"]
    refused = [
        f"{one['interface']} {one['address']}: {one['detail']}" for one in advertise["candidates"] if one["detail"]
    ]
    for found in advertise["findings"]:
        where = f"{host}:{found['where']}" if found.get("where") else host
        why = "; ".join(refused) if found["code"] == "advertise_none" else ""
        # The module answers all the same; before a cluster is made, a choice by name alone is the operator's to confirm.
        severity = "error" if found["code"] == "advertise_ambiguous" else found["severity"]
        yield Finding(found["code"], severity, found["message"], found["fix"], where, found.get("why") or why)


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
