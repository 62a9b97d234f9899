# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: reset_notes
short_description: What is left to do after a host was reset
author:
  - infera.baremetal authors (@infera-project)
description:
  - The findings of the host's own reset, and what the rest of the cluster still knows of it.
options:
  _input:
    description: The findings of M(infera.baremetal.k3s_reset).
    type: list
    elements: dict
    required: true
  node:
    description:
      - V(host), its V(name) in the API, the V(kubeconfig) on the controller, the hosts of the V(cluster), those that are
        V(servers), and the V(hosts) of the run.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Say what stays
  ansible.builtin.debug:
    msg: "{{ result.findings | infera.baremetal.reset_notes(node) | infera.baremetal.findings_lines }}"
"""

RETURN = r"""
_value:
  description: The findings.
  type: list
  elements: dict
"""

from typing import Any, Mapping, Sequence


def reset_notes(findings: Sequence[Mapping[str, str]], node: Mapping[str, Any]) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.reset import reset_notes as apply

    return apply(findings, node)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"reset_notes": reset_notes}
