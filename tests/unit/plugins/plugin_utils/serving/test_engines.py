# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How vLLM is spelt; SGLang's spelling is seen through the manifests."""

from __future__ import annotations

import json

from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engines import ENGINES, WorkerStart


def start(role: str) -> WorkerStart:
    return WorkerStart(model_path="/models/K", served_name="k", tensor_parallel=8, role=role, transfer="mooncake")


def test_vllm_tells_each_side_its_part_of_the_transfer() -> None:
    for role, kv_role in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
        arguments = ENGINES["vllm"].arguments(start(role))
        config = json.loads(arguments[arguments.index("--kv-transfer-config") + 1])
        assert config == {"kv_connector": "MooncakeConnector", "kv_role": kv_role}


def test_vllm_names_the_data_parallel_address_else_requests_hang_for_480_s() -> None:
    arguments = ENGINES["vllm"].arguments(start("decode"))

    assert arguments[arguments.index("--data-parallel-address") + 1] == "$(POD_IP)"
    assert ENGINES["vllm"].environment(start("decode")) == {"VLLM_MOONCAKE_BOOTSTRAP_PORT": "8998"}
    assert ENGINES["vllm"].address_variables == ("VLLM_HOST_IP",)


def test_an_aggregated_vllm_worker_transfers_nothing() -> None:
    assert "--kv-transfer-config" not in ENGINES["vllm"].arguments(start("aggregated"))
    assert ENGINES["vllm"].environment(start("aggregated")) == {}


def test_every_flag_that_is_derived_is_guarded_against_overrides() -> None:
    for engine in ENGINES.values():
        for role in ("prefill", "decode", "aggregated"):
            flags = {item for item in engine.arguments(start(role)) if item.startswith("--")}
            assert flags <= engine.derived_flags
