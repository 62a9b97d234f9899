# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: findings_on
short_description: Findings of one host, with the host named in them
description:
  - A module does not know what the inventory calls its host. This puts the name before C(where).
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The findings.
    type: list
    elements: dict
    required: true
  host:
    description: The inventory's name of the host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show what is wrong with the rails of each host
  ansible.builtin.debug:
    msg: "{{ rails.findings | infera.baremetal.findings_on(inventory_hostname) | infera.baremetal.findings_lines }}"
"""

RETURN = r"""
_value:
  description: The findings, C(where) being the host, or the host, a colon and what was there.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def findings_on(findings: Iterable[Mapping[str, Any]], host: str) -> list[dict[str, Any]]:
    return [
        {**finding, "where": f"{host}:{finding['where']}" if finding.get("where") else host} for finding in findings
    ]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"findings_on": findings_on}
