# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: image_list_findings
short_description: What is wrong with the cluster's list of images
description:
  - Lists every name without a digest, every name given twice with different digests, and every group that does not exist.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The images, each with C(name), and optionally C(archive) and C(hosts).
    type: list
    elements: dict
    required: true
  groups:
    description: The inventory's groups, with their hosts.
    type: dict
    required: true
  archives:
    description: Whether the archives are on the controller; then each must be there and hold the digest that its name pins.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ [{'name': 'docker.io/org/engine:v1'}] | infera.baremetal.image_list_findings(groups) }}"
"""

RETURN = r"""
_value:
  description: The findings; an empty list when nothing is wrong.
  type: list
  elements: dict
"""

from collections.abc import Mapping, Sequence
from typing import Any


def image_list_findings(
    images: Sequence[Mapping[str, Any]], groups: Mapping[str, Sequence[str]], archives: bool = False
) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.image_list import list_findings

    return [finding.to_dict() for finding in list_findings(images, groups, archives)]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"image_list_findings": image_list_findings}
