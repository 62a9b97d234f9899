# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Both ends put together: partners, verdicts, and which end is the cause."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.fabric import merge


def rail(index: int, *findings: dict[str, Any]) -> dict[str, Any]:
    return {"index": index, "netdev": f"rail{index}", "state": "ACTIVE", "findings": list(findings)}


def probe(own: int, peer: str, other: int, verdict: str = "routable", reason: str = "") -> dict[str, Any]:
    return {"rail": own, "netdev": f"rail{own}", "peer": peer, "peer_rail": other, "verdict": verdict, "reason": reason}


def error(code: str) -> dict[str, Any]:
    return {"code": code, "severity": "error", "message": "is DOWN", "fix": "ip link set", "where": "ionic_1/1"}


def whole(hosts: str, rails: int = 2) -> dict[str, Any]:
    """Hosts (a letter each) on which every rail reaches its like on all others."""
    return {
        host: {
            "rails": [rail(index) for index in range(rails)],
            "findings": [],
            "probes": [probe(index, peer, index) for peer in hosts if peer != host for index in range(rails)],
        }
        for host in hosts
    }


def changed(seen: dict[str, Any], host: str, own: int, peer: str, other: int, verdict: str, reason: str = "") -> None:
    """One end's view of one pair of rails becomes another."""
    probes = [
        each for each in seen[host]["probes"] if (each["rail"], each["peer"], each["peer_rail"]) != (own, peer, other)
    ]
    seen[host]["probes"] = [*probes, probe(own, peer, other, verdict, reason)]


def one(merged: dict[str, Any]) -> dict[str, Any]:
    (pair,) = merged["pairs"]
    return pair


def partners(pair: dict[str, Any]) -> list[tuple[Any, Any, bool]]:
    return [(link["a_rail"], link["b_rail"], link["ok"]) for link in pair["rails"]]


def told(merged: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(each["code"], each["severity"], each["where"]) for each in merged["findings"]]


def test_a_whole_fabric_is_full_and_says_nothing():
    merged = merge(whole("ab"), pairs_needed=[["a", "b"]])

    assert (one(merged)["verdict"], one(merged)["fit"], merged["findings"]) == ("full", True, [])
    assert partners(one(merged)) == [(0, 0, True), (1, 1, True)]


def test_probes_alone_are_enough():
    seen = {host: each["probes"] for host, each in whole("ab").items()}

    assert partners(one(merge(seen))) == [(0, 0, True), (1, 1, True)]


def test_a_missing_route_at_one_end_is_that_ends_and_the_silence_of_the_other_is_not_told():
    seen = whole("ab")
    changed(
        seen,
        "b",
        1,
        "a",
        1,
        "no_route",
        "no way from x to y (unreachable): ip -6 route replace default via G dev rail1 table 101",
    )
    changed(seen, "a", 1, "b", 1, "no_reply", "x does not answer")

    merged = merge(seen, pairs_needed=[["b", "a"]])

    assert (one(merged)["verdict"], one(merged)["fit"]) == ("partial", False)
    assert told(merged) == [("rail_no_route", "error", "b"), ("rails_pair_unfit", "error", "fabric")]
    assert merged["findings"][0]["message"] == "rail1 to a: no way from x to y (unreachable)"
    assert merged["findings"][0]["fix"] == "on b: `ip -6 route replace default via G dev rail1 table 101`"
    assert one(merged)["rails"][1]["reason"].startswith("b: no way")


def test_an_echo_that_came_back_over_a_wrong_route_is_no_proof():
    seen = whole("ab", rails=1)
    changed(seen, "b", 0, "a", 0, "wrong_device", "leaves by rail4: ip -6 rule add from p table 100")

    merged = merge(seen)

    assert (one(merged)["verdict"], one(merged)["fit"]) == ("one_way", False)
    assert told(merged)[0] == ("rail_wrong_device", "warning", "b")


