# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What nodes lack."""

from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.nodes import Node, node_findings

LACKING = Node("gpu1", missing_images=("docker.io/lab/engine:v1@sha256:12",), folder="/mnt/models", has_folder=False)


def test_a_node_with_everything_gives_no_finding() -> None:
    assert (
        node_findings(
            [Node("gpu1", folder="/mnt/models", has_folder=True), Node("head")], "serving_allow_pull", False, False
        )
        == []
    )


@pytest.mark.parametrize(
    ("allow_pull", "predicting", "severities"),
    [(False, False, ["error", "error"]), (True, False, ["info", "error"]), (False, True, ["info", "warning"])],
    ids=["stops", "will be pulled", "a prediction"],
)
def test_what_is_missing_stops_a_real_run(allow_pull: bool, predicting: bool, severities: list[str]) -> None:
    findings = node_findings([LACKING], "serving_allow_pull", allow_pull, predicting)

    assert [finding.code for finding in findings] == ["node_image_missing", "node_model_dir_missing"]
    assert [finding.severity for finding in findings] == severities
    assert {finding.where for finding in findings} == {"gpu1"}


def test_the_message_names_image_and_remedy() -> None:
    finding = node_findings([LACKING], "serving_allow_pull", False, False)[0]

    assert finding.message == "containerd does not hold docker.io/lab/engine:v1@sha256:12"
    assert (
        finding.fix
        == "add it with its archive to images_list and run the images stage, or set serving_allow_pull to true"
    )
