# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Four hosts of one rail at 400 Gb/s; the client of a pair is the host that comes first, and serving needs a with b."""

from __future__ import annotations

import itertools
from typing import Any, Optional

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.rdma_results import judge

HOSTS = ["a", "b", "c", "d"]
RAILS = {host: [{"index": 0, "rate_gbps": 400.0}] for host in HOSTS}


def outcome(ok: bool = True, **given: Any) -> dict[str, Any]:
    keys = ("cause", "error", "usec", "gbps", "bytes", "sent", "counter")
    return {"ok": ok, **dict.fromkeys(keys), "cause": "", "error": "", "counter": "", **given}


def good(gbps: Optional[float] = 335.0, **given: Any) -> dict[str, Any]:
    given = {"bytes": 1000, "sent": 1000, "counter": "rail0/tx_bytes", **given}
    bandwidth = None if gbps is None else outcome(gbps=gbps, **given)
    return {"pingpong": outcome(usec=8.5, **given), "bandwidth": bandwidth}


def bad(cause: str, error: str = "words") -> dict[str, Any]:
    return {"pingpong": outcome(False, cause=cause, error=error), "bandwidth": None}


def report(
    results: dict[str, dict[str, Any]],
    servers: Optional[dict[str, Any]] = None,
    missing: Optional[dict[str, list[str]]] = None,
    not_ok: tuple[str, ...] = (),
    floor: float = 0,
) -> dict[str, Any]:
    """C(results): pair, as C(ab) -> what its client measured; C(servers): pair -> what b said of the ping-pong."""
    told: dict[str, Any] = {
        host: {"results": [], "servers": [], "missing": (missing or {}).get(host, [])} for host in HOSTS
    }
    for (a, b), result in results.items():
        told[a]["results"].append({"rail": 0, "peer": b, "peer_rail": 0, **result})
    for (a, b), said in (servers or {}).items():
        told[b]["servers"].append({"rail": 0, "peer": a, "peer_rail": 0, "kind": "pingpong", "ok": False, **said})
    pairs = [
        {"a": a, "b": b, "needed": a + b == "ab", "rails": [{"a_rail": 0, "b_rail": 0, "ok": a + b not in not_ok}]}
        for a, b in itertools.combinations(HOSTS, 2)
    ]
    planned = [{"client": {a: [{"rail": 0, "peer": b, "peer_rail": 0}]}, "server": {}} for a, b in results]
    return judge(told, planned, pairs, RAILS, floor)


def findings(judged: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["code"], finding["severity"]) for finding in judged["findings"]]


def test_a_healthy_fabric_has_numbers_and_no_findings() -> None:
    judged = report({"ab": good(316.0), "ac": good(335.0), "bc": good(377.0)})

    assert judged["findings"] == []
    assert judged["median_gbps"] == 335.0
    assert judged["exchanges"][0] == {
        "host": "a",
        "rail": 0,
        "peer": "b",
        "peer_rail": 0,
        "ok": True,
        "proven": True,
        "usec": 8.5,
        "gbps": 316.0,
        "cause": "",
        "error": "",
    }


def test_without_perftest_an_exchange_is_proven_and_not_measured() -> None:
    judged = report({"ab": good(None)}, missing={"b": ["ib_write_bw"]})

    (finding,) = judged["findings"]
    assert (finding["code"], finding["severity"]) == ("rdma_tools_missing", "info")
    assert finding["message"] == "ib_write_bw not found, so RDMA was not measured with: b"
    assert "apt-get install perftest ibverbs-utils" in finding["fix"]
    assert (judged["exchanges"][0]["proven"], judged["median_gbps"]) == (True, None)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("queue_pair", "ip -6 route get"),
        ("gid", "rdma link show"),
        ("device", "playbooks/libionic.yml"),
        ("memory", "LimitMEMLOCK=infinity"),
        ("unacknowledged", "PFC"),
        ("port_in_use", "rails_rdma_port"),
        ("connection", "cluster_address"),
        ("hung", "routes between the switches"),
        ("completion", "dmesg"),
    ],
)
def test_a_failure_names_its_cause_and_what_to_do(cause: str, words: str) -> None:
    judged = report({"ab": bad(cause, "what the tool said")})

    (finding,) = judged["findings"]
    assert (finding["code"], finding["severity"]) == ("rdma_failed", "error")
    assert finding["message"] == "no RDMA between a rail 0 - b rail 0: a: what the tool said"
    assert words in finding["fix"]


