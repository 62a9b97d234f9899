#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_probe
short_description: Prove which rails of the peers can be reached from each rail of this host
description:
  - Asks the kernel which way it would send from a rail's address to a peer's, sends echo requests from a socket that is bound to
    that address and to the rail's network device, and says what each pair of rails lacks. One call a host, all targets at once.
  - A route alone proves nothing (a default route makes everything look reachable), and an unbound C(ping) proves less - it leaves
    by another rail. A reply that comes in by another device than the rail's does not count.
  - Each direction is another host's to prove. What one host sees of an echo needs both, its route, source and gateway are its own.
  - Needs root (CAP_NET_RAW), since raw sockets do; neither C(ping) nor C(ip) need be installed. Both IPv4 and IPv6.
  - It never changes the routing. RV(probes) name the commands that would mend it.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Runs in check mode too, since it changes nothing.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
options:
  rails:
    description:
      - The rails of this host, as RV(infera.baremetal.rail_info#module:rails) has them. Used are C(index), C(rdma_device), C(netdev),
        C(address), C(prefix), C(mtu), C(state) and C(phys_state).
      - From a rail that is down, or has no address or no network device, nothing is sent.
    type: list
    elements: dict
    required: true
  peers:
    description:
      - The other hosts - C(host) and its C(rails) in the same form.
      - A peer without rails is listed in RV(summary) and fails nothing.
    type: list
    elements: dict
    required: true
  host:
    description: This host's name, which is left out of O(peers).
    type: str
    default: ""
  pairing:
    description:
      - V(same_index) asks rail I(i) of a peer from rail I(i) of this host.
      - V(all) asks every rail of a peer from every rail, to find out how they are cabled.
    type: str
    choices: [same_index, all]
    default: same_index
  count:
    description: How many echo requests each target gets, from 1 to 100.
    type: int
    default: 3
  interval:
    description: Seconds between two requests to one target, from 0.01 to 60.
    type: float
    default: 0.2
  timeout:
    description: How long a reply may take, in seconds, above 0 and at most 60.
    type: float
    default: 1.0
  jumbo:
    description:
      - Ask those that answered once more with packets as large as the MTU of the rail's network device, never to be fragmented.
      - This proves the way out; the way back is proven from the other end.
    type: bool
    default: false
  concurrency:
    description: How many requests may be without an answer at once, over all rails.
    type: int
    default: 1024
  rate:
    description: Packets per second from one rail at most, from 1 to 10000.
    type: float
    default: 1000.0
"""

EXAMPLES = r"""
- name: Read the rails of every host
  infera.baremetal.rail_info:
  register: rails

- name: Prove that they reach each other
  infera.baremetal.rail_probe:
    host: "{{ inventory_hostname }}"
    rails: "{{ rails.rails }}"
    peers:
      - host: gpu2
        rails: "{{ hostvars['gpu2'].rails.rails }}"
    jumbo: true
  register: probe

- name: Find out which rail is cabled to which
  infera.baremetal.rail_probe:
    rails: "{{ rails.rails }}"
    peers: "{{ peers }}"
    pairing: all
    count: 1
"""

RETURN = r"""
probes:
  description: One entry a pair of rails, in the order of O(peers) and O(rails).
  type: list
  elements: dict
  returned: success
  contains:
    rail:
      description: C(index) of this host's rail.
      type: int
    netdev:
      description: Its network device; empty where it has none.
      type: str
    source:
      description: Its address; empty where it has none.
      type: str
    peer:
      description: Name of the other host.
      type: str
    peer_rail:
      description: C(index) of the other host's rail.
      type: int
    destination:
      description: Its address.
      type: str
    route:
      description:
        - What C(ip route get) says of the destination from the source - C(device), C(prefsrc) (the source that the route prefers),
          C(gateway) (empty on the same link) and C(kind).
        - C(kind) is V(unicast), V(local), V(blackhole), V(unreachable), V(prohibit), or V(none) where there is no route or nothing was asked.
      type: dict
    echo:
      description:
        - C(sent), C(received), and C(rtt_ms) (C(min), C(avg), C(max) in milliseconds; null without a reply).
        - Nothing is sent where there is no source or no route.
      type: dict
    jumbo:
      description:
        - C(size) (bytes after the ICMP header, as C(ping -s) counts - 8952 for IPv6 at an MTU of 9000) and C(received).
        - Null where none was sent - without O(jumbo), or where nothing answered.
      type: dict
    verdict:
      description:
        - V(routable) - route, source, echo and (with O(jumbo)) the large echo hold.
        - V(source_missing) - the rail is down, or lacks its address or its network device. Nothing was sent.
        - V(no_route) - there is none, or it is a blackhole, unreachable or prohibit route. Nothing was sent.
        - V(wrong_device) - the route leaves by another device than the rail's, whatever the echo says.
        - V(wrong_source) - the route prefers another source address.
        - V(gateway_unresolved) - no reply, and the gateway (or a peer on the same link) has no link-layer address.
        - V(no_reply) - no reply by this rail. RV(probes[].reason) says so where replies came in by another rail, or a hop reported an error.
        - V(mtu_too_small) - small echoes are answered, those of the rail's MTU are not.
      type: str
    reason:
      description:
        - One line - what is wrong, and the commands that would mend it where they can be derived. Words in capitals, such as
          C(GATEWAY_OF_rail0), stand for what cannot be known from here.
        - Empty when all is well; the number of lost echoes where only some were answered.
      type: str
  sample:
    - rail: 1
      netdev: rail1
      source: "fd00:a:1:1::2"
      peer: gpu2
      peer_rail: 1
      destination: "fd00:a:1:2::2"
      route: {device: rail0, prefsrc: "fd00:a:0:1::2", gateway: "fd00:a:0:1::1", kind: unicast}
      echo: {sent: 0, received: 0, rtt_ms: {min: null, avg: null, max: null}}
      jumbo: null
      verdict: wrong_device
      reason: >-
        packets from fd00:a:1:1::2 to fd00:a:1:2::2 leave by rail0, not by rail1: ip -6 rule add from fd00:a:1:1::/64 table 101
summary:
  description: The call as a whole.
  type: dict
  returned: success
  contains:
    verdicts:
      description: Verdict -> number of pairs, every verdict named.
      type: dict
    sent:
      description: Echo requests, large ones included.
      type: int
    received:
      description: Replies that count.
      type: int
    seconds:
      description: Time that it took.
      type: float
    unprobed:
      description:
        - What could not be paired - C(peer), C(rail) (null for all of them) and C(reason), such as a peer without rails, a rail that the peer
          lacks, or a rail of it that has no address.
      type: list
      elements: dict
"""

import time
from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.echo import EchoError
from ansible_collections.infera.baremetal.plugins.module_utils.rail_probe import Settings, pair_up, probe, summarize

BOUNDS = {
    "count": (1, 100),
    "interval": (0.01, 60),
    "timeout": (0.001, 60),
    "concurrency": (1, 65536),
    "rate": (1, 10000),
}


def run(options: Dict[str, Any]) -> Dict[str, Any]:
    """The module's result; ValueError for what the options say wrongly."""
    for name, (low, high) in BOUNDS.items():
        if not low <= options[name] <= high:
            raise ValueError(f"{name} is {options[name]}; it must be from {low} to {high}")
    started = time.monotonic()
    pairs, unprobed = pair_up(options["rails"], options["peers"], options["pairing"], options["host"])
    probes = probe(pairs, Settings(jumbo=options["jumbo"], **{name: options[name] for name in BOUNDS}))
    return {
        "probes": [entry.to_dict() for entry in probes],
        "summary": summarize(probes, unprobed, started),
    }


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "rails": {"type": "list", "elements": "dict", "required": True},
            "peers": {"type": "list", "elements": "dict", "required": True},
            "host": {"type": "str", "default": ""},
            "pairing": {"type": "str", "choices": ["same_index", "all"], "default": "same_index"},
            "count": {"type": "int", "default": 3},
            "interval": {"type": "float", "default": 0.2},
            "timeout": {"type": "float", "default": 1.0},
            "jumbo": {"type": "bool", "default": False},
            "concurrency": {"type": "int", "default": 1024},
            "rate": {"type": "float", "default": 1000.0},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module.params)
    except (EchoError, ValueError) as error:
        module.fail_json(msg=f"rail_probe: {error}")
    except OSError as error:
        module.fail_json(
            msg=f"rail_probe: the kernel does not answer questions about routes (netlink): {error.strerror or error}"
        )
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
