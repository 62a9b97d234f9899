# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The Kubernetes objects of a deployment, for the C(native) API: RBAC, a router with its Service, one Deployment a worker.

Every field that is sent is meant: what the API server would default is left out, so that a server-side apply owns what
it says and a second one changes nothing. List entries carry all their merge keys (a port's protocol among them), since
old servers cannot merge them otherwise.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import Deployment, Override, Worker
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engines import (
    BOOTSTRAP_PORT,
    HTTP_PORT,
    KV_EVENTS_PORT,
    KV_SNAPSHOT_PORT,
    ROUTER_PORT,
    TRANSPORT_ARGS,
    WorkerStart,
)
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.recipe import HostPath, Probe, Resources

KubernetesObject = dict[str, Any]

DEPLOYMENT_LABEL = "infera.amd.com/deployment"
SERVICE_LABEL = "infera.amd.com/service"
INSTANCE_LABEL = "app.kubernetes.io/instance"
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
MANAGED_BY = "infera.baremetal"
# Says which revision a pod belongs to, without asking for its ReplicaSet.
TEMPLATE_ANNOTATION = "infera.baremetal/template-hash"

LAUNCHER = "/overlay/bin/infera-exec"
MODELS = "/models"
CONTAINER = "main"
# The engine gives up by itself, with a message; the probe comes after it, and does not cut it short.
STARTUP_HEADROOM_PERCENT = 10


def build_manifests(deployment: Deployment) -> list[KubernetesObject]:
    """All objects, in the order in which they are to be applied."""
    return [
        # It owns at least one field: Kubernetes 1.20 forgets who applied an object without any, and changes it the next time.
        _object("v1", "Namespace", deployment.namespace, labels={"app.kubernetes.io/part-of": "infera"}),
        *_rbac(deployment),
        _router_service(deployment),
        _router(deployment),
        *(_worker(deployment, worker) for worker in deployment.workers),
    ]


def router_name(deployment: Deployment) -> str:
    """Name of the router's Deployment and Service."""
    return f"{deployment.name}-router"


def worker_name(deployment: Deployment, worker: Worker) -> str:
    """Name of a worker's Deployment: it tells the node, so that a change of one group leaves the other nodes alone."""
    name = f"{deployment.name}-{worker.role}-{worker.node}"
    # A node may be named like a domain; a Deployment named so would give pods whose host name is cut at the dot.
    short = re.sub(r"[^a-z0-9-]", "-", name)
    if short == name and len(name) <= 46:
        return name
    # 46 leaves room for what Kubernetes adds to a pod's name (17) within the 63 characters of a label.
    return f"{short[:39].rstrip('-')}-{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def startup_budget(deployment: Deployment) -> int:
    """Seconds that the startup probe grants a worker: never less than the engine's own ready timeout."""
    return _startup_failures(deployment) * deployment.settings.startup_period


def _startup_failures(deployment: Deployment) -> int:
    return math.ceil(
        deployment.ready_timeout * (100 + STARTUP_HEADROOM_PERCENT) / (100 * deployment.settings.startup_period)
    )


def _object(
    api_version: str, kind: str, name: str, namespace: str = "", labels: Mapping[str, str] | None = None, **parts: Any
) -> KubernetesObject:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **parts}


def _labels(deployment: Deployment, service: str = "", instance: str = "") -> dict[str, str]:
    labels = {DEPLOYMENT_LABEL: deployment.name, MANAGED_BY_LABEL: MANAGED_BY}
    if service:
        labels.update({SERVICE_LABEL: service, INSTANCE_LABEL: instance})
    return labels


