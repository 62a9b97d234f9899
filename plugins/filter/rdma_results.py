# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: rdma_results
short_description: What the RDMA exchanges of all rounds say
description:
  - Puts client and server of each exchange together and judges them over the whole fabric.
  - An exchange that succeeded proves its rail only where P(infera.baremetal.fabric#filter) calls the pair of rails ok, so that both ends'
    routes leave by it, and where the rail's own counter rose.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description:
      - Host -> what M(infera.baremetal.rail_rdma_test) returned there - C(results) of all its calls as client, C(servers) and C(missing).
    type: dict
    required: true
  rounds:
    description: What P(infera.baremetal.rail_rounds#filter) has planned.
    type: list
    elements: dict
    required: true
  pairs:
    description: The C(pairs) that P(infera.baremetal.fabric#filter) returns.
    type: list
    elements: dict
    required: true
  rails:
    description: Host -> its rails, as RV(infera.baremetal.rail_info#module:rails) has them.
    type: dict
    required: true
  floor:
    description: Gb/s that every pair of rails must reach. V(0) warns below three quarters of the slower rail's rate (300 of 400 Gb/s).
    type: float
    default: 0
notes:
  - V(rdma_failed) has one finding a cause, an error where serving needs one of the pairs. V(rdma_wrong_rail) - it succeeded, and the rail's
    counter did not rise. V(rdma_slow) - below O(floor) (an error where it is set and serving needs the pair), or below 80 % of the median
    of all, from three measurements on. V(rdma_uncounted) - the counter cannot be read, so nothing is proven (to know).
    V(rdma_untried) - planned, and no result. V(rdma_tools_missing) is to know.
"""

EXAMPLES = r"""
- name: Judge what was measured
  ansible.builtin.set_fact:
    rdma: "{{ told | infera.baremetal.rdma_results(rounds, fabric.pairs, rails, floor=300) }}"
"""

RETURN = r"""
_value:
  description:
    - C(exchanges), each C(host) (the client), C(rail), C(peer) (the server), C(peer_rail), C(ok), C(proven), C(usec) (microseconds for
      both ways of a ping-pong of 4096 bytes), C(gbps) (null without perftest), C(cause) and C(error).
    - C(median_gbps) of those that are proven (null where none was measured), and C(findings).
  type: dict
"""

from typing import Any, Iterable, Mapping, Sequence


def rdma_results(
    told: Mapping[str, Mapping[str, Any]],
    rounds: Iterable[Mapping[str, Any]],
    pairs: Iterable[Mapping[str, Any]],
    rails: Mapping[str, Sequence[Mapping[str, Any]]],
    floor: float = 0,
) -> dict[str, Any]:
    from ansible_collections.infera.baremetal.plugins.module_utils.rdma_results import judge

    return judge(told, rounds, pairs, rails, float(floor))


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"rdma_results": rdma_results}
