# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: record
short_description: What the stages of earlier runs wrote into the cluster record
description:
  - Reads C(record.json) on the controller. A host that C(--limit) leaves out is known from it.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The folder of the cluster, C(cluster_dir).
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show the address of a node
  ansible.builtin.debug:
    msg: "{{ (cluster_dir | infera.baremetal.record)['k3s/gpu1'].node.address }}"
"""

RETURN = r"""
_value:
  description: Stage -> what it wrote. Empty where there is no record yet.
  type: dict
"""

from typing import Any


def record(folder: str) -> dict[str, Any]:
    import os

    from ansible.errors import AnsibleFilterError
    from ansible_collections.infera.baremetal.plugins.plugin_utils.record import RecordError, read

    try:
        return read(os.path.join(os.path.abspath(folder), "record.json"))
    except (RecordError, OSError) as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"record": record}