def _rbac(deployment: Deployment) -> list[KubernetesObject]:
    name = f"{deployment.name}-disc"
    common = {"namespace": deployment.namespace, "labels": _labels(deployment)}
    # Workers register by a patch of their own pod's annotation; the router lists and watches.
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]}]
    group = "rbac.authorization.k8s.io"
    return [
        _object("v1", "ServiceAccount", name, **common),
        _object(f"{group}/v1", "Role", name, **common, rules=rules),
        _object(
            f"{group}/v1",
            "RoleBinding",
            name,
            **common,
            roleRef={"apiGroup": group, "kind": "Role", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": name, "namespace": deployment.namespace}],
        ),
    ]


def _router_service(deployment: Deployment) -> KubernetesObject:
    name = router_name(deployment)
    return _object(
        "v1",
        "Service",
        name,
        deployment.namespace,
        _labels(deployment, "router", name),
        spec={
            "type": "ClusterIP",
            "selector": {DEPLOYMENT_LABEL: deployment.name, SERVICE_LABEL: "router"},
            "ports": [{"name": "http", "port": ROUTER_PORT, "protocol": "TCP", "targetPort": ROUTER_PORT}],
        },
    )


def _router(deployment: Deployment) -> KubernetesObject:
    settings, override = deployment.settings.role("router"), deployment.override("router")
    arguments = [
        "--host",
        "0.0.0.0",
        "--port",
        str(ROUTER_PORT),
        "--router-tokenizer-path",
        _model_path(deployment),
        *TRANSPORT_ARGS,
    ]
    environment = {"INFERA_K8S_LABEL_SELECTOR": f"{DEPLOYMENT_LABEL}={deployment.name}", **settings.env}
    container = {
        "name": CONTAINER,
        "image": deployment.image("router"),
        "imagePullPolicy": _pull_policy(deployment),
        "command": [LAUNCHER, "python3", "-m", "infera.server"],
        "args": merge_arguments([*arguments, *settings.args], override.args),
        "env": _environment(environment, override),
        "ports": _ports({"http": ROUTER_PORT}),
        "resources": _resources(settings.resources, override.resources),
        "readinessProbe": _probe(ROUTER_PORT, deployment.settings.router_readiness),
        "volumeMounts": [
            _mount("overlay", "/overlay"),
            _mount("models", MODELS, read_only=True),
            *_extra_mounts(settings.volumes),
        ],
    }
    volumes = [_empty("overlay"), _host_path("models", deployment.router_model_dir), *_extra_volumes(settings.volumes)]
    pod = _pod(deployment, deployment.router_node, container, volumes)
    return _deployment(deployment, router_name(deployment), "router", pod)


def _worker(deployment: Deployment, worker: Worker) -> KubernetesObject:
    settings, override = deployment.settings.role(worker.role), deployment.override(worker.role)
    start = _start(deployment, worker)
    mounts, volumes = _worker_storage(
        worker, settings.volumes, override.resources.shared_memory or settings.resources.shared_memory
    )
    container = {
        "name": CONTAINER,
        "image": deployment.image(worker.role),
        "imagePullPolicy": _pull_policy(deployment),
        "command": [LAUNCHER, "python3", "-m", deployment.engine.module],
        "args": merge_arguments([*deployment.engine.arguments(start), *settings.args], override.args),
        "env": _environment(
            {**_worker_environment(deployment, worker), **deployment.engine.environment(start), **settings.env},
            override,
        ),
        "ports": _ports(_worker_ports(worker.role), host=deployment.network == "host"),
        "resources": _resources(
            settings.resources, override.resources, {deployment.gpu_resource: str(deployment.settings.tensor_parallel)}
        ),
        "startupProbe": {
            "httpGet": {"path": "/health", "port": HTTP_PORT},
            "periodSeconds": deployment.settings.startup_period,
            "timeoutSeconds": deployment.settings.readiness.timeout,
            "failureThreshold": _startup_failures(deployment),
        },
        "readinessProbe": _probe(HTTP_PORT, deployment.settings.readiness),
        "volumeMounts": mounts,
    }
    if worker.role != "aggregated":
        container["securityContext"] = {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"]}}
    if deployment.settings.pre_stop:
        # The router drops a pod that is being deleted at once; what is under way is finished meanwhile.
        container["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", str(deployment.settings.pre_stop)]}}}
    pod = _pod(deployment, worker.node, container, volumes)
    if deployment.network == "host":
        pod.update(hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")
    pod["terminationGracePeriodSeconds"] = deployment.settings.termination_grace
    # On the host network the new pod needs the old one's ports, and both need the node's GPUs.
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    spec = {"strategy": strategy, "progressDeadlineSeconds": startup_budget(deployment) + 600}
    return _deployment(deployment, worker_name(deployment, worker), worker.role, pod, spec)


def _start(deployment: Deployment, worker: Worker) -> WorkerStart:
    return WorkerStart(
        model_path=_model_path(deployment),
        served_name=deployment.settings.served_name,
        tensor_parallel=deployment.settings.tensor_parallel,
        role=worker.role,
        transfer=deployment.transfer,
    )


def _model_path(deployment: Deployment) -> str:
    return f"{MODELS}/{deployment.settings.model_path}"


def _worker_environment(deployment: Deployment, worker: Worker) -> dict[str, str]:
    address = worker.address if deployment.network == "host" else "$(POD_IP)"
    environment = dict.fromkeys(deployment.engine.address_variables, address)
    environment["INFERA_ENGINE_READY_TIMEOUT"] = str(deployment.ready_timeout)
    if worker.role != "aggregated":
        # The overlay stops when it has no native build of the transfer for this image, instead of falling back.
        environment["INFERA_REQUIRE_NATIVE"] = deployment.transfer
    return environment


def _worker_ports(role: str) -> dict[str, int]:
    ports = {"http": HTTP_PORT, "kv-snapshot": KV_SNAPSHOT_PORT, "kv-events": KV_EVENTS_PORT}
    return {**ports, "bootstrap": BOOTSTRAP_PORT} if role == "prefill" else ports


def _worker_storage(
    worker: Worker, extra: Iterable[HostPath], shared_memory: str
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    mounts = [_mount("overlay", "/overlay"), _mount("models", MODELS, read_only=True), _mount("shm", "/dev/shm")]
    shm = {"medium": "Memory", "sizeLimit": shared_memory} if shared_memory else {"medium": "Memory"}
    volumes = [_empty("overlay"), _host_path("models", worker.model_dir), _empty("shm", shm)]
    if worker.role != "aggregated":
        mounts.append(_mount("infiniband", "/dev/infiniband"))
        volumes.append(_host_path("infiniband", "/dev/infiniband"))
        if worker.libionic:
            mounts.append(_mount("libionic", "/host-libionic/libionic.so", read_only=True))
            volumes.append(_host_path("libionic", worker.libionic, "File"))
    return [*mounts, *_extra_mounts(extra)], [*volumes, *_extra_volumes(extra)]


def _pod(deployment: Deployment, node: str, container: dict[str, Any], volumes: list[dict[str, Any]]) -> dict[str, Any]:
    overlay = {
        "name": "overlay",
        "image": deployment.images["overlay"],
        "imagePullPolicy": _pull_policy(deployment),
        "command": ["cp", "-a", "/payload/.", "/overlay/"],
        "volumeMounts": [_mount("overlay", "/overlay")],
    }
    return {
        "serviceAccountName": f"{deployment.name}-disc",
        "nodeSelector": {"kubernetes.io/hostname": node},
        "initContainers": [overlay],
        "containers": [container],
        "volumes": volumes,
    }


def _deployment(
    deployment: Deployment, name: str, service: str, pod: dict[str, Any], spec: Mapping[str, Any] | None = None
) -> KubernetesObject:
    labels = _labels(deployment, service, name)
    template = {"metadata": {"labels": labels, "annotations": {TEMPLATE_ANNOTATION: _digest(pod)}}, "spec": pod}
    selector = {key: labels[key] for key in (DEPLOYMENT_LABEL, SERVICE_LABEL, INSTANCE_LABEL)}
    return _object(
        "apps/v1",
        "Deployment",
        name,
        deployment.namespace,
        labels,
        spec={"replicas": 1, "selector": {"matchLabels": selector}, **(spec or {}), "template": template},
    )


def _digest(pod: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(pod, sort_keys=True).encode()).hexdigest()[:16]


def _pull_policy(deployment: Deployment) -> str:
    # A pinned image that was not imported must not be pulled in silence on an air-gapped node.
    return "IfNotPresent" if deployment.allow_pull else "Never"


def _environment(values: Mapping[str, str], override: Override) -> list[dict[str, Any]]:
    # POD_IP first: others refer to it, and Kubernetes expands only what comes earlier.
    fields = {"POD_NAME": "metadata.name", "POD_NAMESPACE": "metadata.namespace", "POD_IP": "status.podIP"}
    environment: list[dict[str, Any]] = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()
    ]
    merged = {**values, **override.env}
    return [*environment, *({"name": name, "value": value} for name, value in merged.items() if value is not None)]


def merge_arguments(base: Iterable[str], override: Iterable[str]) -> list[str]:
    """Arguments with a user's in place of those of the same flag; flags that are new are added at the end.

    A flag is an item that begins with a dash and is no number; its values are the items up to the next flag.
    """
    groups, changes = _flag_groups(base), _flag_groups(override)
    changed = {group[0].partition("=")[0] for group in changes}
    kept = [group for group in groups if group[0].partition("=")[0] not in changed]
    return [item for group in [*kept, *changes] for item in group]


def _flag_groups(arguments: Iterable[str]) -> list[list[str]]:
    groups: list[list[str]] = []
    for item in arguments:
        if re.match(r"-{1,2}[A-Za-z]", item) or not groups:
            groups.append([item])
        else:
            groups[-1].append(item)
    return groups


def _resources(recipe: Resources, override: Resources, devices: Mapping[str, str] | None = None) -> dict[str, Any]:
    # CPU and memory are what the recipe needs at least, so requests; a memory limit would also count the page cache of
    # the weights. An extended resource has to be a limit and a request of the same number.
    requests = {"cpu": override.cpu or recipe.cpu, "memory": override.memory or recipe.memory, **(devices or {})}
    requests = {name: value for name, value in requests.items() if value}
    return {"requests": requests, "limits": dict(devices)} if devices else {"requests": requests}


def _ports(ports: Mapping[str, int], host: bool = False) -> list[dict[str, Any]]:
    listed = [{"name": name, "containerPort": port, "protocol": "TCP"} for name, port in ports.items()]
    # Declared as host ports, the scheduler keeps two workers off one node.
    return [{**entry, "hostPort": entry["containerPort"]} for entry in listed] if host else listed


def _probe(port: int, probe: Probe) -> dict[str, Any]:
    times = {"periodSeconds": probe.period, "timeoutSeconds": probe.timeout, "failureThreshold": probe.failures}
    if probe.initial_delay:
        times["initialDelaySeconds"] = probe.initial_delay
    return {"httpGet": {"path": "/health", "port": port}, **times}


def _mount(name: str, path: str, read_only: bool = False) -> dict[str, Any]:
    mount: dict[str, Any] = {"name": name, "mountPath": path}
    return {**mount, "readOnly": True} if read_only else mount


def _empty(name: str, source: Mapping[str, str] | None = None) -> dict[str, Any]:
    return {"name": name, "emptyDir": dict(source or {})}


def _host_path(name: str, path: str, kind: str = "Directory") -> dict[str, Any]:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def _extra_mounts(volumes: Iterable[HostPath]) -> list[dict[str, Any]]:
    return [_mount(volume.name, volume.mount_path, volume.read_only) for volume in volumes]


def _extra_volumes(volumes: Iterable[HostPath]) -> list[dict[str, Any]]:
    return [_host_path(volume.name, volume.path) for volume in volumes]
