# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: fabric
short_description: What all hosts saw of each other's rails, as pairs that are fit or not
description:
  - Pairs rails with rails (a bijection - the same index where both ends call it routable, otherwise whatever was measured), and
    hosts with hosts.
  - Two rails are good only when both ends say so. Where they do not, the end whose route, source or gateway is wrong is named; where both
    ends send as they should, it is the fabric between them.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description:
      - Host -> what it saw, as P(infera.baremetal.rails_seen#filter) returns it (C(rails), C(probes), C(unprobed), C(findings), C(error)), or the
        list of its probes alone.
    type: dict
    required: true
  hosts:
    description: Hosts that belong to the run, whether or not they said something.
    type: list
    elements: str
    default: []
  pairs_needed:
    description: Pairs of hosts (lists of two names) that serving needs. What makes one of them unfit is an error, all else a warning.
    type: list
    elements: list
    default: []
  min_rails:
    description: Rails that a pair must have in common, both ways, to be fit. V(0) stands for all of the host with fewer.
    type: int
    default: 0
notes:
  - Codes of findings are V(rails_unread), V(rail_source_missing), V(rail_no_route), V(rail_wrong_device), V(rail_wrong_source),
    V(rail_gateway_unresolved), V(rail_no_reply), V(rail_mtu_too_small), V(rail_untried), V(rails_cabling), V(rails_uneven), V(rails_pair_unfit),
    V(rails_hosts_left_out), and those of M(infera.baremetal.rail_info).
"""

EXAMPLES = r"""
- name: Put both ends together
  ansible.builtin.set_fact:
    fabric: "{{ seen | infera.baremetal.fabric(hosts=ansible_play_hosts_all, pairs_needed=[['gpu1', 'gpu2']]) }}"
"""

RETURN = r"""
_value:
  description:
    - C(pairs), each C(a), C(b), C(rails) (C(a_rail), C(b_rail), C(ok), C(reason); an index is null where a rail has no partner),
      C(verdict) (V(full), V(partial), V(one_way) - route, source and gateway hold from one end only -, V(none), or V(unknown) where
      nothing was tried), C(fit) and C(needed).
    - C(findings), aggregated over rails and peers.
  type: dict
"""

from typing import Any, Iterable, Mapping, Sequence


def fabric(
    seen: Mapping[str, Any],
    hosts: Iterable[str] = (),
    pairs_needed: Iterable[Sequence[str]] = (),
    min_rails: int = 0,
) -> dict[str, Any]:
    from ansible_collections.infera.baremetal.plugins.module_utils.fabric import merge

    return merge(seen, hosts, pairs_needed, min_rails)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"fabric": fabric}
