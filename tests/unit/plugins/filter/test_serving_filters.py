# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filters that do more than hand over: what they take from Ansible's own results."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.infera.baremetal.plugins.filter.gpu_plugin_manifests import gpu_plugin_manifests
from ansible_collections.infera.baremetal.plugins.filter.node_findings import node_findings
from ansible_collections.infera.baremetal.plugins.filter.serving_manifests import serving_manifests


def test_nodes_are_read_from_what_the_role_registered_on_each_host() -> None:
    hostvars: dict[str, dict[str, Any]] = {
        "a": {
            "images": {"missing": ["x@sha256:12"]},
            "folder": {"stat": {"exists": True, "isdir": True}},
            "k3s_node_name": "node-a",
        },
        "b": {"images": {"missing": []}, "folder": {"stat": {"exists": False}}},
        "c": {"images": {"skipped": True}, "folder": {"skipped": True}},
    }

    findings = node_findings(
        ["a", "b", "c"], hostvars, "images", "serving_allow_pull", folder="folder", folders={"b": "/mnt"}
    )

    assert [(finding["code"], finding["where"]) for finding in findings] == [
        ("node_image_missing", "node-a"),
        ("node_model_dir_missing", "b"),
    ]


def test_errors_of_a_description_reach_the_playbook_as_one_message() -> None:
    with pytest.raises(AnsibleFilterError, match="serving_recipe: there is no recipe 'qwen'"):
        serving_manifests({"recipe": "qwen"})
    with pytest.raises(AnsibleFilterError, match="gpu_plugin_image: The image 'plugin' has no digest"):
        gpu_plugin_manifests("plugin")
