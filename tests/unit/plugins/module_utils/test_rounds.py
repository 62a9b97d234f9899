# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

import itertools
from typing import Any, Optional

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.rounds import plan, tournament


def rail(index: int, gid_index: Optional[int] = 1) -> dict[str, Any]:
    return {
        "index": index,
        "rdma_device": f"ionic_{index}",
        "port": 1,
        "gid_index": gid_index,
        "netdev": f"rail{index}",
    }


def pair(a: str, b: str, *links: tuple[Optional[int], Optional[int], bool]) -> dict[str, Any]:
    return {"a": a, "b": b, "rails": [{"a_rail": one, "b_rail": other, "ok": ok} for one, other, ok in links]}


def all_pairs(hosts: list[str], rails: int) -> list[dict[str, Any]]:
    return [pair(a, b, *((index, index, True) for index in range(rails))) for a, b in itertools.combinations(hosts, 2)]


@pytest.mark.parametrize(("hosts", "rounds"), [(0, 0), (1, 1), (2, 1), (3, 3), (4, 3), (5, 5), (16, 15), (17, 17)])
def test_everybody_meets_everybody_once_and_one_at_a_time(hosts: int, rounds: int) -> None:
    names = [f"h{number}" for number in range(hosts)]

    played = list(tournament(names))

    assert len(played) == rounds
    assert all(len({host for pair in meetings for host in pair}) == 2 * len(meetings) for meetings in played)
    met = [frozenset(pair) for meetings in played for pair in meetings]
    assert sorted(map(sorted, met)) == sorted(map(sorted, itertools.combinations(names, 2)))


def test_both_sides_of_a_pair_are_told_the_same_ports() -> None:
    rails = {"a": [rail(0), rail(1)], "b": [rail(0, gid_index=3), rail(1)]}
    # The cables of b's rails are exchanged.
    (only,) = plan([pair("a", "b", (0, 1, True), (1, 0, True))], rails, {"a": "10.1.0.1", "b": "10.1.0.2"})

    assert only["client"]["a"] == [
        {
            "rail": 0,
            "rdma_device": "ionic_0",
            "port": 1,
            "gid_index": 1,
            "netdev": "rail0",
            "peer": "b",
            "peer_rail": 1,
            "peer_address": "10.1.0.2",
            "tcp_port": 18515,
            "bandwidth": True,
        },
        {
            "rail": 1,
            "rdma_device": "ionic_1",
            "port": 1,
            "gid_index": 1,
            "netdev": "rail1",
            "peer": "b",
            "peer_rail": 0,
            "peer_address": "10.1.0.2",
            "tcp_port": 18517,
            "bandwidth": True,
        },
    ]
    served = [(test["rail"], test["gid_index"], test["peer_rail"], test["tcp_port"]) for test in only["server"]["b"]]
    assert served == [(1, 1, 0, 18515), (0, 3, 1, 18517)]
    assert list(only["client"]) == ["a"]
    assert list(only["server"]) == ["b"]


def test_no_nic_works_twice_in_a_round_and_all_pairs_are_measured() -> None:
    hosts = ["a", "b", "c", "d", "e"]
    rails = {host: [rail(0), rail(1)] for host in hosts}

    rounds = plan(all_pairs(hosts, 2), rails, dict.fromkeys(hosts, "10.1.0.1"))

    assert len(rounds) == 5
    measured = []
    for each in rounds:
        busy = [(host, test["rail"]) for side in each.values() for host, tests in side.items() for test in tests]
        assert len(busy) == len(set(busy))
        measured += [
            (frozenset((host, test["peer"])), test["rail"]) for host, tests in each["client"].items() for test in tests
        ]
    assert len(measured) == len(set(measured)) == 10 * 2


def test_with_both_ways_the_ends_are_swapped() -> None:
    rails = {"a": [rail(0)], "b": [rail(0)]}

    first, second = plan(all_pairs(["a", "b"], 1), rails, {"a": "10.1.0.1", "b": "10.1.0.2"}, both_ways=True)

    assert (list(first["client"]), list(second["client"])) == (["a"], ["b"])
    assert second["client"]["b"][0]["peer_address"] == "10.1.0.1"


@pytest.mark.parametrize(
    ("links", "options", "measured"),
    [
        ([(0, 0, True), (1, 1, False)], {}, [0]),
        ([(0, 0, True), (1, 1, False)], {"all_links": True}, [0, 1]),
        ([(0, 0, True), (1, None, False)], {"all_links": True}, [0]),
        # Rail 2 has no GID, and rail 7 is not there.
        ([(2, 2, True), (7, 7, True), (0, 0, True)], {}, [0]),
        ([(1, 1, False)], {}, None),
        ([], {}, None),
    ],
)
def test_what_is_measured(links: list[Any], options: dict[str, Any], measured: Optional[list[int]]) -> None:
    rails = {host: [rail(0), rail(1), rail(2, gid_index=None)] for host in ("a", "b")}

    rounds = plan([pair("a", "b", *links)], rails, {"a": "10.1.0.1", "b": "10.1.0.2"}, **options)

    assert [[test["rail"] for test in each["client"]["a"]] for each in rounds] == ([measured] if measured else [])


def test_hosts_without_the_tools_or_an_address_take_no_part() -> None:
    hosts = ["a", "b", "c", "d"]
    rails = {host: [rail(0)] for host in hosts}
    missing = {"b": ["ib_write_bw"], "c": ["ibv_rc_pingpong", "ib_write_bw"]}

    rounds = plan(all_pairs(hosts, 1), rails, {"a": "10.1.0.1", "b": "10.1.0.2", "c": "10.1.0.3", "d": ""}, missing)

    ((host, (test,)),) = [item for each in rounds for item in each["client"].items()]
    assert (host, test["peer"], test["bandwidth"]) == ("a", "b", False)
