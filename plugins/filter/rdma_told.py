# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: rdma_told
short_description: What the RDMA exchanges gave on one host
description:
  - Puts together what the role rails kept of M(infera.baremetal.rail_rdma_test) on a host, in the form that
    P(infera.baremetal.rdma_results#filter) takes.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The host's variables, from Ansible's C(hostvars).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what this host exchanged
  ansible.builtin.debug:
    msg: "{{ hostvars[inventory_hostname] | infera.baremetal.rdma_told }}"
"""

RETURN = r"""
_value:
  description: C(results) as client, C(servers) and C(missing) tools.
  type: dict
"""

from typing import Any, Mapping


def rdma_told(variables: Mapping[str, Any]) -> dict[str, Any]:
    served = variables.get("_rails_served") or {}
    return {
        "results": list(variables.get("_rails_exchanged") or []),
        "servers": list(served.get("servers") or []),
        "missing": list(served.get("missing") or []),
    }


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"rdma_told": rdma_told}
