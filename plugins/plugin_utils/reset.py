# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a reset says: what would be removed from which hosts, how to confirm it, and what is left to do after it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding

PLAYBOOK = "playbooks/reset.yml"


def reset_findings(surveys: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> list[dict[str, str]]:
    """What stops a reset: whatever is in the way on a host; and, unless all hosts are fresh, the missing confirmation.

    C(surveys): what k3s_reset returned in check mode, by host. C(given): C(cluster), C(confirm), C(servers), C(inventories),
    C(limit), and C(check) where nothing will be removed anyway.
    """
    found = [
        {**finding, "where": _join(host, finding["where"])}
        for host, survey in surveys.items()
        for finding in survey.get("findings", [])
    ]
    hosts = [host for host, survey in surveys.items() if any(survey["removed"].values())]
    if hosts and not given["check"] and given["confirm"] != given["cluster"]:
        lines = [f"{host} ({_role(host, given['servers'])}): {describe(surveys[host]['removed'])}" for host in hosts]
        said = f"reset_confirm is {given['confirm']!r}, not {given['cluster']!r}. " if given["confirm"] else ""
        found.append(
            Finding(
                "reset_not_confirmed",
                "error",
                f"{said}This would remove k3s, its pods and their data from:\n  " + "\n  ".join(lines) + "\n ",
                "To confirm, name the cluster: " + confirming_command(given),
                where=given["cluster"],
            ).to_dict()
        )
    return found


def describe(removed: Mapping[str, Sequence[str]]) -> str:
    """One line of what goes: folders and interfaces by name, the many by number."""
    words = {
        "processes": ("process", "processes"),
        "mounts": ("mount", "mounts"),
        "routes": ("route", "routes"),
        "rules": ("iptables entry", "iptables entries"),
    }
    counts = [f"{len(removed[kind])} {words[kind][len(removed[kind]) > 1]}" for kind in words if removed.get(kind)]
    units = [f"unit {unit}" for unit in removed.get("units", [])]
    return ", ".join([*units, *counts, *removed.get("interfaces", []), *_outermost(removed)])


def _outermost(removed: Mapping[str, Sequence[str]]) -> list[str]:
    """The paths, without those below another and those that are a mount point only."""
    paths = removed.get("paths", [])
    inner = {path for path in paths if any(path.startswith(folder + "/") for folder in paths)}
    return [path for path in paths if path not in inner and path not in removed.get("mounts", [])]


def confirming_command(given: Mapping[str, Any]) -> str:
    """The command that does it; paths below the current folder are shortened."""
    words = ["ansible-playbook"]
    for source in given["inventories"]:
        words += ["-i", _short(str(source))]
    if given["limit"]:
        words += ["--limit", str(given["limit"])]
    return shlex.join([*words, PLAYBOOK, "-e", f"reset_confirm={given['cluster']}"])


def reset_notes(findings: Sequence[Mapping[str, str]], node: Mapping[str, Any]) -> list[dict[str, str]]:
    """What is left to do after one host's reset: its own findings, and what the rest of the cluster still knows of it.

    C(node): C(host), its C(name) in the API, C(kubeconfig), C(cluster) and C(servers) (hosts), C(hosts) of the run.
    """
    notes = [{**finding, "where": _join(node["host"], finding["where"])} for finding in findings]
    servers = [host for host in node["servers"] if host != node["host"]]
    left_servers = [host for host in servers if host not in node["hosts"]]
    left_agents = [host for host in node["cluster"] if host not in (*node["servers"], *node["hosts"])]
    if node["host"] not in node["servers"] and left_servers:
        command = shlex.join(["kubectl", "--kubeconfig", str(node["kubeconfig"]), "delete", "node", str(node["name"])])
        notes.append(
            Finding(
                "reset_node_object_stays",
                "warning",
                "the cluster still lists this node; it is NotReady from now on",
                f"If it does not come back: {command}",
                where=node["host"],
            ).to_dict()
        )
    if node["host"] in node["servers"] and left_agents:
        notes.append(
            Finding(
                "reset_agents_stay",
                "warning",
                f"{', '.join(left_agents)} still run as agents of the cluster that is gone",
                "Reset them too: they do not join a new cluster as they are.",
                where=node["host"],
            ).to_dict()
        )
    return notes


def _role(host: str, servers: Sequence[str]) -> str:
    return "server" if host in servers else "agent"


def _join(host: str, where: str) -> str:
    return f"{host}:{where}" if where else host


def _short(path: str) -> str:
    relative = os.path.relpath(path)
    return relative if os.path.isabs(path) and not relative.startswith("..") else path
