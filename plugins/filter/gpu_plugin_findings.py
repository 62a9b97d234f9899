# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_plugin_findings
short_description: Nodes that offer another number of GPUs than they should
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
  expected:
    description: Node to number, see P(infera.baremetal.gpu_plugin_expected#filter).
    type: dict
    required: true
  pods:
    description: The plugin's pods, for the reason.
    type: list
    elements: dict
    default: []
  logs:
    description: Results of a loop of M(kubernetes.core.k8s_log) over the pods' names.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Show what is missing
  ansible.builtin.debug:
    msg: "{{ nodes.resources | infera.baremetal.gpu_plugin_findings({'node1': 8}) }}"
"""

RETURN = r"""
_value:
  description: The findings.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def gpu_plugin_findings(
    nodes: Iterable[Mapping[str, Any]],
    expected: Mapping[str, int],
    pods: Iterable[Mapping[str, Any]] = (),
    logs: Iterable[Mapping[str, Any]] = (),
) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import gpu_findings
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import logs_by_pod

    return [finding.to_dict() for finding in gpu_findings(expected, nodes, pods, logs_by_pod(logs))]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"gpu_plugin_findings": gpu_plugin_findings}
