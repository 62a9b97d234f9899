# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One question to a deployment, with the router and the API server as doubles."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.action import serving_check
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.manifests import INSTANCE_LABEL
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.cluster_double import cluster

PLAN = {
    "endpoint": "http://10.43.0.9:8000",
    "namespace": "infera",
    "selector": "a=b",
    "network": "host",
    "pods": [
        {"instance": "router", "role": "router", "node": "a", "address": ""},
        {"instance": "decode", "role": "decode", "node": "b", "address": "10.0.0.2"},
    ],
}
DECODE = {"url": "http://10.0.0.2:30000", "disagg_mode": "decode"}
ANSWER = {"status": 200, "elapsed": 1, "json": {"choices": [{"message": {"content": "Paris"}}]}}


class Asking(serving_check.ActionModule):
    """Answers in the place of uri: by the end of the URL, the next of what is listed, the last one for ever."""

    answers: dict[str, list[dict[str, Any]]] = {}

    def _execute_module(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        answers = self.answers[keywords["module_args"]["url"].rpartition("/")[2]]
        return answers.pop(0) if len(answers) > 1 else answers[0]


def pod(instance: str, node: str) -> dict[str, Any]:
    return {
        "metadata": {"name": f"{instance}-x", "labels": {INSTANCE_LABEL: instance}},
        "spec": {"nodeName": node},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


@pytest.fixture(name="standing", autouse=True)
def _standing(monkeypatch: pytest.MonkeyPatch) -> Any:
    api, double = cluster()
    double.lists["/api/v1/namespaces/infera/pods"] = [[pod("router", "a"), pod("decode", "b")]]
    double.logs["/api/v1/namespaces/infera/pods/decode-x/log"] = "No RDMA devices found\n"
    monkeypatch.setattr(serving_check, "connect", lambda kubeconfig: api)
    return double


def ask(workers: list[list[dict[str, Any]]], answer: dict[str, Any], **options: Any) -> dict[str, Any]:
    Asking.answers = {
        "workers": [{"status": 200, "json": {"workers": each}} for each in workers],
        "completions": [answer],
    }
    return run(
        Asking, kubeconfig="k", plan=PLAN, request={"model": "m"}, deadline=options.pop("deadline", 5), **options
    )


def test_an_answer_after_the_workers_have_registered() -> None:
    result = ask([[], [DECODE]], ANSWER)

    assert (result["answer"], result["findings"], result["changed"]) == ("Paris", [], False)


def test_a_worker_that_never_registers_is_told_with_the_logs_and_the_model_is_not_asked() -> None:
    result = ask([[]], {}, deadline=0)

    assert [each["code"] for each in result["findings"]] == ["verify_worker_missing", "verify_log", "verify_log"]
    assert "No RDMA devices found" in result["findings"][2]["message"]
    assert result["answer"] == ""


def test_a_pod_in_the_wrong_place_counts_even_when_the_model_answers(standing: Any) -> None:
    standing.lists["/api/v1/namespaces/infera/pods"] = [[pod("router", "b"), pod("decode", "b")]]

    result = ask([[DECODE]], ANSWER)

    assert result["answer"] == "Paris"
    assert [each["code"] for each in result["findings"]][:1] == ["verify_pod_misplaced"]


def test_an_answer_that_is_not_the_expected_one_is_a_finding() -> None:
    result = ask([[DECODE]], ANSWER, pattern="London")

    assert result["findings"][0]["code"] == "verify_answer_wrong"