def test_nothing_from_either_end_is_none():
    seen = whole("ab", rails=1)
    changed(seen, "a", 0, "b", 0, "no_route", "none")
    changed(seen, "b", 0, "a", 0, "wrong_source", "other")

    merged = merge(seen)

    assert one(merged)["verdict"] == "none"
    assert [code for code, _severity, _where in told(merged)] == [
        "rail_no_route",
        "rail_wrong_source",
        "rails_pair_unfit",
    ]


def test_where_both_ends_send_as_they_should_the_fabric_between_is_named_once_by_who_knows_most():
    seen = whole("ab", rails=1)
    changed(seen, "a", 0, "b", 0, "no_reply", "x does not answer within 1 s")
    changed(seen, "b", 0, "a", 0, "no_reply", "fd00::1 says: no route to the destination")

    merged = merge(seen)

    assert told(merged)[0] == ("rail_no_reply", "warning", "b")
    assert "fd00::1 says" in merged["findings"][0]["message"]


def test_exchanged_cables_are_paired_as_measured_and_named():
    seen = whole("ab", rails=3)
    for host, peer in (("a", "b"), ("b", "a")):
        for own, other in ((0, 1), (1, 0)):
            changed(seen, host, own, peer, own, "no_reply", "nobody")
            changed(seen, host, own, peer, other, "routable")

    merged = merge(seen, pairs_needed=[["a", "b"]])

    assert partners(one(merged)) == [(0, 1, True), (1, 0, True), (2, 2, True)]
    assert (one(merged)["verdict"], one(merged)["fit"]) == ("full", True)
    assert told(merged) == [("rails_cabling", "warning", "a")]
    assert "rail0 reaches rail1" in merged["findings"][0]["message"]


def test_partners_are_a_bijection_even_where_the_first_choice_would_leave_one_alone():
    """Rail 4 reaches 1 and 2, rail 5 reaches 1 only: rail 4 has to give 1 up."""
    seen: dict[str, Any] = {"a": {"rails": [rail(4), rail(5)]}, "b": {"rails": [rail(1), rail(2), rail(3)]}}
    seen["a"]["probes"] = [probe(4, "b", 1), probe(4, "b", 2), probe(5, "b", 1)]
    seen["b"]["probes"] = [probe(1, "a", 4), probe(2, "a", 4), probe(1, "a", 5)]

    pair = one(merge(seen))

    assert [link for link in partners(pair) if link[2]] == [(4, 2, True), (5, 1, True)]
    assert (None, 3, False) in partners(pair)
    assert pair["verdict"] == "partial"


def test_a_host_with_fewer_rails_makes_a_partial_pair_that_is_fit_with_what_it_has():
    seen = whole("ab", rails=2)
    seen["b"]["rails"] = [rail(0)]
    seen["b"]["probes"] = [probe(0, "a", 0)]
    seen["a"]["probes"] = [probe(0, "b", 0)]

    merged = merge(seen, pairs_needed=[["a", "b"]])

    assert (one(merged)["verdict"], one(merged)["fit"]) == ("partial", True)
    assert partners(one(merged)) == [(0, 0, True), (1, None, False)]
    assert told(merged) == [("rails_uneven", "warning", "fabric")]


def test_min_rails_says_how_many_are_enough():
    seen = whole("ab")
    changed(seen, "b", 1, "a", 1, "no_route", "none")

    assert one(merge(seen, min_rails=1))["fit"]
    assert not one(merge(seen, min_rails=2))["fit"]


def test_an_error_of_a_rail_stops_only_whose_pairs_need_it_and_is_told_once():
    seen = whole("ab")
    seen["b"]["rails"][1]["findings"] = [error("rail_down")]
    changed(seen, "b", 1, "a", 1, "source_missing", "is down")
    changed(seen, "a", 1, "b", 1, "no_reply", "silent")

    assert told(merge(seen, pairs_needed=[["a", "b"]]))[0] == ("rail_down", "error", "b:ionic_1/1")
    assert told(merge(seen, pairs_needed=[["a", "b"]], min_rails=1)) == [("rail_down", "warning", "b:ionic_1/1")]


