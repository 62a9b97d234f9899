# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_reachability
short_description: Which ports could not be reached, from where, and what to do
description:
  - Merges what all hosts saw of each other - one finding a port of a host, however many could not reach it. The fix names the
    firewall that was found on that host.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: Host -> RV(infera.baremetal.port_probe#module:results) of its probes.
    type: dict
    required: true
  listens:
    description: Host -> what port_probe returned there with C(state=listening).
    type: dict
    required: true
  hosts:
    description: Host -> what host_info returned as C(host).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what cannot be reached
  ansible.builtin.debug:
    msg: "{{ {'gpu1': preflight_probe.results} | infera.baremetal.preflight_reachability({'gpu2': preflight_listen}, preflight_hosts) }}"
"""

RETURN = r"""
_value:
  description: The findings; empty when everything can be reached.
  type: list
  elements: dict
"""

from typing import Any


def preflight_reachability(
    probes: dict[str, Any], listens: dict[str, Any], hosts: dict[str, Any]
) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.reachability import judge_reachability

    return [finding.to_dict() for finding in judge_reachability(probes, listens, hosts)]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_reachability": preflight_reachability}
