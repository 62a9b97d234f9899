# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Is every host fit? Facts of all hosts (module host_info) and the settings go in, findings come out. Nothing is read here."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.cluster import CLUSTER_CHECKS
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.existing import EXISTING_CHECKS
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.hardware import HARDWARE_CHECKS
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.network import NETWORK_CHECKS
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Facts, Settings
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.storage import STORAGE_CHECKS
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.system import SYSTEM_CHECKS

HOST_CHECKS = SYSTEM_CHECKS + STORAGE_CHECKS + NETWORK_CHECKS + EXISTING_CHECKS


def judge(hosts: Mapping[str, Facts], settings: Settings) -> list[Finding]:
    """All findings of all hosts: those of the cluster as a whole first, then host by host in the inventory's order."""
    findings = [finding for check in CLUSTER_CHECKS + HARDWARE_CHECKS for finding in check(hosts, settings)]
    for host, facts in hosts.items():
        findings += [finding for check in HOST_CHECKS for finding in check(host, facts, settings)]
    return findings


def merge(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Findings that say the same of several hosts become one: twenty hosts with swap are one line, not twenty."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in findings:
        key = tuple(finding[name] for name in ("code", "severity", "message", "fix"))
        if key in merged:
            places = merged[key]["where"].split(", ")
            if finding["where"] not in places:
                merged[key]["where"] = ", ".join([*places, finding["where"]])
        else:
            merged[key] = dict(finding)
    return list(merged.values())
