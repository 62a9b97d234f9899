# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_deployment_findings
short_description: What is wrong with the description of a deployment
description:
  - Checks the whole description before anything changes and lists all that is wrong at once, as findings.
  - A description without errors may still give findings, such as a combination that was never run on real hardware.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The deployment, see P(infera.baremetal.serving_deployment#filter).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ {'recipe': 'qwen'} | infera.baremetal.serving_deployment_findings }}"
"""

RETURN = r"""
_value:
  description: The findings; an empty list when there is nothing to say.
  type: list
  elements: dict
"""

from typing import Any, Mapping


def serving_deployment_findings(deployment: Mapping[str, Any]) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import deployment_findings

    return [finding.to_dict() for finding in deployment_findings(deployment)]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_deployment_findings": serving_deployment_findings}
