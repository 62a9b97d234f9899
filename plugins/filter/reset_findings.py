# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: reset_findings
short_description: What stops a reset, the missing confirmation included
author:
  - infera.baremetal authors (@infera-project)
description:
  - Lists what is in the way on any host; and, unless there is nothing to remove anywhere, that the reset was not confirmed,
    with what would be removed from which host and the command that does it.
options:
  _input:
    description: What M(infera.baremetal.k3s_reset) returned in check mode, by host.
    type: dict
    required: true
  given:
    description:
      - V(cluster) (its name), V(confirm) (what the user gave), V(servers) (hosts), V(inventories), V(limit), and V(check),
        true where nothing will be removed anyway.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Stop unless it was confirmed
  infera.baremetal.assert_findings:
    subject: Reset
    findings: "{{ surveys | infera.baremetal.reset_findings(given) }}"
"""

RETURN = r"""
_value:
  description: The findings.
  type: list
  elements: dict
"""

from typing import Any, Mapping


def reset_findings(surveys: Mapping[str, Mapping[str, Any]], given: Mapping[str, Any]) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.reset import reset_findings as apply

    return apply(surveys, given)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"reset_findings": reset_findings}
