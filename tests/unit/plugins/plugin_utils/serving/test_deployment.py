# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The deployment's description: what is wrong is said all at once, under the variable that a user can set."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import (
    Worker,
    deployment_findings,
    from_inventory,
    parse_deployment,
)

DIGEST = "sha256:" + "0123456789abcdef" * 4
GOOD: dict[str, Any] = {
    "name": "chat",
    "recipe": "qwen3-0.6b",
    "router": {"node": "gpu1", "model_dir": "/mnt/models"},
    "prefill": [
        {"node": "gpu1", "address": "10.1.0.1", "model_dir": "/mnt/models", "libionic": "/opt/infera/libionic.so"}
    ],
    "decode": [{"node": "gpu2", "address": "10.1.0.2", "model_dir": "/mnt/models", "libionic": ""}],
}


def changed(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(GOOD), **changes}


def found(**changes: Any) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in deployment_findings(changed(**changes))]


def test_a_validated_combination_has_nothing_to_say() -> None:
    assert deployment_findings(GOOD) == []


def test_defaults_are_those_of_the_contract() -> None:
    deployment = parse_deployment(GOOD)

    assert (deployment.namespace, deployment.shape, deployment.transfer, deployment.network) == (
        "infera",
        "disaggregated",
        "mooncake",
        "host",
    )
    assert (deployment.engine.name, deployment.ready_timeout, deployment.allow_pull) == ("sglang", 1800, False)


def test_one_worker_a_host_of_each_group_and_the_first_server_as_router() -> None:
    groups = {"k3s_cluster": ["a", "b", "c"], "k3s_server": ["a"], "prefill": ["a"], "decode": ["b", "c"]}
    hostvars = {
        "a": {"cluster_address": "10.1.0.1", "serving_model_dir": "/m"},
        "b": {"cluster_address": "10.1.0.2", "serving_model_dir": "/m", "k3s_node_name": "node-b"},
        "c": {"cluster_address": "10.1.0.3", "serving_model_dir": "/n", "serving_libionic_path": "/opt/libionic.so"},
    }

    deployment = from_inventory({"recipe": "qwen3-0.6b"}, groups, hostvars)

    assert deployment["router"] == {"node": "a", "model_dir": "/m"}
    assert deployment["decode"] == [
        {"node": "node-b", "address": "10.1.0.2", "model_dir": "/m", "libionic": ""},
        {"node": "c", "address": "10.1.0.3", "model_dir": "/n", "libionic": "/opt/libionic.so"},
    ]
    assert deployment["nodes"] == ["a", "node-b", "c"]
    assert parse_deployment(deployment).workers[0] == Worker("prefill", "a", "10.1.0.1", "/m", "")


def test_the_router_group_decides_where_the_router_is() -> None:
    groups = {"k3s_cluster": ["a", "b"], "k3s_server": ["a"], "router": ["b"]}

    assert from_inventory({}, groups, {"a": {}, "b": {}})["router"]["node"] == "b"


def test_everything_wrong_is_told_at_once() -> None:
    codes = found(
        recipe="qwen",
        engine="sgland",
        shape="disagregated",
        api="operator",
        network="hostt",
        namespace="Infera",
        images={"engine": "lab/engine:v1", "overley": "x"},
        prefill=[],
        decode=[{"node": "gpu2", "address": "", "model_dir": ""}],
    )

    assert codes == [
        ("serving_name_invalid", "serving_namespace"),
        ("serving_shape_unknown", "serving_shape"),
        ("serving_network_unknown", "serving_network"),
        ("serving_api_unsupported", "serving_api"),
        ("serving_recipe_unknown", "serving_recipe"),
        ("serving_engine_unknown", "serving_engine"),
        ("serving_group_empty", "prefill"),
        ("serving_address_invalid", "gpu2"),
        ("serving_model_dir", "gpu2"),
        ("serving_image_key_unknown", "serving_images"),
        ("image_not_pinned", "serving_images.engine"),
    ]


