# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: rail_rounds
short_description: Rounds in which all pairs of rails are measured, no NIC twice at once
description:
  - Hosts meet as in a round-robin tournament, so N hosts take N-1 rounds (N where N is odd). In a round a host has one opponent, and
    all rails of the two are measured side by side.
  - Measured are the pairs of rails that P(infera.baremetal.fabric#filter) calls ok. Pairs without anything to measure are left out.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The C(pairs) that P(infera.baremetal.fabric#filter) returns.
    type: list
    elements: dict
    required: true
  rails:
    description: Host -> its rails, as RV(infera.baremetal.rail_info#module:rails) has them.
    type: dict
    required: true
  addresses:
    description: Host -> address at which the tools agree over TCP. Hosts without one take no part.
    type: dict
    required: true
  missing:
    description:
      - Host -> RV(infera.baremetal.rail_rdma_test#module:missing). A host without C(ibv_rc_pingpong) takes no part; without C(ib_write_bw) it is
        tried and not measured.
    type: dict
    default: {}
  first_port:
    description: First TCP port of a server. Each rail takes two.
    type: int
    default: 18515
  all_links:
    description: Whether pairs of rails are tried, too, that fabric does not call ok. Their success proves nothing.
    type: bool
    default: false
  both_ways:
    description: Whether each pair of hosts is measured a second time with its ends swapped, since writes go from client to server.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Plan the rounds
  ansible.builtin.set_fact:
    rounds: "{{ fabric.pairs | infera.baremetal.rail_rounds(rails, {'gpu1': '10.1.0.1', 'gpu2': '10.1.0.2'}) }}"
"""

RETURN = r"""
_value:
  description:
    - One entry a round, C(server) and C(client), each host -> O(infera.baremetal.rail_rdma_test#module:tests) of that host.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping, Optional, Sequence


def rail_rounds(
    pairs: Iterable[Mapping[str, Any]],
    rails: Mapping[str, Sequence[Mapping[str, Any]]],
    addresses: Mapping[str, str],
    missing: Optional[Mapping[str, Sequence[str]]] = None,
    first_port: int = 18515,
    all_links: bool = False,
    both_ways: bool = False,
) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.module_utils.rounds import plan

    return plan(pairs, rails, addresses, missing, int(first_port), all_links, both_ways)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"rail_rounds": rail_rounds}
