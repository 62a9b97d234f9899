# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The AMD device plugin's DaemonSet, and whether the nodes offer as many GPUs as they should."""

from __future__ import annotations

from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse as parse_image
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import path_of
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import (
    explain,
    is_leaving,
    is_ready,
    log_tail,
    name_of,
    node_of,
)

NAME = "amdgpu-device-plugin-daemonset"
NAMESPACE = "kube-system"
POD_LABELS = {"name": "amdgpu-dp-ds"}
RESOURCE = "amd.com/gpu"
WORKER_GROUPS = ("prefill", "decode", "aggregated")
DEFAULT_EXPECTED = 8


def plugin_image(image: str) -> str:
    """The fully qualified image; raises FindingError where it is not pinned to a digest."""
    return str(parse_image(image, "gpu_plugin_image"))


def input_findings(image: str) -> list[Finding]:
    """What is wrong with the image's name."""
    try:
        plugin_image(image)
    except FindingError as error:
        return error.findings
    return []


def plugin_manifests(
    image: str,
    sysfs: str = "/sys",
    command: Iterable[str] = (),
    env: Mapping[str, Any] | None = None,
    node_selector: Mapping[str, str] | None = None,
    tolerations: Iterable[Mapping[str, Any]] = (),
    allow_pull: bool = False,
) -> list[dict[str, Any]]:
    """The DaemonSet: upstream's names, so that a plugin installed by hand becomes this one instead of a second."""
    container: dict[str, Any] = {
        "name": "amdgpu-dp-cntr",
        "image": plugin_image(image),
        "imagePullPolicy": "IfNotPresent" if allow_pull else "Never",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "volumeMounts": [
            {"name": "dp", "mountPath": "/var/lib/kubelet/device-plugins"},
            {"name": "sys", "mountPath": "/sys", "readOnly": True},
        ],
    }
    if command:
        container["command"] = [str(item) for item in command]
    if env:
        container["env"] = [{"name": str(name), "value": str(value)} for name, value in env.items()]
    pod: dict[str, Any] = {
        "priorityClassName": "system-node-critical",
        "tolerations": [dict(toleration) for toleration in tolerations],
        "containers": [container],
        "volumes": [_host_path("dp", "/var/lib/kubelet/device-plugins"), _host_path("sys", sysfs)],
    }
    if node_selector:
        pod["nodeSelector"] = {str(key): str(value) for key, value in node_selector.items()}
    daemon_set = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "name": NAME,
            "namespace": NAMESPACE,
            "labels": {"app.kubernetes.io/managed-by": "infera.baremetal"},
        },
        "spec": {
            "selector": {"matchLabels": POD_LABELS},
            "template": {"metadata": {"labels": POD_LABELS}, "spec": pod},
        },
    }
    return [daemon_set]


def _host_path(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path, "type": "Directory"}}


def plugin_path() -> str:
    """Path of the DaemonSet in the API."""
    return path_of({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": NAME, "namespace": NAMESPACE}})


def rolled_out(daemon_set: Mapping[str, Any] | None) -> bool:
    """Whether every node that should run the plugin runs it as it was applied last, and ready."""
    if daemon_set is None:
        return False
    status = daemon_set.get("status") or {}
    wanted = status.get("desiredNumberScheduled", 0)
    return status.get("observedGeneration") == daemon_set["metadata"].get("generation") and all(
        status.get(key, 0) == wanted for key in ("updatedNumberScheduled", "numberReady")
    )


def expected_gpus(groups: Mapping[str, list[str]], hostvars: Mapping[str, Any]) -> dict[str, int]:
    """Node -> GPUs it should offer: gpu_plugin_expected of the host, else 8 on hosts that carry a worker and 0 elsewhere."""
    workers = {host for group in WORKER_GROUPS for host in groups.get(group, [])}
    expected = {}
    for host in groups.get("k3s_cluster", []):
        variables = hostvars.get(host, {})
        stated = variables.get("gpu_plugin_expected")
        default = DEFAULT_EXPECTED if host in workers else 0
        expected[str(variables.get("k3s_node_name") or host)] = (
            default if stated in (None, "") else _count(host, stated)
        )
    return expected


def _count(host: str, stated: Any) -> int:
    if str(stated).isdecimal():
        return int(str(stated))
    raise FindingError(
        Finding(
            code="gpu_plugin_expected_invalid",
            severity="error",
            message=f"gpu_plugin_expected {stated!r} is no number of GPUs",
            fix="set it to a whole number, or leave it out",
            where=host,
        )
    )


def seen_gpus(nodes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Node -> GPUs it offers to pods."""
    return {
        node["metadata"]["name"]: int((node.get("status", {}).get("allocatable") or {}).get(RESOURCE) or 0)
        for node in nodes
    }


def gpu_findings(
    expected: Mapping[str, int],
    nodes: Iterable[Mapping[str, Any]],
    pods: Iterable[Mapping[str, Any]] = (),
    logs: Mapping[str, str] | None = None,
) -> list[Finding]:
    """Nodes that offer another number of GPUs than they should; those that should offer none are not looked at."""
    seen, plugins = seen_gpus(nodes), {node_of(pod): pod for pod in pods if not is_leaving(pod)}
    findings = []
    for node, count in expected.items():
        if not count or seen.get(node) == count:
            continue
        said = f"offers {seen[node]} {RESOURCE} instead of {count}" if node in seen else "is not in the cluster"
        fix = (
            "correct gpu_plugin_expected of this host if it has another number of GPUs; else see its driver (rocm-smi)"
        )
        if node in plugins and not is_ready(plugins[node]):
            reason, fix = explain(plugins[node], {}, logs or {})
            said = f"{said}; {reason}"
        elif node in plugins:
            said = f"{said}; the plugin runs there.{log_tail(name_of(plugins[node]), logs or {})}"
        elif node in seen:
            said = f"{said}; the plugin does not run there"
            fix = "compare gpu_plugin_node_selector and gpu_plugin_tolerations with the node's labels and taints"
        findings.append(Finding(code="gpu_plugin_count", severity="error", message=said, fix=fix, where=node))
    return findings
