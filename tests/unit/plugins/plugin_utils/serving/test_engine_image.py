# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which image a host's workers run, and where its archive is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engine_image import engine_image

DIGEST = "@sha256:" + "a" * 64
OWN, OVERRIDE = f"docker.io/lab/own:v1{DIGEST}", f"docker.io/lab/prefill:v1{DIGEST}"
# As recipes/qwen3-0.6b.yml has it.
PIN = "docker.io/lmsysorg/sglang:v0.5.15.post1-rocm720-mi35x@sha256:40e940a0c55b87105c773d8b484616616b3a91662bfa223c48ff721d9793dc8d"


@pytest.mark.parametrize(
    ("settings", "groups", "name"),
    [
        ({"image": "lab/own:v1" + DIGEST, "images": {"engine": "x"}}, [], OWN),
        ({"images": {"engine": OWN}}, ["prefill"], OWN),
        ({"images": {"engine": OWN}, "overrides": {"prefill": {"image": OVERRIDE}}}, ["prefill"], OVERRIDE),
        ({"images": {"engine": OWN}, "overrides": {"prefill": {"image": OVERRIDE}}}, ["decode"], OWN),
        ({"recipe": "qwen3-0.6b"}, [], PIN),
        ({"recipe": "qwen3-0.6b", "engine": "sglang"}, [], PIN),
        # What is wrong is the serving stage's to say, but for what was named for this look alone.
        ({"recipe": "qwen3-0.6b", "engine": "other"}, [], ""),
        ({"recipe": "no such recipe"}, [], ""),
        ({"image": "lab/own:v1"}, [], "lab/own:v1"),
        ({"images": "text"}, [], ""),
        ({"images": {"engine": OWN}, "overrides": {"prefill": "text"}}, ["prefill"], ""),
        ({}, [], ""),
    ],
)
def test_the_most_particular_setting_wins(settings: dict[str, Any], groups: list[str], name: str) -> None:
    assert engine_image(settings, groups, []) == {"name": name, "archive": ""}


def test_the_archive_is_the_one_of_that_image_and_has_to_be_there(tmp_path: Path) -> None:
    archive = tmp_path / "own.tar"
    images = [
        {"name": "not pinned"},
        {"name": OVERRIDE, "archive": __file__},
        {"name": "lab/own:v1" + DIGEST, "archive": str(archive)},
    ]

    assert engine_image({"image": OWN}, [], images) == {"name": OWN, "archive": ""}
    archive.touch()
    assert engine_image({"image": OWN}, [], images) == {"name": OWN, "archive": str(archive)}
    assert engine_image({"image": OWN}, [], ["text"])["archive"] == ""
