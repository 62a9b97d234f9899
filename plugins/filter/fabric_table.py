# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: fabric_table
short_description: The rails of all hosts and their pairs, as lines of text
description:
  - Hosts x rails first, each cell the number of hosts that this rail reaches both ways (V(ok) for all, V(down) for a rail with an error
    of its own, V(-) for none such), then the pairs of hosts. Pairs that are full are counted, not listed, when there are many.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: What P(infera.baremetal.fabric#filter) returned.
    type: dict
    required: true
  seen:
    description: What it was made from, see P(infera.baremetal.rails_seen#filter).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the fabric
  ansible.builtin.debug:
    msg: "{{ fabric | infera.baremetal.fabric_table(seen) }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from typing import Any, Mapping


def fabric_table(fabric: Mapping[str, Any], seen: Mapping[str, Any]) -> list[str]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.fabric_table import lines

    return lines(fabric, seen)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"fabric_table": fabric_table}
