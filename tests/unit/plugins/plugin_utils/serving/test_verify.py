# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What runs, against what was meant to."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.verify import (
    answer_findings,
    answer_text,
    log_findings,
    placement_findings,
    worker_findings,
)

PLAN: dict[str, Any] = {
    "network": "host",
    "pods": [
        {"instance": "infera-router", "role": "router", "node": "gpu1", "address": ""},
        {"instance": "infera-prefill-gpu1", "role": "prefill", "node": "gpu1", "address": "10.1.0.1"},
        {"instance": "infera-decode-gpu2", "role": "decode", "node": "gpu2", "address": "10.1.0.2"},
    ],
}
PREFILL = {"url": "http://10.1.0.1:30000", "disagg_mode": "prefill"}
DECODE = {"url": "http://10.1.0.2:30000", "disagg_mode": "decode"}


def pod(instance: str, node: str, ready: bool = True, ip: str = "", leaving: bool = False) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": f"{instance}-x", "labels": {"app.kubernetes.io/instance": instance}}
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {"conditions": [{"type": "Ready", "status": str(ready)}], "podIP": ip}
    return {"metadata": metadata, "spec": {"nodeName": node}, "status": status}


def pods() -> list[dict[str, Any]]:
    return [pod(each["instance"], each["node"], ip=f"10.42.0.{number}") for number, each in enumerate(PLAN["pods"])]


def codes(findings: list[Any]) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in findings]


def test_every_pod_in_its_place_gives_no_finding() -> None:
    assert placement_findings(PLAN, pods()) == []


