# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: k3s_artifacts
short_description: Read the sha256 of files on the controller
description:
  - Adds to each file what its sha256 really is. Reads each file once; meant for a task that runs once.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The files, each with C(path), C(sha256) as it should be, and the C(variable) that pins it.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what is there
  ansible.builtin.debug:
    msg: "{{ [{'path': '/srv/k3s/k3s', 'sha256': k3s_binary_sha256, 'variable': 'k3s_binary_sha256'}] | infera.baremetal.k3s_artifacts }}"
"""

RETURN = r"""
_value:
  description: The files, each with C(found), its sha256 in lower-case hex, or null where it cannot be read.
  type: list
  elements: dict
"""

from typing import Any


def k3s_artifacts(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.k3s_config import file_sha256

    return [{**file, "found": file_sha256(file["path"])} for file in files]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"k3s_artifacts": k3s_artifacts}