def test_one_cause_on_many_rails_and_peers_is_one_finding():
    seen = whole("abc", rails=8)
    for index in range(8):
        for peer in "ac":
            changed(
                seen,
                "b",
                index,
                peer,
                index,
                "wrong_device",
                f"leave by eth0: ip -6 rule add from p{index} table {index}",
            )
            changed(seen, peer, index, "b", index, "no_reply", "silent")

    merged = merge(seen, pairs_needed=[["a", "b"]])

    assert [each for each in told(merged) if each[0] == "rail_wrong_device"] == [("rail_wrong_device", "error", "b")]
    found = next(each for each in merged["findings"] if each["code"] == "rail_wrong_device")
    assert "rail0 to a, c: leave by eth0 (and 7 more of its rails" in found["message"]
    assert found["fix"].count("ip -6 rule add") == 8


def test_a_host_that_could_not_be_read_is_unknown_and_an_error():
    seen = whole("ab")
    seen["c"] = {"rails": [], "probes": [], "findings": [], "error": "unreachable"}

    merged = merge(seen, hosts=["a", "b", "c", "d"], pairs_needed=[["a", "c"], ["a", "x"]])

    verdicts = {(pair["a"], pair["b"]): (pair["verdict"], pair["fit"]) for pair in merged["pairs"]}
    assert verdicts["a", "b"] == ("full", True)
    assert verdicts["a", "c"] == verdicts["a", "d"] == ("unknown", False)
    assert ("rails_unread", "error", "c") in told(merged)
    assert ("rails_hosts_left_out", "info", "fabric") in told(merged)


@pytest.mark.parametrize("verdict", ["gateway_unresolved", "mtu_too_small", "source_missing"])
def test_every_verdict_has_a_finding_with_a_fix(verdict: str):
    seen = whole("ab", rails=1)
    changed(seen, "a", 0, "b", 0, verdict, "it is so")

    (found, _pair) = merge(seen, pairs_needed=[["a", "b"]])["findings"]

    assert (found["code"], bool(found["fix"])) == (f"rail_{verdict}", True)


def test_an_end_that_was_not_tried_is_explained_by_the_rail_that_has_no_address():
    seen = whole("ab", rails=1)
    seen["b"]["rails"][0]["findings"] = [error("rail_gid_missing")]
    seen["a"]["probes"], seen["b"]["probes"] = [], [probe(0, "a", 0, "source_missing", "no address")]

    merged = merge(seen, pairs_needed=[["a", "b"]])

    assert told(merged) == [("rail_gid_missing", "error", "b:ionic_1/1"), ("rails_pair_unfit", "error", "fabric")]


def test_a_hundred_hosts_make_all_their_pairs():
    hosts = [f"gpu{number}" for number in range(100)]
    seen = {
        host: {
            "rails": [rail(index) for index in range(8)],
            "findings": [],
            "probes": [probe(index, peer, index) for peer in hosts if peer != host for index in range(8)],
        }
        for host in hosts
    }

    merged = merge(seen, pairs_needed=[[a, b] for a in hosts[:50] for b in hosts[50:]])

    assert len(merged["pairs"]) == 4950 and merged["findings"] == []


def test_rails_that_could_not_be_tried_say_why():
    seen = whole("ab", rails=1)
    for host, peer in (("a", "b"), ("b", "a")):
        seen[host]["probes"] = []
        reason = f"{peer}: has 10.0.0.1, which is not of the family of fd00::1"
        seen[host]["unprobed"] = [{"peer": peer, "rail": 0, "reason": reason}]

    merged = merge(seen, pairs_needed=[["a", "b"]])

    assert told(merged)[0] == ("rail_untried", "error", "a")
    assert "not of the family" in one(merged)["rails"][0]["reason"]