def test_evicted_pods_that_kubernetes_keeps_do_not_count() -> None:
    evicted = [
        {**pod("infera-decode-gpu2", "gpu2", ready=False), "status": {"phase": "Failed", "reason": "Evicted"}}
    ] * 6

    assert placement_findings(PLAN, [*pods(), *evicted]) == []
    assert codes(placement_findings(PLAN, [*pods()[:2], *evicted])) == [("verify_pod_missing", "infera-decode-gpu2")]


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (pods()[:2], [("verify_pod_missing", "infera-decode-gpu2")]),
        ([*pods()[:2], pod("infera-decode-gpu2", "gpu1")], [("verify_pod_misplaced", "infera-decode-gpu2-x")]),
        (
            [*pods()[:2], pod("infera-decode-gpu2", "gpu2", ready=False)],
            [("verify_pod_not_ready", "infera-decode-gpu2-x")],
        ),
        ([*pods(), pod("infera-decode-gpu2", "gpu2")], [("verify_pod_surplus", "infera-decode-gpu2")]),
        ([*pods(), pod("infera-decode-gpu3", "gpu3")], [("verify_pod_unknown", "infera-decode-gpu3-x")]),
        ([*pods(), pod("infera-decode-gpu3", "gpu3", leaving=True)], []),
    ],
    ids=["missing", "misplaced", "not ready", "surplus", "unknown", "unknown but leaving"],
)
def test_pods(listed: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    assert codes(placement_findings(PLAN, listed)) == expected


@pytest.mark.parametrize(
    "answer",
    [
        [PREFILL, DECODE],
        {"workers": [PREFILL, DECODE]},
        {"data": [PREFILL, DECODE]},
        {"workers": {"a": PREFILL, "b": DECODE}},
    ],
)
def test_exactly_the_wanted_workers_in_whatever_form_the_router_lists_them(answer: Any) -> None:
    assert worker_findings(PLAN, {"status": 200, "json": answer}) == []


@pytest.mark.parametrize(
    ("workers", "expected"),
    [
        ([PREFILL], [("verify_worker_missing", "infera-decode-gpu2")]),
        (
            [PREFILL, DECODE, {"url": "http://10.1.0.3:30000", "disagg_mode": "decode"}],
            [("verify_worker_unexpected", "router")],
        ),
        (
            [PREFILL, {"url": "http://0.0.0.0:30000", "disagg_mode": "decode"}],
            [("verify_worker_unreachable", "router"), ("verify_worker_missing", "infera-decode-gpu2")],
        ),
        (
            [PREFILL, {"url": "http://localhost:30000", "disagg_mode": "decode"}],
            [("verify_worker_unreachable", "router"), ("verify_worker_missing", "infera-decode-gpu2")],
        ),
        (
            [{**PREFILL, "disagg_mode": "decode"}, DECODE],
            [("verify_worker_unexpected", "router"), ("verify_worker_missing", "infera-prefill-gpu1")],
        ),
        (
            [PREFILL, {"url": "http://203.0.114.12:30000", "disagg_mode": "decode"}],
            [("verify_worker_unexpected", "router"), ("verify_worker_missing", "infera-decode-gpu2")],
        ),
        ([PREFILL, {**DECODE, "error": "connection refused"}], [("verify_worker_failing", "infera-decode-gpu2")]),
    ],
    ids=["missing", "surplus", "wildcard", "loopback", "wrong role", "public address", "known but failing"],
)
def test_workers(workers: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    assert codes(worker_findings(PLAN, {"status": 200, "json": {"workers": workers}})) == expected


def test_mixed_on_the_wire_is_aggregated_to_a_user() -> None:
    plan = {"network": "host", "pods": [{"instance": "a", "role": "aggregated", "node": "gpu1", "address": "10.1.0.1"}]}

    assert worker_findings(plan, [{"url": "http://10.1.0.1:30000", "disagg_mode": "mixed"}]) == []


def test_on_the_pod_network_the_address_is_the_pods_own() -> None:
    workers = [{**PREFILL, "url": "http://10.42.0.1:30000"}, {**DECODE, "url": "http://10.42.0.2:30000"}]

    assert worker_findings({**PLAN, "network": "pod"}, workers, pods()) == []


@pytest.mark.parametrize(
    "answer",
    [
        {"status": -1, "msg": "timed out"},
        {"status": 200, "content": "<html>"},
        {"status": 200, "json": {"workers": ["x"]}},
    ],
)
def test_an_answer_that_lists_no_workers_is_a_finding(answer: dict[str, Any]) -> None:
    assert codes(worker_findings(PLAN, answer)) == [("verify_workers_unreadable", "router")]


def completion(content: Any) -> dict[str, Any]:
    return {"status": 200, "json": {"choices": [{"message": {"content": content}}]}}


def test_an_answer_in_time_is_what_was_wanted() -> None:
    assert answer_findings(completion("Paris."), 60) == []
    assert answer_findings(completion("It is Paris."), 60, "Par[i]s") == []
    assert answer_text(completion("Paris.")) == "Paris."


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        (
            {"status": -1, "msg": "Request failed: timed out"},
            "verify_no_completion",
            "no completion within 60 s: Request failed: timed out",
        ),
        (
            {"status": 503, "json": {"error": "no prefill worker"}},
            "verify_no_completion",
            'HTTP status 503: {"error": "no prefill worker"}',
        ),
        (completion(""), "verify_completion_empty", "has no text"),
        ({"status": 200, "json": {}}, "verify_completion_empty", "has no text"),
        ({"status": 200, "content": "no json"}, "verify_completion_empty", "has no text"),
        (completion("London."), "verify_answer_wrong", "London. does not match verify_answer 'Paris'"),
    ],
)
def test_answers(answer: dict[str, Any], code: str, told: str) -> None:
    findings = answer_findings(answer, 60, "Paris")

    assert [finding.code for finding in findings] == [code]
    assert told in findings[0].message


def test_every_pods_log_is_there_to_explain_and_stops_nothing() -> None:
    findings = log_findings(PLAN, pods(), {"infera-decode-gpu2-x": "No RDMA devices found"})

    assert {finding.severity for finding in findings} == {"info"}
    assert "No RDMA devices found" in findings[2].message
    assert findings[0].message == "router on gpu1. It has no log."
