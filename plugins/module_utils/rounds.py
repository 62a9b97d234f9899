# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which pairs of rails are measured when, so that no NIC takes part in two measurements at once.

Hosts meet as in a round-robin tournament (circle method): N hosts need N-1 rounds, an odd number N. In a round a host has one
opponent, and its rails are mapped one to one, so all rails of a pair are measured side by side.
"""

from __future__ import annotations

from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils.rdma_test import TOOLS
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

Round = Dict[str, Dict[str, List[Dict[str, Any]]]]
# Two hosts, each with one of its rails.
Ends = Tuple[Tuple[str, Mapping[str, Any]], Tuple[str, Mapping[str, Any]]]

# A pair of rails takes two ports of the server: one for each tool.
FIRST_PORT, PORTS_EACH = 18515, 2


def tournament(hosts: Sequence[str]) -> Iterator[List[Tuple[str, str]]]:
    """Rounds in which everybody meets one other, and over all of them everybody meets everybody once."""
    seats: List[Optional[str]] = [*hosts, *([None] if len(hosts) % 2 else [])]
    for _round in range(len(seats) - 1):
        half = len(seats) // 2
        yield [(a, b) for a, b in zip(seats[:half], reversed(seats[half:])) if a is not None and b is not None]
        # The first keeps its seat, the others move on by one.
        seats = [seats[0], seats[-1], *seats[1:-1]]


def plan(
    pairs: Iterable[Mapping[str, Any]],
    rails: Mapping[str, Sequence[Mapping[str, Any]]],
    addresses: Mapping[str, str],
    missing: Optional[Mapping[str, Sequence[str]]] = None,
    first_port: int = FIRST_PORT,
    all_links: bool = False,
    both_ways: bool = False,
) -> List[Round]:
    """Rounds, each C({server: {host: tests}, client: {host: tests}}); a test is what rail_rdma_test takes.

    C(pairs) as fabric returns them, C(rails) as rail_info does, C(missing): host -> tools that it lacks. Hosts without an address or
    without C(ibv_rc_pingpong) take no part. Measured are the pairs of rails that fabric calls ok, with C(all_links) the others too,
    with C(both_ways) each pair of hosts twice. Rounds without a test are left out.
    """
    lacks = {host: (missing or {}).get(host, ()) for host, address in addresses.items() if address}
    ready = {host for host, tools in lacks.items() if TOOLS["pingpong"] not in tools}
    known = {
        host: {rail["index"]: rail for rail in rails.get(host, ()) if rail["gid_index"] is not None} for host in ready
    }
    mapped: Dict[Tuple[str, str], List[Ends]] = {}
    for pair in pairs:
        a, b = pair["a"], pair["b"]
        if {a, b} <= ready:
            links = [(link["a_rail"], link["b_rail"]) for link in pair["rails"] if link["ok"] or all_links]
            mapped[a, b] = [
                ((a, known[a][one]), (b, known[b][other]))
                for one, other in links
                if one in known[a] and other in known[b]
            ]
    rounds = []
    for meetings in tournament(sorted({host for pair in mapped for host in pair}, key=natural_key)):
        for swapped in (False, True) if both_ways else (False,):
            planned: Round = {"server": {}, "client": {}}
            for meeting in meetings:
                for number, ends in enumerate(mapped.get(meeting) or mapped.get(meeting[::-1], ())):
                    client, server = ends[::-1] if swapped else ends
                    wide = all(TOOLS["bandwidth"] not in lacks[host] for host in meeting)
                    common = {"tcp_port": first_port + PORTS_EACH * number, "bandwidth": wide}
                    for side, own, other in (("server", server, client), ("client", client, server)):
                        test = {**_test(own, other), "peer_address": addresses[other[0]], **common}
                        planned[side].setdefault(own[0], []).append(test)
            if planned["client"]:
                rounds.append(planned)
    return rounds


def _test(own: Tuple[str, Mapping[str, Any]], other: Tuple[str, Mapping[str, Any]]) -> Dict[str, Any]:
    rail = own[1]
    named = {key: rail[key] for key in ("rdma_device", "port", "gid_index", "netdev")}
    return {"rail": rail["index"], **named, "peer": other[0], "peer_rail": other[1]["index"]}
