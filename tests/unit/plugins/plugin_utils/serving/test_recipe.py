# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Recipes: the collection's own are complete and honest; a faulty one says all that is wrong with it."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.recipe import (
    RECIPES,
    Resources,
    known_recipes,
    load_recipe,
    parse_recipe,
)

MINIMAL: dict[str, Any] = {
    "name": "own",
    "engines": {
        "sglang": {
            "model": {"path": "Own", "served_name": "own"},
            "images": {"engine": "", "overlay": ""},
            "tensor_parallel": 8,
            "ready_timeout": 600,
        }
    },
}


def faults(content: Any) -> list[str]:
    with pytest.raises(FindingError) as caught:
        parse_recipe(content, "own.yml", "own")
    return [f"{finding.where}: {finding.message}" for finding in caught.value.findings]


@pytest.mark.parametrize("name", sorted(known_recipes()))
def test_every_recipe_of_the_collection_is_valid_and_pinned(name: str) -> None:
    recipe = load_recipe(name)

    for engine in recipe.engines.values():
        for image in engine.images.values():
            assert str(parse(image)) == image


def test_the_smoke_recipe_has_the_pins_and_figures_of_what_was_seen() -> None:
    engine = load_recipe("qwen3-0.6b").engines["sglang"]

    assert engine.images["overlay"].endswith(
        ":v0.2.2@sha256:6918eff34f201548a738dd592d2a1ece0627354d2e88f24a87cfa8f787a72a44"
    )
    assert engine.images["engine"].endswith("@sha256:40e940a0c55b87105c773d8b484616616b3a91662bfa223c48ff721d9793dc8d")
    assert (engine.tensor_parallel, engine.ready_timeout) == (1, 1800)
    assert engine.role("decode").resources == Resources(cpu="16", memory="96Gi", shared_memory="16Gi")
    assert engine.role("router").resources == Resources(cpu="4", memory="8Gi")


def test_a_claim_belongs_to_its_combination_only() -> None:
    recipe = load_recipe("qwen3-0.6b")

    assert recipe.evidence("sglang", "disaggregated", "mooncake", "host").status == "validated"
    assert recipe.evidence("sglang", "disaggregated", "mooncake", "pod").status == "partial"
    assert recipe.evidence("sglang", "disaggregated", "mori", "host").status == "not_run"
    assert recipe.evidence("sglang", "aggregated", "mooncake", "host").status == "not_run"


def test_what_workers_share_comes_before_what_a_role_adds() -> None:
    content = copy.deepcopy(MINIMAL)
    content["engines"]["sglang"]["roles"] = {
        "worker": {
            "args": ["--a", "1"],
            "env": {"X": "shared", "Y": "shared"},
            "resources": {"cpu": "8", "memory": "1Gi"},
        },
        "decode": {"args": ["--b"], "env": {"X": "own"}, "resources": {"cpu": "4"}},
    }

    decode = parse_recipe(content, "own.yml", "own").engines["sglang"].role("decode")

    assert decode.args == ("--a", "1", "--b")
    assert decode.env == {"X": "own", "Y": "shared"}
    assert decode.resources == Resources(cpu="4", memory="1Gi")


def test_all_faults_are_told_at_once_with_their_path() -> None:
    content = copy.deepcopy(MINIMAL)
    engine = content["engines"]["sglang"]
    engine["tensor_paralel"] = engine.pop("tensor_parallel")
    engine["ready_timeout"] = "600"
    engine["roles"] = {"worker": {"env": {"DEBUG": 1}, "resources": {"memory": "96 GB"}}}
    content["engines"]["tgi"] = {}
    content["validation"] = [{"engine": "sglang", "shape": "disaggregated", "status": "fine"}]

    told = faults(content)

    assert told == [
        "own.yml:engines: unknown key 'tgi'; known are sglang, vllm",
        "own.yml:engines.sglang: unknown key 'tensor_paralel' (did you mean tensor_parallel?); known are model, images, tensor_parallel,"
        " ready_timeout, roles, startup_period, termination_grace, pre_stop, readiness, router_readiness",
        "own.yml:engines.sglang: tensor_parallel is missing",
        "own.yml:engines.sglang.ready_timeout: must be a whole number of at least 1, not '600'",
        "own.yml:engines.sglang.roles.worker.env.DEBUG: must be a string, not int; quote it",
        "own.yml:engines.sglang.roles.worker.resources.memory: '96 GB' is no Kubernetes quantity in quotes, such as '4' or 96Gi",
        "own.yml:validation[0].status: must be one of validated, partial, loads, not_run",
    ]


@pytest.mark.parametrize("content", [None, [], "name: own", {"name": "own", "engines": []}])
def test_what_is_no_recipe_at_all_is_refused(content: Any) -> None:
    assert faults(content)


def test_a_users_recipe_wins_over_one_of_the_collection(tmp_path: Path) -> None:
    content = {**copy.deepcopy(MINIMAL), "name": "qwen3-0.6b"}
    (tmp_path / "qwen3-0.6b.yml").write_text(yaml.safe_dump(content), encoding="utf-8")

    assert known_recipes()["qwen3-0.6b"].parent == RECIPES
    assert load_recipe("qwen3-0.6b", [str(tmp_path)]).engines["sglang"].tensor_parallel == 8


def test_an_unknown_recipe_names_the_nearest_and_all(tmp_path: Path) -> None:
    with pytest.raises(
        FindingError,
        match=r"no recipe 'qwen3-0.6' \(did you mean qwen3-0.6b\?\) Fix: set serving_recipe to one of qwen3-0.6b",
    ):
        load_recipe("qwen3-0.6", [str(tmp_path)])


def test_a_folder_that_is_not_there_is_named() -> None:
    with pytest.raises(FindingError, match="the folder '/nowhere' does not exist"):
        load_recipe("qwen3-0.6b", ["/nowhere"])


def test_a_file_that_is_no_yaml_is_named(tmp_path: Path) -> None:
    (tmp_path / "own.yml").write_text("a: [", encoding="utf-8")

    with pytest.raises(FindingError, match=r"own\.yml: cannot be read"):
        load_recipe("own", [str(tmp_path)])
