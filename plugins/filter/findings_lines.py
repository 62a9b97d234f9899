# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: findings_lines
short_description: Findings as lines for people, the worst first
author:
  - infera.baremetal authors (@infera-project)
description:
  - One line a finding, with its fix, as every stage writes them.
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
    msg: "{{ preflight_findings | infera.baremetal.findings_lines }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from typing import Any

from ansible_collections.infera.baremetal.plugins.module_utils.findings import summary


def findings_lines(findings: list[dict[str, Any]]) -> list[str]:
    return summary(findings).splitlines()


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"findings_lines": findings_lines}
