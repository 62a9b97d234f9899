# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The deployment: one dictionary that says what is wanted, checked as a whole before anything changes.

Its keys are C(name), C(namespace), C(recipe), C(engine), C(shape), C(transfer), C(api), C(network), C(router)
(C({node, model_dir})), C(prefill) / C(decode) / C(aggregated) (C([{node, address, model_dir, libionic}])) and C(overrides)
(per role: C(args), C(env), C(resources), C(image)); and beside them C(recipe_paths), C(images), C(allow_pull),
C(gpu_resource), C(ready_timeout) and, to check against, the cluster's C(nodes) and the inventory's C(groups).
"""

from __future__ import annotations

import contextlib
import ipaddress
import posixpath
import re
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

import yaml
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse as parse_image
from ansible_collections.infera.baremetal.plugins.plugin_utils.record import address_of
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engines import ENGINES, Engine
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.recipe import (
    IMAGE_KEYS,
    WORKER_ROLES,
    EngineRecipe,
    Recipe,
    Resources,
    is_quantity,
    load_recipe,
    nearest,
)

SHAPES: Mapping[str, tuple[str, ...]] = {"disaggregated": ("prefill", "decode"), "aggregated": ("aggregated",)}
NETWORKS = ("host", "pod")
APIS = ("native",)
OVERRIDE_ROLES = ("router", *WORKER_ROLES)
RESOURCE_KEYS = ("cpu", "memory", "shared_memory")
# Set from the deployment's own facts; an override would contradict them.
DERIVED_VARIABLES = frozenset(
    {
        "POD_NAME",
        "POD_NAMESPACE",
        "POD_IP",
        "HOST_IP",
        "SGLANG_HOST_IP",
        "VLLM_HOST_IP",
        "VLLM_MOONCAKE_BOOTSTRAP_PORT",
        "INFERA_REQUIRE_NATIVE",
        "INFERA_ENGINE_READY_TIMEOUT",
        "INFERA_K8S_LABEL_SELECTOR",
    }
)
DEPLOYMENT_KEYS = (
    "name",
    "namespace",
    "recipe",
    "engine",
    "shape",
    "transfer",
    "api",
    "network",
    "router",
    *WORKER_ROLES,
    "overrides",
    "recipe_paths",
    "images",
    "allow_pull",
    "gpu_resource",
    "ready_timeout",
    "nodes",
    "groups",
)

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_NODE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A pod's name is the deployment's, the role, the node and 17 characters of Kubernetes' own, and should stay a label.
_LONGEST_NAME = 24


@dataclass(frozen=True)
class Worker:
    """One worker on one node. C(libionic) empty: nothing is mounted."""

    role: str
    node: str
    address: str
    model_dir: str
    libionic: str = ""


@dataclass(frozen=True)
class Override:
    """What a user changes for one role. An environment variable with value None is left out."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str | None] = field(default_factory=dict)
    resources: Resources = Resources()
    image: str = ""


@dataclass(frozen=True)
class Deployment:
    """A checked deployment: every name exists, every image is pinned, every address can be advertised."""

    name: str
    namespace: str
    recipe: Recipe
    settings: EngineRecipe
    engine: Engine
    shape: str
    transfer: str
    network: str
    router_node: str
    router_model_dir: str
    workers: tuple[Worker, ...]
    images: Mapping[str, str]
    overrides: Mapping[str, Override]
    allow_pull: bool
    gpu_resource: str
    ready_timeout: int

    def image(self, role: str) -> str:
        """The engine image of a role."""
        return self.override(role).image or self.images["engine"]

    def override(self, role: str) -> Override:
        """What the user changed for a role."""
        return self.overrides.get(role, Override())


