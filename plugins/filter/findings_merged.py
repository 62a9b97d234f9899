# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: findings_merged
short_description: Findings that say the same of several hosts, as one
description:
  - Twenty hosts with swap become one finding with twenty names in C(where), not twenty findings.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: Findings, each with C(code), C(severity), C(message), C(fix) and C(where).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show them
  ansible.builtin.debug:
    msg: "{{ preflight_findings | infera.baremetal.findings_merged }}"
"""

RETURN = r"""
_value:
  description: The findings, in the order in which they first occurred.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def findings_merged(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.judge import merge

    return merge(findings)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"findings_merged": findings_merged}
