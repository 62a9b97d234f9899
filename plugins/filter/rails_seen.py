# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: rails_seen
short_description: What every host saw of the rails, in the form that the fabric filter takes
description:
  - Collects what M(infera.baremetal.rail_info) and M(infera.baremetal.rail_probe) returned on each host. A host that could not be read
    keeps the reason as C(error).
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  read:
    description: Name of the variable that holds the result of M(infera.baremetal.rail_info).
    type: str
    required: true
  probed:
    description:
      - Names of the variables that hold results of M(infera.baremetal.rail_probe). Where two of them hold the same pair of rails, the
        first counts.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Show what was seen
  ansible.builtin.debug:
    msg: "{{ ansible_play_hosts | infera.baremetal.rails_seen(hostvars, 'rails_read', ['rails_probed']) }}"
"""

RETURN = r"""
_value:
  description: Host -> C(rails), C(findings), C(probes) and C(unprobed) (pairs that could not be tried), and C(error) where something could not be had.
  type: dict
"""

from typing import Any, Iterable, Mapping


def rails_seen(
    hosts: Iterable[str], hostvars: Mapping[str, Any], read: str, probed: Iterable[str] = ()
) -> dict[str, dict[str, Any]]:
    return {host: _seen(hostvars[host], read, list(probed)) for host in hosts}


def _seen(variables: Mapping[str, Any], read: str, probed: list[str]) -> dict[str, Any]:
    result = variables.get(read) or {}
    seen: dict[str, Any] = {key: list(result.get(key) or []) for key in ("rails", "findings")}
    seen["unprobed"] = []
    probes: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    errors = [] if "rails" in result else [str(result.get("msg") or "its rails were not read")]
    for name in probed:
        told = variables.get(name) or {}
        for probe in told.get("probes") or []:
            probes.setdefault((probe["rail"], probe["peer"], probe["peer_rail"]), probe)
        if told and "probes" not in told and not told.get("skipped"):
            errors.append(str(told.get("msg") or "its rails were not tried"))
        seen["unprobed"] = seen["unprobed"] or list((told.get("summary") or {}).get("unprobed") or [])
    seen["probes"] = list(probes.values())
    if errors:
        seen["error"] = "; ".join(errors)
    return seen


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"rails_seen": rails_seen}
