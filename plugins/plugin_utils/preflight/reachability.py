# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which ports every host has to reach before the join, and what it means that one was not reached."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Mapping, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Facts, Settings, some


def peers(hosts: Mapping[str, Facts], settings: Settings) -> list[dict[str, Any]]:
    """Whom every host asks: [{host, address, ports, answers}].

    Hosts of the run; one that has joined does not listen for port_probe, k3s does. And servers that a --limit left out,
    as far as the inventory knows their address: a new agent must reach its server.
    """
    result = []
    for host, facts in hosts.items():
        address = str(facts["declared"].get("address") or "")
        if address:
            result.append(
                {
                    "host": host,
                    "address": address,
                    "ports": settings.join_ports_of(host),
                    "answers": not facts["joined"],
                }
            )
    for host in settings.members("k3s_server"):
        address = str(settings.addresses.get(host) or "")
        if host not in hosts and address:
            result.append({"host": host, "address": address, "ports": list(settings.server_ports), "answers": False})
    return result


def judge_reachability(
    probes: Mapping[str, Sequence[Mapping[str, Any]]],
    listens: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Facts],
) -> list[Finding]:
    """Findings of what each host saw of the others' ports; one finding a port of a host, whoever could not reach it.

    C(probes) host -> results of port_probe, C(listens) host -> what port_probe listened on there.
    """
    failed: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    strangers: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    untested: dict[str, list[str]] = defaultdict(list)
    for source, results in probes.items():
        for result in results:
            host, port, state = result["host"], result["port"], result["state"]
            if state in ("open", "no_source"):
                # A host without its own cluster_address has a finding for that.
                continue
            if state == "wrong_host":
                key = (host, result["address"], result["detail"])
                strangers[key] += [source] if source not in strangers[key] else []
            elif state == "not_tested" or port in _not_listening(host, listens):
                untested[host] += [port] if port not in untested[host] else []
            else:
                failed[(host, result["address"], port, _phrase(result))].append(source)
    return [
        *(_unreachable(key, sources, hosts) for key, sources in failed.items()),
        *(_stranger(key, sources) for key, sources in strangers.items()),
        *(_untested(host, ports) for host, ports in untested.items()),
    ]


def _not_listening(host: str, listens: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [entry["port"] for entry in (listens.get(host) or {}).get("unavailable") or []]


def _phrase(result: Mapping[str, Any]) -> str:
    phrases = {"timeout": "no answer", "refused": "refused", "unreachable": result["detail"] or "unreachable"}
    return phrases.get(result["state"]) or result["detail"] or result["state"]


def _unreachable(key: tuple[str, str, str, str], sources: Sequence[str], hosts: Mapping[str, Facts]) -> Finding:
    host, address, port, phrase = key
    number, protocol = port.split("/")
    facts = hosts.get(host)
    kinds = [entry["kind"] for entry in facts["firewall"]] if facts else []
    if facts is None:
        fix = f"Start k3s on {host} and open {port} there; it is not part of this run."
    elif "firewalld" in kinds:
        fix = f"On {host}: `firewall-cmd --permanent --add-port={port} && firewall-cmd --reload`."
    elif "ufw" in kinds:
        fix = f"On {host}: `ufw allow {port}`."
    elif kinds:
        fix = f"On {host}: accept {protocol} dport {number} from the nodes in {facts['firewall'][0]['detail'].split(':')[0]}."
    else:
        fix = f"No firewall was found on {host}: look at filters on the way, and at `ip route get {address}` on {sources[0]}."
    return Finding(
        "port_unreachable", "error", f"{address} {port} cannot be reached from {some(sources)}: {phrase}", fix, host
    )


def _stranger(key: tuple[str, str, str], sources: Sequence[str]) -> Finding:
    host, address, name = key
    return Finding(
        "port_wrong_host",
        "error",
        f"its address {address} leads to {name or 'another host'} from {some(sources)}",
        "Correct cluster_address, or the second host that has this address (`arping` shows two MACs).",
        host,
    )


def _untested(host: str, ports: Sequence[str]) -> Finding:
    return Finding(
        "port_not_tested",
        "info",
        f"{', '.join(ports)} not tested: something holds the port already",
        "Nothing to do where k3s runs already.",
        host,
    )
