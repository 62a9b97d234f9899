# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters around rails, addresses and libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.infera.baremetal.plugins.filter.cluster_addresses import cluster_addresses
from ansible_collections.infera.baremetal.plugins.filter.fabric import fabric
from ansible_collections.infera.baremetal.plugins.filter.fabric_doubted import fabric_doubted
from ansible_collections.infera.baremetal.plugins.filter.fabric_table import fabric_table
from ansible_collections.infera.baremetal.plugins.filter.libionic_findings import libionic_findings
from ansible_collections.infera.baremetal.plugins.filter.record import record


def seen(bad: bool = False) -> dict[str, Any]:
    def rail(index: int) -> dict[str, Any]:
        return {"index": index, "netdev": f"rail{index}", "state": "ACTIVE", "findings": []}

    def probe(index: int, peer: str) -> dict[str, Any]:
        verdict = "no_route" if bad and peer == "a" and index == 1 else "routable"
        return {"rail": index, "peer": peer, "peer_rail": index, "verdict": verdict, "reason": "none", "netdev": ""}

    return {
        host: {"rails": [rail(0), rail(1)], "findings": [], "probes": [probe(0, peer), probe(1, peer)]}
        for host, peer in (("a", "b"), ("b", "a"))
    }


def test_the_table_is_read_at_a_glance() -> None:
    assert fabric_table(fabric(seen()), seen()) == [
        "host  rail 0  rail 1",
        "a     ok      ok",
        "b     ok      ok",
        "",
        "pair   verdict  rails  fit",
        "a - b  full     2/2    yes",
    ]
    down = seen(bad=True)
    down["b"]["rails"][1].update(state="DOWN", findings=[{"severity": "error", "code": "x", "message": "", "fix": ""}])
    assert fabric_table(fabric(down, pairs_needed=[["a", "b"]]), down) == [
        "host  rail 0  rail 1",
        "a     ok      0/1",
        "b     ok      down",
        "",
        "pair   verdict  rails  fit",
        "a - b  partial  1/2    NO, and serving needs it",
    ]


def test_many_pairs_are_counted_and_the_bad_ones_listed() -> None:
    hosts = [f"h{number}" for number in range(10)]
    many = {
        host: {
            "rails": [{"index": 0, "netdev": "r", "findings": []}],
            "probes": [
                {
                    "rail": 0,
                    "peer": peer,
                    "peer_rail": 0,
                    "verdict": "routable" if {host, peer} != {"h1", "h2"} else "no_reply",
                    "reason": "",
                    "netdev": "r",
                }
                for peer in hosts
                if peer != host
            ],
        }
        for host in hosts
    }
    lines = fabric_table(fabric(many), many)

    assert lines[-2].startswith("h1 - h2  none")
    assert lines[-1] == "44 more pairs; 44 of all 45 are full"


def test_only_pairs_that_are_known_not_to_be_full_are_doubted() -> None:
    pairs = [
        {"a": "a", "b": "b", "verdict": "full"},
        {"a": "a", "b": "c", "verdict": "partial"},
        {"a": "b", "b": "c", "verdict": "none"},
        {"a": "c", "b": "d", "verdict": "unknown"},
    ]

    assert fabric_doubted(pairs, "c") == ["a", "b"]
    assert fabric_doubted(pairs, "d") == []


def test_a_host_that_the_run_leaves_out_is_known_from_the_record() -> None:
    hostvars = {"a": {"cluster_address": "10.0.0.1"}, "b": {"k3s_node_name": "node-b"}, "c": {}}
    kept = {
        "k3s/a": {"node": {"address": "9.9.9.9"}},
        "k3s/node-b": {"node": {"address": "10.0.0.2"}},
        "k3s/c": {"node": None},
    }

    assert cluster_addresses(["a", "b", "c"], hostvars, kept) == {"a": "10.0.0.1", "b": "10.0.0.2", "c": ""}


def test_the_record_is_read_where_there_is_one(tmp_path: Path) -> None:
    assert record(str(tmp_path)) == {}
    (tmp_path / "record.json").write_text(json.dumps({"verify": {"answer": "x"}}))
    assert record(str(tmp_path))["verify"]["answer"] == "x"
    (tmp_path / "record.json").write_text("{")
    with pytest.raises(AnsibleFilterError, match="is not JSON"):
        record(str(tmp_path))


def test_a_mismatch_stops_only_where_kv_is_to_move() -> None:
    finding = {"code": "verbs_abi_mismatch", "severity": "error", "message": "m", "fix": "f", "where": "/usr/lib/x"}
    hostvars = {
        "a": {"verbs": {"findings": [finding]}},
        "b": {"verbs": {"findings": [finding]}},
        "c": {"verbs": {"skipped": True}},
    }

    found = libionic_findings(["a", "b", "c"], hostvars, "verbs", {"prefill": ["a"], "aggregated": ["b"]})

    assert [(each["where"], each["severity"]) for each in found] == [
        ("a:/usr/lib/x", "error"),
        ("b:/usr/lib/x", "warning"),
    ]
