# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: node_findings
short_description: What nodes lack of what their pods will want
description:
  - Images that containerd does not hold, and folders that are not there, out of what a role registered on each host.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The hosts that were looked at.
    type: list
    elements: str
    required: true
  hostvars:
    description: The inventory's C(hostvars).
    type: dict
    required: true
  images:
    description: Name of the variable in which the result of M(infera.baremetal.containerd_image) was registered.
    type: str
    required: true
  pull_variable:
    description: Name of the variable that allows to pull, for the message.
    type: str
    required: true
  allow_pull:
    description: Whether an image that is missing will be pulled.
    type: bool
    default: false
  predicting:
    description: Whether this is check mode, in which no earlier stage has brought anything either.
    type: bool
    default: false
  folder:
    description: Name of the variable in which the result of M(ansible.builtin.stat) was registered.
    type: str
    default: ""
  folders:
    description: Node to the path that was looked at.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Show what the nodes lack
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts | infera.baremetal.node_findings(hostvars, images='query', pull_variable='serving_allow_pull') }}"
"""

RETURN = r"""
_value:
  description: The findings; an empty list when nothing is missing.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def node_findings(
    hosts: Iterable[str],
    hostvars: Mapping[str, Any],
    images: str,
    pull_variable: str,
    allow_pull: bool = False,
    predicting: bool = False,
    folder: str = "",
    folders: Mapping[str, str] | None = None,
) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.nodes import node_findings as findings_of

    nodes = [_node(host, hostvars[host], images, folder, folders or {}) for host in hosts]
    return [finding.to_dict() for finding in findings_of(nodes, pull_variable, allow_pull, predicting)]


def _node(host: str, variables: Mapping[str, Any], images: str, folder: str, folders: Mapping[str, str]) -> Any:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.nodes import Node

    name = str(variables.get("k3s_node_name") or host)
    seen = (variables.get(folder) or {}).get("stat")
    return Node(
        name=name,
        missing_images=tuple((variables.get(images) or {}).get("missing") or ()),
        folder=folders.get(name, ""),
        has_folder=None if seen is None else bool(seen.get("isdir")),
    )


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"node_findings": node_findings}