def from_inventory(
    settings: Mapping[str, Any],
    groups: Mapping[str, list[str]],
    hostvars: Mapping[str, Any],
    record: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The deployment's dictionary from the role's settings and the inventory's groups.

    The router's node is the first host of C(router), else the first server. What the inventory leaves to earlier stages (addresses, the
    staged library) comes from this run or from the cluster record.
    """

    def place(host: str, *keys: str) -> dict[str, str]:
        return _place(host, hostvars.get(host, {}), record or {}, keys)

    routers = list(groups.get("router") or groups.get("k3s_server") or [])[:1]
    deployment: dict[str, Any] = dict(settings)
    deployment["router"] = place(routers[0], "node", "model_dir") if routers else {"node": "", "model_dir": ""}
    for role in WORKER_ROLES:
        deployment[role] = [place(host, "node", "address", "model_dir", "libionic") for host in groups.get(role, [])]
    deployment["nodes"] = [place(host, "node")["node"] for host in groups.get("k3s_cluster", [])]
    deployment["groups"] = sorted(groups)
    return deployment


def _place(host: str, variables: Mapping[str, Any], record: Mapping[str, Any], keys: Iterable[str]) -> dict[str, str]:
    node = variables.get("k3s_node_name") or host

    place = {
        "node": lambda: node,
        "address": lambda: address_of(host, variables, record),
        "model_dir": lambda: variables.get("serving_model_dir") or "",
        "libionic": lambda: (
            variables.get("serving_libionic_path") or (record.get(f"libionic/{node}") or {}).get("staged") or ""
        ),
    }
    return {key: str(place[key]()) for key in keys}


def parse_deployment(deployment: Mapping[str, Any]) -> Deployment:
    """The checked deployment. Raises FindingError with everything that is wrong with it."""
    reader = _Reader(deployment)
    result = reader.deployment()
    if result is None or reader.findings:
        raise FindingError(*reader.findings)
    return result


def deployment_findings(deployment: Mapping[str, Any]) -> list[Finding]:
    """All that can be said about a deployment before it is applied; errors, or what to know about it."""
    try:
        checked = parse_deployment(deployment)
    except FindingError as error:
        return error.findings
    return [*_network_findings(checked), *_evidence_findings(checked)]


def _network_findings(deployment: Deployment) -> list[Finding]:
    if deployment.network == "host" or deployment.shape == "aggregated":
        return []
    return [
        Finding(
            code="serving_network_pod",
            severity="warning",
            message="prefill and decode on the pod network see RDMA devices only where the image and the cluster arrange for it",
            fix="set serving_network to host, or use an image built for the pod network",
            where="serving_network",
            why="without RDMA devices Mooncake falls back to TCP in silence",
        )
    ]


def _evidence_findings(deployment: Deployment) -> list[Finding]:
    claim = deployment.recipe.evidence(
        deployment.engine.name, deployment.shape, deployment.transfer, deployment.network
    )
    if claim.status == "validated":
        return []
    combination = (
        f"{deployment.recipe.name}, {deployment.engine.name}, {deployment.shape}, network {deployment.network}"
    )
    return [
        Finding(
            code="serving_not_validated",
            severity="info",
            message=f"{combination}: {claim.status.replace('_', ' ')} on real hardware{'; ' + claim.evidence if claim.evidence else ''}",
            fix="judge by what the verify stage finds",
            where="serving_recipe",
        )
    ]


class _Reader:
    """Reads the dictionary, noting every fault under the variable that a user can set."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self.source = source
        self.findings: list[Finding] = []

    def note(self, code: str, where: str, message: str, fix: str, why: str = "") -> None:
        self.findings.append(
            Finding(code=f"serving_{code}", severity="error", message=message, fix=fix, where=where, why=why)
        )

    def deployment(self) -> Deployment | None:
        for key in self.source:
            if key not in DEPLOYMENT_KEYS:
                self.note(
                    "key_unknown", "deployment", f"unknown key {key!r}{nearest(key, DEPLOYMENT_KEYS)}", "leave it out"
                )
        name = self.label("name", "infera", _LONGEST_NAME)
        namespace = self.label("namespace", "infera", 63)
        shape = self.choice("shape", SHAPES, "disaggregated")
        network = self.choice("network", NETWORKS, "host")
        self.api()
        recipe = self.recipe()
        settings = self.settings(recipe)
        engine = ENGINES[settings.engine] if settings else None
        transfer = self.choice("transfer", engine.transfers, "mooncake") if engine else "mooncake"
        workers = self.workers(shape, network)
        router = self.router()
        images = self.images(settings)
        overrides = self.overrides(engine)
        timeout = self.source.get("ready_timeout") or 0
        if not isinstance(timeout, int) or timeout < 0:
            # The engine itself falls back to 1800 s in silence.
            self.note(
                "ready_timeout",
                "serving_ready_timeout",
                f"{timeout!r} is no whole number of seconds",
                "set it to seconds, or to 0",
            )
        if self.findings or recipe is None or settings is None or engine is None:
            return None
        return Deployment(
            name=name,
            namespace=namespace,
            recipe=recipe,
            settings=settings,
            engine=engine,
            shape=shape,
            transfer=transfer,
            network=network,
            router_node=router["node"],
            router_model_dir=router["model_dir"],
            workers=workers,
            images=images,
            overrides=overrides,
            allow_pull=bool(self.source.get("allow_pull", False)),
            gpu_resource=str(self.source.get("gpu_resource") or "amd.com/gpu"),
            ready_timeout=timeout or settings.ready_timeout,
        )

    def label(self, key: str, default: str, longest: int) -> str:
        value = self.source.get(key) or default
        if not isinstance(value, str) or not _LABEL.fullmatch(value) or len(value) > longest:
            self.note(
                "name_invalid",
                f"serving_{key}",
                f"{value!r} is no valid name",
                f"use lower-case letters, digits and dashes, at most {longest} of them",
            )
            return default
        return value

    def choice(self, key: str, known: Iterable[str], default: str) -> str:
        value = self.source.get(key) or default
        if value not in known:
            self.note(
                f"{key}_unknown",
                f"serving_{key}",
                f"{value!r} is not supported{nearest(str(value), known)}",
                f"set it to {' or '.join(known)}",
            )
            return default
        return str(value)

    def api(self) -> None:
        value = self.source.get("api") or "native"
        if value == "operator":
            self.note(
                "api_unsupported",
                "serving_api",
                "the operator API is not supported by this version",
                "set serving_api to native: the same router and workers as plain Deployments and Services",
            )
        else:
            self.choice("api", APIS, "native")

    def recipe(self) -> Recipe | None:
        try:
            return load_recipe(str(self.source.get("recipe") or ""), self.source.get("recipe_paths") or ())
        except FindingError as error:
            self.findings += error.findings
            return None

    def settings(self, recipe: Recipe | None) -> EngineRecipe | None:
        value = self.source.get("engine") or ""
        if value and value not in ENGINES:
            self.note(
                "engine_unknown",
                "serving_engine",
                f"{value!r} is no engine{nearest(str(value), ENGINES)}",
                f"set it to one of {', '.join(ENGINES)}",
            )
            return None
        if recipe is None:
            return None
        offered = sorted(recipe.engines)
        if not value and len(offered) == 1:
            return recipe.engines[offered[0]]
        if value not in recipe.engines:
            said = (
                f"the recipe {recipe.name} has no {value}" if value else f"the recipe {recipe.name} has several engines"
            )
            self.note("engine_not_in_recipe", "serving_engine", said, f"set it to {' or '.join(offered)}")
            return None
        return recipe.engines[value]

    def workers(self, shape: str, network: str) -> tuple[Worker, ...]:
        found: list[Worker] = []
        for role in SHAPES[shape]:
            places = self.source.get(role) or []
            if not places:
                self.empty_group(role, shape)
            found += [self.worker(role, place, network) for place in places]
        self.distinct(found)
        return tuple(found)

    def empty_group(self, role: str, shape: str) -> None:
        groups = self.source.get("groups")
        known = groups is None or role in groups
        said = f"shape {shape} needs at least one {role} worker, and the group {role} {'is empty' if known else 'does not exist'}"
        self.note(
            "group_empty",
            role,
            said + ("" if known else nearest(role, groups)),
            f"add hosts to the inventory's group {role}",
        )

    def worker(self, role: str, place: Mapping[str, Any], network: str) -> Worker:
        node = self.node(place, role)
        address = str(place.get("address") or "")
        if network == "host":
            self.address(node, address)
        libionic = str(place.get("libionic") or "")
        if libionic and not _is_path(libionic):
            self.note(
                "path_invalid",
                node,
                f"serving_libionic_path {libionic!r} is no absolute path",
                "set the path of the staged library, or leave it empty",
            )
        return Worker(role=role, node=node, address=address, model_dir=self.model_dir(node, place), libionic=libionic)

    def router(self) -> dict[str, str]:
        place = self.source.get("router") or {}
        node = self.node(place, "router")
        return {"node": node, "model_dir": self.model_dir(node, place) if node else ""}

    def node(self, place: Mapping[str, Any], role: str) -> str:
        node = str(place.get("node") or "")
        cluster = self.source.get("nodes")
        if not _NODE.fullmatch(node):
            self.note(
                "node_invalid", role, f"{node!r} is no node name", f"put a host into the inventory's group {role}"
            )
        elif cluster and node not in cluster:
            self.note(
                "node_unknown",
                node,
                f"the {role} node is not in the cluster{nearest(node, cluster)}",
                "add the host to k3s_server or k3s_agent",
            )
        return node

    def model_dir(self, node: str, place: Mapping[str, Any]) -> str:
        value = str(place.get("model_dir") or "")
        if not _is_path(value):
            said = f"{value!r} is no absolute path" if value else "is not set"
            # The router often shares its node with a worker: one finding for both.
            if all((each.code, each.where) != ("serving_model_dir", node) for each in self.findings):
                self.note(
                    "model_dir",
                    node,
                    f"serving_model_dir {said}",
                    "set it, for this host, to the folder that holds the model's folder",
                )
        return value

    def address(self, node: str, address: str) -> None:
        fix = "set cluster_address of this host to an address of its own that the other nodes reach"
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            said = f"cluster_address {address!r} is no IP address" if address else "cluster_address is not set"
            self.note("address_invalid", node, said, fix)
            return
        if parsed.is_unspecified or parsed.is_loopback or parsed.is_link_local or parsed.is_multicast:
            self.note(
                "address_unreachable", node, f"cluster_address {address} cannot be reached from another node", fix
            )

    def distinct(self, workers: list[Worker]) -> None:
        roles: dict[str, list[str]] = {}
        nodes: dict[str, list[str]] = {}
        for worker in workers:
            roles.setdefault(worker.node, []).append(worker.role)
            if worker.address:
                nodes.setdefault(worker.address, []).append(worker.node)
        for node, held in roles.items():
            if len(held) > 1:
                self.note(
                    "node_shared",
                    node,
                    f"is given {len(held)} workers: {', '.join(held)}",
                    "give each worker a node of its own",
                    why="on the host network they collide on port 30000",
                )
        for address, holders in nodes.items():
            if len(set(holders)) > 1:
                self.note(
                    "address_shared", ", ".join(holders), f"share the address {address}", "set cluster_address per host"
                )

    def images(self, settings: EngineRecipe | None) -> dict[str, str]:
        chosen = self.as_mapping(self.source.get("images") or {}, "serving_images")
        for key in chosen:
            if key not in IMAGE_KEYS:
                self.note(
                    "image_key_unknown",
                    "serving_images",
                    f"unknown key {key!r}{nearest(key, IMAGE_KEYS)}",
                    f"known are {', '.join(IMAGE_KEYS)}",
                )
        images = {}
        for key in IMAGE_KEYS:
            value = chosen.get(key) or (settings.images.get(key, "") if settings else "")
            if settings or key in chosen:
                images[key] = self.image(value, f"serving_images.{key}")
        return images

    def image(self, value: Any, where: str) -> str:
        if not value:
            self.note(
                "image_missing",
                where,
                "neither the recipe nor this variable names an image",
                "set it to repository:tag@sha256:digest",
            )
            return ""
        try:
            return str(parse_image(value, where))
        except FindingError as error:
            self.findings += error.findings
            return ""

    def overrides(self, engine: Engine | None) -> dict[str, Override]:
        roles = self.as_mapping(self.source.get("overrides") or {}, "serving_overrides")
        found = {}
        for role, content in roles.items():
            where = f"serving_overrides.{role}"
            if role not in OVERRIDE_ROLES:
                self.note(
                    "override_unknown",
                    where,
                    f"there is no such role{nearest(role, OVERRIDE_ROLES)}",
                    f"known are {', '.join(OVERRIDE_ROLES)}",
                )
                continue
            part = self.as_mapping(content or {}, where)
            self.known_keys(part, where, ("args", "env", "resources", "image"))
            found[role] = Override(
                args=self.override_args(part.get("args") or [], f"{where}.args", engine if role != "router" else None),
                env=self.override_env(part.get("env") or {}, f"{where}.env"),
                resources=self.override_resources(part.get("resources") or {}, f"{where}.resources"),
                image=self.image(part["image"], f"{where}.image") if part.get("image") else "",
            )
        return found

    def override_args(self, value: Any, where: str, engine: Engine | None) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.note("override_invalid", where, "must be a list", "write one argument an item")
            return ()
        args = tuple(str(item) for item in value)
        derived = engine.derived_flags if engine else ()
        for flag in (arg.partition("=")[0] for arg in args):
            if flag in derived:
                self.note(
                    "override_derived",
                    where,
                    f"{flag} follows from the deployment",
                    "leave it out; set the serving variable it comes from",
                )
        return args

    def override_env(self, value: Any, where: str) -> dict[str, str | None]:
        env = self.as_mapping(value, where)
        for key in env:
            if key in DERIVED_VARIABLES:
                self.note(
                    "override_derived",
                    where,
                    f"{key} follows from the deployment",
                    "leave it out; set the serving variable it comes from",
                )
            elif not _VARIABLE.fullmatch(str(key)):
                self.note(
                    "override_invalid",
                    where,
                    f"{key!r} is no name of an environment variable",
                    "use letters, digits and underscores",
                )
        return {str(key): None if item is None else str(item) for key, item in env.items()}

    def override_resources(self, value: Any, where: str) -> Resources:
        part = self.as_mapping(value, where)
        self.known_keys(part, where, RESOURCE_KEYS)
        texts = {key: str(part[key]) for key in RESOURCE_KEYS if key in part}
        for key, text in texts.items():
            if not is_quantity(text):
                self.note(
                    "override_invalid",
                    f"{where}.{key}",
                    f"{text!r} is no Kubernetes quantity",
                    "write it as in 4, 500m or 96Gi",
                )
        return Resources(**texts)

    def known_keys(self, part: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
        for key in part:
            if key not in known:
                self.note(
                    "override_unknown",
                    where,
                    f"unknown key {key!r}{nearest(str(key), known)}",
                    f"known are {', '.join(known)}",
                )

    def as_mapping(self, value: Any, where: str) -> dict[str, Any]:
        # As an extra variable a mapping may arrive as the text of one.
        if isinstance(value, str):
            with contextlib.suppress(yaml.YAMLError):
                value = yaml.safe_load(value) or {}
        if isinstance(value, Mapping):
            return dict(value)
        self.note("mapping_expected", where, f"must be a mapping, not {type(value).__name__}", "write keys and values")
        return {}


def _is_path(value: str) -> bool:
    return posixpath.isabs(value) and "<" not in value and posixpath.normpath(value) == value.rstrip("/")
