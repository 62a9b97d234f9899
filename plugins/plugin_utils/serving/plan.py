# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a deployment amounts to in the cluster, as plain data: the cluster record keeps it, and verify checks against it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import Deployment
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engines import HTTP_PORT, ROUTER_PORT
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.manifests import (
    DEPLOYMENT_LABEL,
    router_name,
    startup_budget,
    worker_name,
)

# Scheduling, unpacking the overlay, the router's start and its readiness, beyond what the engine needs to load.
WAIT_MARGIN_SECONDS = 180


def deployment_plan(deployment: Deployment) -> dict[str, Any]:
    """The names, places, images and times that follow from a deployment. Times in seconds."""
    pods = [{"instance": router_name(deployment), "role": "router", "node": deployment.router_node, "address": ""}]
    pods += [
        {
            "instance": worker_name(deployment, worker),
            "role": worker.role,
            "node": worker.node,
            "address": worker.address,
        }
        for worker in deployment.workers
    ]
    evidence = deployment.recipe.evidence(
        deployment.engine.name, deployment.shape, deployment.transfer, deployment.network
    )
    return {
        "name": deployment.name,
        "namespace": deployment.namespace,
        "selector": f"{DEPLOYMENT_LABEL}={deployment.name}",
        "recipe": deployment.recipe.name,
        "engine": deployment.engine.name,
        "shape": deployment.shape,
        "transfer": deployment.transfer,
        "network": deployment.network,
        "model": deployment.settings.served_name,
        "service": router_name(deployment),
        "port": ROUTER_PORT,
        "worker_port": HTTP_PORT,
        "pods": pods,
        "images": _images(deployment),
        "folders": _folders(deployment),
        "wait_seconds": startup_budget(deployment) + WAIT_MARGIN_SECONDS,
        "evidence": asdict(evidence),
    }


def _images(deployment: Deployment) -> dict[str, list[dict[str, str]]]:
    """Node -> images that its pods use, in the form that C(containerd_image) takes."""
    images: dict[str, set[str]] = {}
    for role, node in [
        ("router", deployment.router_node),
        *((worker.role, worker.node) for worker in deployment.workers),
    ]:
        images.setdefault(node, set()).update((deployment.image(role), deployment.images["overlay"]))
    return {node: [{"name": name} for name in sorted(names)] for node, names in images.items()}


def _folders(deployment: Deployment) -> dict[str, str]:
    """Node -> the folder with the models."""
    folders = {worker.node: worker.model_dir for worker in deployment.workers}
    return {deployment.router_node: deployment.router_model_dir, **folders}


def endpoint(plan: Mapping[str, Any], resources: Iterable[Mapping[str, Any]]) -> str:
    """URL of the router's Service as the API server answered it; empty where it has no address yet."""
    for resource in resources:
        if resource.get("kind") == "Service" and resource["metadata"]["name"] == plan["service"]:
            address = resource.get("spec", {}).get("clusterIP") or ""
            host = f"[{address}]" if ":" in address else address
            return f"http://{host}:{plan['port']}" if address and address != "None" else ""
    return ""
