# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_plugin_input_findings
short_description: What is wrong with the image of the device plugin
description:
  - Says when the image is not pinned to a digest, or is no image's name.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The image.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ 'docker.io/rocm/k8s-device-plugin:1.31.0.11' | infera.baremetal.gpu_plugin_input_findings }}"
"""

RETURN = r"""
_value:
  description: The findings; an empty list when nothing is wrong.
  type: list
  elements: dict
"""

from typing import Any


def gpu_plugin_input_findings(image: str) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import input_findings

    return [finding.to_dict() for finding in input_findings(image)]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"gpu_plugin_input_findings": gpu_plugin_input_findings}
