# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_plugin_seen
short_description: How many GPUs each node offers
description:
  - Reads the allocatable resources of the nodes.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The nodes of the cluster.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show how many GPUs each node offers
  ansible.builtin.debug:
    msg: "{{ nodes.resources | infera.baremetal.gpu_plugin_seen }}"
"""

RETURN = r"""
_value:
  description: Node to number.
  type: dict
"""

from typing import Any, Iterable, Mapping


def gpu_plugin_seen(nodes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import seen_gpus

    return seen_gpus(nodes)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"gpu_plugin_seen": gpu_plugin_seen}
