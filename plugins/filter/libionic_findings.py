# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: libionic_findings
short_description: What the hosts' RDMA libraries lack, with the hosts named
description:
  - Collects the findings of M(infera.baremetal.verbs_abi_info). On a host that serves aggregated only, an error becomes a warning, since
    aggregated serving never touches RDMA.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  verbs:
    description: Name of the variable that holds the result of the module.
    type: str
    required: true
  groups:
    description: Ansible's C(groups).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Stop where library and kernel do not meet
  infera.baremetal.assert_findings:
    subject: Provider libraries
    findings: "{{ ansible_play_hosts | infera.baremetal.libionic_findings(hostvars, 'verbs', groups) }}"
"""

RETURN = r"""
_value:
  description: The findings, C(where) being the host, or the host, a colon and the file.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def libionic_findings(
    hosts: Iterable[str], hostvars: Mapping[str, Any], verbs: str, groups: Mapping[str, Iterable[str]]
) -> list[dict[str, Any]]:
    transferring = {host for group in ("prefill", "decode") for host in groups.get(group, [])}
    return [
        {
            **finding,
            "where": f"{host}:{finding['where']}" if finding.get("where") else host,
            "severity": _severity(finding, host in transferring),
        }
        for host in hosts
        for finding in (hostvars[host].get(verbs) or {}).get("findings") or []
    ]


def _severity(finding: Mapping[str, Any], transferring: bool) -> str:
    return "warning" if finding["severity"] == "error" and not transferring else finding["severity"]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"libionic_findings": libionic_findings}
