# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_plugin_manifests
short_description: The DaemonSet of AMD's device plugin
description:
  - Names as upstream has them, so that a plugin installed by hand becomes this one instead of a second.
  - Fails when the image is not pinned to a digest.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The plugin's image, C(repo:tag@sha256:...).
    type: str
    required: true
  sysfs:
    description: Folder of the host that the plugin sees as C(/sys).
    type: path
    default: /sys
  command:
    description: Command instead of the image's own.
    type: list
    elements: str
    default: []
  env:
    description: Environment variables.
    type: dict
    default: {}
  node_selector:
    description: Labels of the nodes to run on; all nodes without it.
    type: dict
    default: {}
  tolerations:
    description: Tolerations of the pods.
    type: list
    elements: dict
    default: []
  allow_pull:
    description: Whether a node without the image may pull it.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Write the manifest to a file
  ansible.builtin.copy:
    content: "{{ gpu_plugin_image | infera.baremetal.gpu_plugin_manifests | first | to_nice_yaml }}"
    dest: device-plugin.yml
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The objects.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping

from ansible.errors import AnsibleFilterError


def gpu_plugin_manifests(
    image: str,
    sysfs: str = "/sys",
    command: Iterable[str] = (),
    env: Mapping[str, Any] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Iterable[Mapping[str, Any]] = (),
    allow_pull: bool = False,
) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
    from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import plugin_manifests

    try:
        return plugin_manifests(image, sysfs, command, env, node_selector, tolerations, allow_pull)
    except FindingError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"gpu_plugin_manifests": gpu_plugin_manifests}