@pytest.mark.parametrize(
    ("client", "server", "error"),
    [
        ("peer", {"cause": "queue_pair", "error": "the server's"}, "b: the server's"),
        ("connection", {"cause": "device", "error": "no device"}, "b: no device"),
        ("hung", {"cause": "waiting", "error": "no client came"}, "a: the client's"),
        ("peer", {"cause": "unknown", "error": "x"}, "a: the client's"),
        # Its own cause is the better one.
        ("gid", {"cause": "peer", "error": "x"}, "a: the client's"),
    ],
)
def test_the_server_tells_what_the_client_cannot_know(client: str, server: dict[str, str], error: str) -> None:
    judged = report({"ab": bad(client, "the client's")}, {"ab": server})

    assert judged["exchanges"][0]["error"] == error


def test_one_cause_is_told_once_with_the_rail_that_all_share() -> None:
    judged = report({"bd": bad("hung", "no end"), "cd": bad("hung", "no end"), "ab": bad("gid")})

    assert findings(judged) == [("rdma_failed", "error"), ("rdma_failed", "warning")]
    assert judged["findings"][1]["message"] == (
        "no RDMA between b rail 0 - d rail 0, c rail 0 - d rail 0: b: no end; d rail 0 is in 2 of 2"
    )


def test_an_exchange_that_succeeds_by_another_rail_is_not_proven() -> None:
    """Seen with Soft-RoCE: without its rule a rail's packets leave by another one, and arrive."""
    judged = report({"ab": good(bytes=1000, sent=120, counter="rail0/tx_bytes"), "ac": good(bytes=1000, sent=1000)})

    (finding,) = judged["findings"]
    assert (finding["code"], finding["severity"]) == ("rdma_wrong_rail", "error")
    assert "a rail 0 - b rail 0: 1000 bytes were sent, rail0/tx_bytes rose by 120" in finding["message"]
    assert [each["proven"] for each in judged["exchanges"]] == [False, True]


def test_a_counter_that_cannot_be_read_proves_nothing_and_is_told() -> None:
    judged = report({"ab": good(sent=None)})

    assert findings(judged) == [("rdma_uncounted", "info")]
    assert [(each["ok"], each["proven"]) for each in judged["exchanges"]] == [(True, False)]


def test_success_is_no_proof_where_a_route_leaves_by_the_wrong_device() -> None:
    judged = report({"ab": good(), "ac": bad("hung")}, not_ok=("ab", "ac"))

    # fabric has its own findings for both.
    assert judged["findings"] == []
    assert [(each["ok"], each["proven"]) for each in judged["exchanges"]] == [(True, False), (False, False)]
    assert judged["median_gbps"] is None


@pytest.mark.parametrize(
    ("speeds", "floor", "slow"),
    [
        # Three quarters of 400 Gb/s are the hint.
        ({"ab": 300.0}, 0, []),
        ({"ab": 299.0}, 0, [("rdma_slow", "warning")]),
        # A floor that is set is a demand where serving needs the pair.
        ({"ab": 299.0}, 250, []),
        ({"ab": 299.0}, 310, [("rdma_slow", "error")]),
        ({"ac": 299.0}, 310, [("rdma_slow", "warning")]),
        # 80 % of the median 390 are 312; two are too few to compare.
        ({"ab": 311.0, "ac": 390.0, "bc": 390.0}, 0, [("rdma_slow", "warning")]),
        ({"ab": 312.0, "ac": 390.0, "bc": 390.0}, 0, []),
        ({"ab": 311.0, "ac": 390.0}, 0, []),
    ],
)
def test_what_is_slow(speeds: dict[str, float], floor: float, slow: list[tuple[str, str]]) -> None:
    assert findings(report({pair: good(speed) for pair, speed in speeds.items()}, floor=floor)) == slow


def test_the_slow_ones_come_with_their_numbers_the_slowest_first() -> None:
    judged = report({"ab": good(390.0), "ac": good(335.0), "ad": good(120.5), "bd": good(90.0), "bc": good(340.0)})

    assert judged["findings"][0]["message"] == (
        "RDMA writes are slow (floor 300 Gb/s, median 335 Gb/s): b rail 0 - d rail 0 (90 Gb/s), a rail 0 - d rail 0 (120.5 Gb/s); "
        "d rail 0 is in 2 of 2"
    )


def test_what_was_planned_and_has_no_result_is_told() -> None:
    planned = [{"client": {"a": [{"rail": 0, "peer": peer, "peer_rail": 0} for peer in range(10)]}, "server": {}}]

    (finding,) = judge({"a": {}}, planned, [], {})["findings"]

    assert (finding["code"], finding["severity"]) == ("rdma_untried", "warning")
    assert finding["message"].endswith("a rail 0 - 7 rail 0 and 2 more")


def test_without_hosts_there_is_nothing_to_say() -> None:
    assert judge({}, [], [], {}) == {"exchanges": [], "median_gbps": None, "findings": []}
