# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The plan that the record keeps."""

from __future__ import annotations

import json
from typing import Any

from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import parse_deployment
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.plan import deployment_plan, endpoint

DESCRIBED: dict[str, Any] = {
    "recipe": "qwen3-0.6b",
    "router": {"node": "head", "model_dir": "/srv/models"},
    "prefill": [{"node": "gpu1", "address": "10.1.0.1", "model_dir": "/m"}],
    "decode": [{"node": "gpu2", "address": "10.1.0.2", "model_dir": "/n"}],
}
PLAN = deployment_plan(parse_deployment(DESCRIBED))


def test_where_each_pod_should_be() -> None:
    assert [(pod["role"], pod["node"], pod["address"]) for pod in PLAN["pods"]] == [
        ("router", "head", ""),
        ("prefill", "gpu1", "10.1.0.1"),
        ("decode", "gpu2", "10.1.0.2"),
    ]


def test_each_node_needs_engine_and_overlay_and_its_own_folder() -> None:
    assert sorted(PLAN["images"]) == ["gpu1", "gpu2", "head"]
    assert ["overlay" in image["name"] for image in PLAN["images"]["head"]] == [True, False]
    assert PLAN["folders"] == {"head": "/srv/models", "gpu1": "/m", "gpu2": "/n"}


def test_the_wait_covers_the_startup_budget() -> None:
    # 1980 s of startup probe and three minutes.
    assert PLAN["wait_seconds"] == 2160


def test_the_plan_is_plain_data_and_says_what_was_run() -> None:
    assert json.loads(json.dumps(PLAN)) == PLAN
    assert PLAN["evidence"]["status"] == "validated"


def service(address: str) -> dict[str, Any]:
    return {"kind": "Service", "metadata": {"name": "infera-router"}, "spec": {"clusterIP": address}}


def test_the_endpoint_is_the_services_address() -> None:
    assert (
        endpoint(PLAN, [{"kind": "Namespace", "metadata": {"name": "infera"}}, service("10.43.1.2")])
        == "http://10.43.1.2:8000"
    )
    assert endpoint(PLAN, [service("fd00::1")]) == "http://[fd00::1]:8000"
    assert endpoint(PLAN, [service("")]) == endpoint(PLAN, []) == ""
