# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_plugin_expected
short_description: How many GPUs each node should offer
description:
  - C(gpu_plugin_expected) of the host where it is set; else 8 on hosts of C(prefill), C(decode) and C(aggregated), and 0 elsewhere.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The inventory's C(groups).
    type: dict
    required: true
  hostvars:
    description: The inventory's C(hostvars).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show how many GPUs each node should offer
  ansible.builtin.debug:
    msg: "{{ groups | infera.baremetal.gpu_plugin_expected(hostvars) }}"
"""

RETURN = r"""
_value:
  description: Node to number; 0 means that the node is not looked at.
  type: dict
"""

from typing import Any, Mapping

from ansible.errors import AnsibleFilterError


def gpu_plugin_expected(groups: Mapping[str, list[str]], hostvars: Mapping[str, Any]) -> dict[str, int]:
    from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
    from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import expected_gpus

    try:
        return expected_gpus(groups, hostvars)
    except FindingError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"gpu_plugin_expected": gpu_plugin_expected}
