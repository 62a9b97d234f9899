# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Apply, wait, explain: against a double of the API server, with a clock that does not tick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.action import gpu_plugin_rollout, serving_rollout
from ansible_collections.infera.baremetal.plugins.plugin_utils import rollout as rollout_module
from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import plugin_manifests, plugin_path
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import KubeError
from ansible_collections.infera.baremetal.plugins.plugin_utils.rollout import poll
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.manifests import (
    INSTANCE_LABEL,
    TEMPLATE_ANNOTATION,
)
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.cluster_double import cluster

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "infera"}}
TEMPLATE: dict[str, Any] = {
    "metadata": {"annotations": {TEMPLATE_ANNOTATION: "1"}},
    "spec": {"containers": [{"name": "main", "image": "i"}]},
}
DEPLOYMENT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "router", "namespace": "infera"},
    "spec": {"template": TEMPLATE},
}
PODS = "/api/v1/namespaces/infera/pods"
STALE = "/apis/apps/v1/namespaces/infera/deployments/old"


@pytest.fixture(name="standing")
def _standing(monkeypatch: pytest.MonkeyPatch) -> Any:
    api, double = cluster((f"/api/v1/namespaces/{NAMESPACE['metadata']['name']}", NAMESPACE))
    monkeypatch.setattr(rollout_module, "connect", lambda kubeconfig: api)
    now = [0.0]
    monkeypatch.setattr(rollout_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(rollout_module.time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    monkeypatch.setattr(poll, "__defaults__", (poll.__defaults__[0], lambda: now[0], rollout_module.time.sleep))
    double.lists["/api/v1/namespaces/infera/events"] = [[]]
    return double


@pytest.fixture(name="kubeconfig")
def _kubeconfig(tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    return str(file)


def pod(ready: bool, instance: str = "router") -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"{instance}-x",
            "labels": {INSTANCE_LABEL: instance},
            "annotations": TEMPLATE["metadata"]["annotations"],
        },
        "spec": {"nodeName": "n", **TEMPLATE["spec"]},
        "status": {"conditions": [{"type": "Ready", "status": str(ready)}]},
    }


def serving(kubeconfig: str, **options: Any) -> dict[str, Any]:
    return run(
        serving_rollout.ActionModule,
        kubeconfig=kubeconfig,
        objects=[NAMESPACE, DEPLOYMENT],
        namespace="infera",
        selector="a=b",
        subject="Deployment infera",
        timeout=60,
        **options,
    )


def test_waits_until_the_pods_are_ready(standing: Any, kubeconfig: str) -> None:
    standing.lists[PODS] = [[], [pod(ready=False)], [pod(ready=True)]]

    result = serving(kubeconfig)

    assert not result.get("failed"), result
    assert (result["changed"], result["applied"], result["removed"]) == (True, ["Deployment infera/router"], [])


def test_a_second_run_changes_nothing(standing: Any, kubeconfig: str) -> None:
    standing.lists[PODS] = [[pod(ready=True)]]
    serving(kubeconfig)

    result = serving(kubeconfig)

    assert (result["changed"], result["applied"]) == (False, [])


def test_what_is_not_wanted_any_more_is_deleted_and_that_is_a_change(standing: Any, kubeconfig: str) -> None:
    standing.lists[PODS] = [[pod(ready=True), pod(ready=True, instance="old")], [pod(ready=True)]]
    standing.objects[STALE] = {"kind": "Deployment"}
    serving(kubeconfig)
    standing.objects[STALE] = {"kind": "Deployment"}
    standing.lists[PODS] = [[pod(ready=True), pod(ready=True, instance="old")], [pod(ready=True)]]

    result = serving(kubeconfig)

    assert (result["changed"], result["applied"], result["removed"]) == (True, [], ["old"])
    assert STALE not in standing.objects


def test_check_mode_deletes_nothing_and_does_not_wait(standing: Any, kubeconfig: str) -> None:
    standing.lists[PODS] = [[pod(ready=False, instance="old")]]
    standing.objects[STALE] = {"kind": "Deployment"}

    result = serving(kubeconfig, check_mode=True)

    assert (result["changed"], result["removed"], standing.writes) == (True, ["old"], [])


def test_time_that_runs_out_is_explained_with_the_pods_log(standing: Any, kubeconfig: str) -> None:
    standing.lists[PODS] = [[pod(ready=False)]]
    standing.logs[f"{PODS}/router-x/log"] = "cannot open the model\n"

    result = serving(kubeconfig)

    assert result["failed"]
    assert result["msg"].startswith("Deployment infera: 1 to mend, 0 to know\n[error serving_not_ready] router: ")
    assert "cannot open the model" in result["msg"]


def test_check_mode_without_a_cluster_predicts(tmp_path: Path) -> None:
    result = serving(str(tmp_path / "none"), check_mode=True)

    assert (result["changed"], result["predicted"]) == (True, True)
    assert result["applied"] == ["Namespace infera", "Deployment infera/router"]


def test_a_refusal_is_told_by_object(standing: Any, kubeconfig: str) -> None:
    standing.refused["/apis/apps/v1/namespaces/infera/deployments/router"] = KubeError("selector is immutable", 422)

    result = serving(kubeconfig)

    assert result["failed"]
    assert result["msg"] == ("Deployment infera could not be applied.\nDeployment infera/router: selector is immutable")


def plugin(kubeconfig: str, **expected: int) -> dict[str, Any]:
    image = "rocm/k8s-device-plugin:1@sha256:" + "0" * 64
    return run(
        gpu_plugin_rollout.ActionModule,
        kubeconfig=kubeconfig,
        objects=plugin_manifests(image),
        expected=expected,
        subject="Device plugin",
        timeout=60,
    )


def node(gpus: str) -> dict[str, Any]:
    return {"metadata": {"name": "gpu1"}, "status": {"allocatable": {"amd.com/gpu": gpus}}}


@pytest.fixture(name="plugin_namespace")
def _plugin_namespace(standing: Any) -> Any:
    standing.objects["/api/v1/namespaces/kube-system"] = {"kind": "Namespace"}
    standing.lists["/api/v1/namespaces/kube-system/pods"] = [[]]
    return standing


def test_gpus_count_once_the_plugin_that_was_applied_runs(plugin_namespace: Any, kubeconfig: str) -> None:
    plugin_namespace.lists["/api/v1/nodes"] = [[node("8")]]
    looks = []
    request = plugin_namespace.request

    def rolling(method: str, path: str, *more: Any) -> str:
        # The third look at it finds it rolled out.
        if (method, path) == ("GET", plugin_path()) and path in plugin_namespace.objects:
            looks.append(path)
            done = len(looks) > 2
            plugin_namespace.objects[path]["metadata"]["generation"] = 1
            plugin_namespace.objects[path]["status"] = {
                "observedGeneration": 1,
                "desiredNumberScheduled": 1,
                "updatedNumberScheduled": 1 if done else 0,
                "numberReady": 1 if done else 0,
            }
        return request(method, path, *more)

    plugin_namespace.request = rolling

    result = plugin(kubeconfig, gpu1=8)

    assert not result.get("failed"), result
    assert (result["seen"], len(looks)) == ({"gpu1": 8}, 3)


def test_gpus_that_are_missing_are_told_by_node(plugin_namespace: Any, kubeconfig: str) -> None:
    plugin_namespace.lists["/api/v1/nodes"] = [[node("7")]]

    result = plugin(kubeconfig, gpu1=8)

    assert result["failed"]
    assert "[error gpu_plugin_count] gpu1: offers 7 amd.com/gpu instead of 8" in result["msg"]


def test_a_long_wait_is_told_of_every_half_minute() -> None:
    now, told = [0.0], []

    last = poll(
        lambda: now[0],
        lambda seen: False,
        100,
        told.append,
        clock=lambda: now[0],
        sleep=lambda seconds: now.__setitem__(0, now[0] + seconds),
    )

    assert 100 <= last < 104
    assert len(told) == 3
