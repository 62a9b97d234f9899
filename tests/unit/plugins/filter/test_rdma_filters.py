# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""From fabric's pairs over the rounds to what the exchanges say, as the role goes."""

from __future__ import annotations

from typing import Any

from ansible_collections.infera.baremetal.plugins.filter import rail_rounds, rdma_results

PAIRS = [{"a": "a", "b": "b", "needed": True, "rails": [{"a_rail": 0, "b_rail": 0, "ok": True}]}]
RAILS = {
    host: [{"index": 0, "rdma_device": "ionic_0", "port": 1, "gid_index": 1, "netdev": "rail0", "rate_gbps": 400.0}]
    for host in ("a", "b")
}


def test_the_filters_fit_each_other() -> None:
    plan, judge = rail_rounds.FilterModule().filters(), rdma_results.FilterModule().filters()
    # Numbers come as text from a survey.
    rounds = plan["rail_rounds"](PAIRS, RAILS, {"a": "10.1.0.1", "b": "10.1.0.2"}, first_port="20000")
    assert rounds[0]["server"]["b"][0]["tcp_port"] == 20000
    ended: dict[str, Any] = {"ok": True, "cause": "", "error": "", "bytes": 100, "sent": 100, "counter": "counter"}
    result = {"rail": 0, "peer": "b", "peer_rail": 0, "pingpong": {**ended, "usec": 9.0, "gbps": None}}
    told = {"a": {"results": [{**result, "bandwidth": {**ended, "usec": None, "gbps": 310.0}}]}, "b": {}}

    judged = judge["rdma_results"](told, rounds, PAIRS, RAILS, floor="320")

    assert judged["median_gbps"] == 310.0
    assert [(finding["code"], finding["severity"]) for finding in judged["findings"]] == [("rdma_slow", "error")]
