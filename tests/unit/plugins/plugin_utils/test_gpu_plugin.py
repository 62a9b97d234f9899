# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The device plugin's DaemonSet and the GPUs that nodes offer."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import (
    expected_gpus,
    gpu_findings,
    input_findings,
    plugin_manifests,
    seen_gpus,
)

IMAGE = "rocm/k8s-device-plugin:1.31.0.11@sha256:e4df5dc9a7fa34e2344852256dcc5762171a6d68f1f9a34026ce26786ae335e2"
GROUPS = {"k3s_cluster": ["head", "gpu1", "gpu2"], "prefill": ["gpu1"], "decode": ["gpu2"]}


def pod_of(**options: Any) -> dict[str, Any]:
    return plugin_manifests(IMAGE, **options)[0]["spec"]["template"]["spec"]


def node(name: str, gpus: str | None) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "status": {"allocatable": {"cpu": "8"} if gpus is None else {"cpu": "8", "amd.com/gpu": gpus}},
    }


def plugin_on(name: str, ready: bool = True) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
    return {"metadata": {"name": f"plugin-{name}"}, "spec": {"nodeName": name}, "status": status}


def test_the_daemon_set_has_upstreams_name_and_no_privilege() -> None:
    daemon_set = plugin_manifests(IMAGE)[0]

    assert (daemon_set["metadata"]["name"], daemon_set["metadata"]["namespace"]) == (
        "amdgpu-device-plugin-daemonset",
        "kube-system",
    )
    assert pod_of()["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod_of()["containers"][0]["image"] == f"docker.io/{IMAGE}"
    assert pod_of()["containers"][0]["imagePullPolicy"] == "Never"


def test_another_tree_takes_the_place_of_sys() -> None:
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod_of(sysfs="/opt/lab/sysfs")["volumes"]}

    assert paths == {"dp": "/var/lib/kubelet/device-plugins", "sys": "/opt/lab/sysfs"}
    assert {"name": "sys", "mountPath": "/sys", "readOnly": True} in pod_of()["containers"][0]["volumeMounts"]


def test_options_are_sent_only_where_they_are_set() -> None:
    assert {"command", "env"} & set(pod_of()["containers"][0]) == set()
    assert "nodeSelector" not in pod_of()

    pod = pod_of(command=["/plugin"], env={"PULSE": 5}, node_selector={"gpu": True}, allow_pull=True)

    assert pod["containers"][0]["command"] == ["/plugin"]
    assert pod["containers"][0]["env"] == [{"name": "PULSE", "value": "5"}]
    assert pod["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert pod["nodeSelector"] == {"gpu": "True"}


def test_an_image_without_digest_is_refused() -> None:
    with pytest.raises(FindingError, match="gpu_plugin_image"):
        plugin_manifests("rocm/k8s-device-plugin")


def test_an_image_without_digest_is_found_before_the_stage() -> None:
    assert input_findings(IMAGE) == []
    assert [(found.where, found.code) for found in input_findings("rocm/k8s-device-plugin")] == [
        ("gpu_plugin_image", "image_not_pinned")
    ]


def test_hosts_with_a_worker_should_offer_eight_unless_they_say_otherwise() -> None:
    hostvars: dict[str, dict[str, Any]] = {
        "head": {},
        "gpu1": {"k3s_node_name": "node1"},
        "gpu2": {"gpu_plugin_expected": "4"},
    }

    assert expected_gpus(GROUPS, hostvars) == {"head": 0, "node1": 8, "gpu2": 4}


def test_a_number_of_gpus_that_is_none_names_the_host() -> None:
    with pytest.raises(FindingError, match="gpu2: gpu_plugin_expected 'many' is no number"):
        expected_gpus(GROUPS, {"gpu2": {"gpu_plugin_expected": "many"}})


def test_nodes_that_offer_what_they_should_give_no_finding() -> None:
    nodes = [node("head", None), node("gpu1", "8")]

    assert seen_gpus(nodes) == {"head": 0, "gpu1": 8}
    assert gpu_findings({"head": 0, "gpu1": 8}, nodes) == []


@pytest.mark.parametrize(
    ("nodes", "pods", "told"),
    [
        ([], [], "is not in the cluster"),
        ([node("gpu1", "7")], [], "offers 7 amd.com/gpu instead of 8; the plugin does not run there"),
        ([node("gpu1", None)], [plugin_on("gpu1")], "offers 0 amd.com/gpu instead of 8; the plugin runs there."),
        ([node("gpu1", None)], [plugin_on("gpu1", ready=False)], "pod plugin-gpu1 on gpu1 is not ready"),
    ],
    ids=["no node", "no plugin", "plugin sees none", "plugin not ready"],
)
def test_what_is_missing_and_why(nodes: list[dict[str, Any]], pods: list[dict[str, Any]], told: str) -> None:
    findings = gpu_findings({"gpu1": 8}, nodes, pods, {})

    assert [(finding.code, finding.where) for finding in findings] == [("gpu_plugin_count", "gpu1")]
    assert told in findings[0].message