@pytest.mark.parametrize(
    ("changes", "code", "where"),
    [
        ({"name": "a" * 25}, "serving_name_invalid", "serving_name"),
        ({"engine": "vllm"}, "serving_engine_not_in_recipe", "serving_engine"),
        ({"transfer": "mori"}, "serving_transfer_unknown", "serving_transfer"),
        ({"api": "helm"}, "serving_api_unknown", "serving_api"),
        ({"ready_timeout": "soon"}, "serving_ready_timeout", "serving_ready_timeout"),
        ({"images": {"overlay": "docker.io/lab/overlay@sha256:12"}}, "image_digest_invalid", "serving_images.overlay"),
        ({"router": {"node": "", "model_dir": ""}}, "serving_node_invalid", "router"),
        ({"nodes": ["gpu1", "gpu3"]}, "serving_node_unknown", "gpu2"),
        ({"shape": "aggregated"}, "serving_group_empty", "aggregated"),
        ({"replicas": 2}, "serving_key_unknown", "deployment"),
        ({"overrides": {"prefil": {}}}, "serving_override_unknown", "serving_overrides.prefil"),
        ({"overrides": {"decode": {"arg": []}}}, "serving_override_unknown", "serving_overrides.decode"),
        ({"overrides": {"decode": {"args": "--x"}}}, "serving_override_invalid", "serving_overrides.decode.args"),
        (
            {"overrides": {"decode": {"args": ["--tp-size", "8"]}}},
            "serving_override_derived",
            "serving_overrides.decode.args",
        ),
        (
            {"overrides": {"decode": {"args": ["--host=0.0.0.0"]}}},
            "serving_override_derived",
            "serving_overrides.decode.args",
        ),
        (
            {"overrides": {"decode": {"env": {"POD_IP": "10.0.0.1"}}}},
            "serving_override_derived",
            "serving_overrides.decode.env",
        ),
        (
            {"overrides": {"decode": {"resources": {"memory": "lots"}}}},
            "serving_override_invalid",
            "serving_overrides.decode.resources.memory",
        ),
        ({"overrides": {"router": {"image": "engine:latest"}}}, "image_not_pinned", "serving_overrides.router.image"),
        ({"overrides": ["decode"]}, "serving_mapping_expected", "serving_overrides"),
    ],
)
def test_each_fault_has_its_code_and_its_place(changes: dict[str, Any], code: str, where: str) -> None:
    assert (code, where) in found(**changes)


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1", "169.254.3.4", "fe80::1", "::", "224.0.0.1"])
def test_an_address_that_reaches_no_other_node_is_refused(address: str) -> None:
    worker = {**GOOD["decode"][0], "address": address}

    assert found(decode=[worker]) == [("serving_address_unreachable", "gpu2")]


@pytest.mark.parametrize("path", ["models", "/mnt/../etc", "<MODEL_DIR>", "/mnt/<MODEL>"])
def test_a_model_folder_is_an_absolute_path_without_placeholder(path: str) -> None:
    assert found(decode=[{**GOOD["decode"][0], "model_dir": path}]) == [("serving_model_dir", "gpu2")]


def test_prefill_and_decode_do_not_share_a_node() -> None:
    worker = {**GOOD["decode"][0], "node": "gpu1", "address": "10.1.0.9"}

    assert found(decode=[worker]) == [("serving_node_shared", "gpu1")]


def test_two_nodes_do_not_share_an_address() -> None:
    assert found(decode=[{**GOOD["decode"][0], "address": "10.1.0.1"}]) == [("serving_address_shared", "gpu1, gpu2")]


def test_a_group_that_does_not_exist_names_the_nearest() -> None:
    finding = deployment_findings(changed(prefill=[], groups=["prefil", "decode"]))[0]

    assert (
        finding.message
        == "shape disaggregated needs at least one prefill worker, and the group prefill does not exist (did you mean prefil?)"
    )


def test_a_missing_model_folder_is_told_once_for_router_and_worker_on_one_node() -> None:
    prefill = {**GOOD["prefill"][0], "model_dir": ""}

    assert found(prefill=[prefill], router={"node": "gpu1", "model_dir": ""}) == [("serving_model_dir", "gpu1")]


def test_images_are_named_as_the_runtime_keeps_them() -> None:
    images = {"engine": f"lmsysorg/sglang:v1@{DIGEST}", "overlay": f"registry.local:5000/overlay@{DIGEST}"}

    deployment = parse_deployment(changed(images=images))

    assert deployment.images == {
        "engine": f"docker.io/lmsysorg/sglang:v1@{DIGEST}",
        "overlay": f"registry.local:5000/overlay@{DIGEST}",
    }


def test_mappings_may_arrive_as_text() -> None:
    deployment = parse_deployment(changed(overrides='{"decode": {"env": {"DEBUG": 1, "SGLANG_USE_AITER": null}}}'))

    assert deployment.override("decode").env == {"DEBUG": "1", "SGLANG_USE_AITER": None}


def test_a_combination_that_was_never_run_is_said_to_be_so() -> None:
    findings = deployment_findings(changed(shape="aggregated", aggregated=[GOOD["decode"][0]]))

    assert [(finding.code, finding.severity) for finding in findings] == [("serving_not_validated", "info")]
    assert findings[0].message == "qwen3-0.6b, sglang, aggregated, network host: not run on real hardware"


def test_the_pod_network_is_warned_about_and_needs_no_address() -> None:
    worker = {**GOOD["decode"][0], "address": ""}

    assert found(network="pod", decode=[worker]) == [
        ("serving_network_pod", "serving_network"),
        ("serving_not_validated", "serving_recipe"),
    ]


def test_parsing_raises_what_the_findings_say() -> None:
    with pytest.raises(FindingError, match="serving_recipe: there is no recipe ''"):
        parse_deployment({})
