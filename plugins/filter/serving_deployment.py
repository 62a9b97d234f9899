# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_deployment
short_description: The description of a deployment from variables and inventory groups
description:
  - Adds C(router), C(prefill), C(decode) and C(aggregated) to the settings, from the inventory groups of these names.
  - Of each host it takes C(k3s_node_name) (else its name), C(cluster_address), C(serving_model_dir) and C(serving_libionic_path).
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The settings, with the keys of the deployment that are no place.
    type: dict
    required: true
  groups:
    description: The inventory's C(groups).
    type: dict
    required: true
  hostvars:
    description: The inventory's C(hostvars).
    type: dict
    required: true
  record:
    description: The cluster record, for what the inventory leaves to earlier stages. See P(infera.baremetal.record#filter).
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Describe a deployment
  ansible.builtin.debug:
    msg: "{{ {'name': 'chat', 'recipe': 'qwen3-0.6b'} | infera.baremetal.serving_deployment(groups, hostvars) }}"
"""

RETURN = r"""
_value:
  description: The deployment, unchecked.
  type: dict
"""

from typing import Any, Mapping


def serving_deployment(
    settings: Mapping[str, Any],
    groups: Mapping[str, list[str]],
    hostvars: Mapping[str, Any],
    record: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import from_inventory

    return from_inventory(settings, groups, hostvars, record)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_deployment": serving_deployment}
