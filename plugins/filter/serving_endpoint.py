# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_endpoint
short_description: The URL of the router
description:
  - Finds the router's Service among the objects that M(infera.baremetal.serving_rollout) returned.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The plan, see P(infera.baremetal.serving_plan#filter).
    type: dict
    required: true
  resources:
    description: The objects as the API server has them.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show where the router answers
  ansible.builtin.debug:
    msg: "{{ plan | infera.baremetal.serving_endpoint(result.resources) }}"
"""

RETURN = r"""
_value:
  description: The URL, or an empty string while the Service has no address.
  type: str
"""

from typing import Any, Iterable, Mapping


def serving_endpoint(plan: Mapping[str, Any], resources: Iterable[Mapping[str, Any]]) -> str:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.plan import endpoint

    return endpoint(plan, resources)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_endpoint": serving_endpoint}
