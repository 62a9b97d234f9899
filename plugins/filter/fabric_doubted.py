# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: fabric_doubted
short_description: The hosts with which a host makes a pair that is not full
description:
  - With them it is worth to try all rails against all, since cables or names may be exchanged.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The pairs that P(infera.baremetal.fabric#filter) returned.
    type: list
    elements: dict
    required: true
  host:
    description: The host.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Show whose rails are in doubt
  ansible.builtin.debug:
    msg: "{{ fabric.pairs | infera.baremetal.fabric_doubted(inventory_hostname) }}"
"""

RETURN = r"""
_value:
  description: Names of the other hosts; a pair of which nothing is known is no reason to try again.
  type: list
  elements: str
"""

from typing import Any, Iterable, Mapping


def fabric_doubted(pairs: Iterable[Mapping[str, Any]], host: str) -> list[str]:
    doubted = [pair for pair in pairs if host in (pair["a"], pair["b"]) and pair["verdict"] not in ("full", "unknown")]
    return [pair["b"] if pair["a"] == host else pair["a"] for pair in doubted]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"fabric_doubted": fabric_doubted}
