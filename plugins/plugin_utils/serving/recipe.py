# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Recipes: what a model needs on an engine, as data files.

A recipe is one YAML file. It names, per engine, the image pins, the model's path, tensor parallelism, the ready timeout
and, per role, arguments, environment, resources and extra volumes; and what was really run with it. Everything that
follows from the deployment (addresses, nodes, ports, role flags) is no recipe's business.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Iterable, Mapping

import yaml
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engines import ENGINES

RECIPES = Path(__file__).parent / "recipes"
WORKER_ROLES = ("prefill", "decode", "aggregated")
# "worker" is what prefill, decode and aggregated have in common.
RECIPE_ROLES = ("router", "worker", *WORKER_ROLES)
IMAGE_KEYS = ("engine", "overlay")
STATUSES = ("validated", "partial", "loads", "not_run")

_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")


@dataclass(frozen=True)
class Resources:
    """Kubernetes quantities; empty means not stated. C(shared_memory) is the size of /dev/shm."""

    cpu: str = ""
    memory: str = ""
    shared_memory: str = ""


@dataclass(frozen=True)
class HostPath:
    """A folder of the host that a role's container sees beside what every worker gets; read-only unless stated."""

    name: str
    path: str
    mount_path: str
    read_only: bool = True


@dataclass(frozen=True)
class RoleSettings:
    """What a recipe adds to one role."""

    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    volumes: tuple[HostPath, ...] = ()


@dataclass(frozen=True)
class Probe:
    """Times of an HTTP probe on /health, in seconds. The defaults are those the operator gives its workers."""

    initial_delay: int = 15
    period: int = 15
    timeout: int = 10
    failures: int = 6


@dataclass(frozen=True)
class EngineRecipe:
    """A recipe's part for one engine. Times in seconds."""

    engine: str
    model_path: str
    served_name: str
    images: Mapping[str, str]
    tensor_parallel: int
    ready_timeout: int
    roles: Mapping[str, RoleSettings]
    startup_period: int = 10
    readiness: Probe = Probe()
    router_readiness: Probe = Probe(initial_delay=0, period=5, timeout=5, failures=6)
    termination_grace: int = 120
    pre_stop: int = 15

    def role(self, name: str) -> RoleSettings:
        """The settings of a router or of a worker role, the latter on top of what all workers share."""
        own = self.roles.get(name, RoleSettings())
        if name == "router":
            return own
        shared = self.roles.get("worker", RoleSettings())
        return RoleSettings(
            args=shared.args + own.args,
            env={**shared.env, **own.env},
            resources=Resources(
                cpu=own.resources.cpu or shared.resources.cpu,
                memory=own.resources.memory or shared.resources.memory,
                shared_memory=own.resources.shared_memory or shared.resources.shared_memory,
            ),
            volumes=shared.volumes + own.volumes,
        )


@dataclass(frozen=True)
class Validation:
    """One combination that was run: a claim belongs to the combination it was made for."""

    engine: str
    shape: str
    status: str
    transfer: str = ""
    network: str = "host"
    workers: str = ""
    where: str = ""
    evidence: str = ""


@dataclass(frozen=True)
class Recipe:
    """A recipe file."""

    name: str
    title: str
    engines: Mapping[str, EngineRecipe]
    validation: tuple[Validation, ...] = ()

    def evidence(self, engine: str, shape: str, transfer: str, network: str) -> Validation:
        """What was run of this combination; status C(not_run) where nothing was."""
        for claim in self.validation:
            transfers_agree = shape == "aggregated" or claim.transfer == transfer
            if (claim.engine, claim.shape, claim.network) == (engine, shape, network) and transfers_agree:
                return claim
        return Validation(engine=engine, shape=shape, transfer=transfer, network=network, status="not_run")


def nearest(word: str, known: Iterable[str]) -> str:
    """(did you mean X?) for a misspelt word, or nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def known_recipes(paths: Iterable[str] = ()) -> dict[str, Path]:
    """Recipe name -> file. Folders in C(paths) come before the collection's own, so that a user's recipe wins."""
    found: dict[str, Path] = {}
    for folder in [*(Path(path) for path in paths), RECIPES]:
        for file in sorted(folder.glob("*.yml")):
            found.setdefault(file.stem, file)
    return found


def load_recipe(name: str, paths: Iterable[str] = ()) -> Recipe:
    """The recipe of that name. Raises FindingError with everything that is wrong with it."""
    folders = list(paths)
    missing = [folder for folder in folders if not Path(folder).is_dir()]
    if missing:
        raise FindingError(*(_no_folder(folder) for folder in missing))
    known = known_recipes(folders)
    if name not in known:
        raise FindingError(
            Finding(
                code="serving_recipe_unknown",
                severity="error",
                message=f"there is no recipe {name!r}{nearest(name, known)}",
                fix=f"set serving_recipe to one of {', '.join(sorted(known))}, or add the folder of your own to serving_recipe_paths",
                where="serving_recipe",
            )
        )
    file = known[name]
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise FindingError(_invalid(str(file), f"cannot be read: {error}")) from error
    return parse_recipe(content, str(file), name)


def parse_recipe(content: Any, source: str, name: str) -> Recipe:
    """A recipe from its file's content. Raises FindingError with one finding for each fault, all at once."""
    reader = _Reader(source)
    recipe = reader.recipe(content, name)
    if reader.findings:
        raise FindingError(*reader.findings)
    return recipe


def _no_folder(folder: str) -> Finding:
    return Finding(
        code="serving_recipe_folder",
        severity="error",
        message=f"the folder {folder!r} does not exist on the controller",
        fix="correct serving_recipe_paths",
        where="serving_recipe_paths",
    )


def _invalid(where: str, message: str) -> Finding:
    return Finding(
        code="serving_recipe_invalid", severity="error", message=message, fix="correct the recipe file", where=where
    )


class _Reader:
    """Reads untyped YAML into the classes above, noting each fault with its path and going on."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.findings: list[Finding] = []

    def note(self, path: str, message: str) -> None:
        self.findings.append(_invalid(f"{self.source}:{path}" if path else self.source, message))

    def mapping(self, value: Any, path: str, known: Iterable[str], required: Iterable[str] = ()) -> dict[str, Any]:
        if not isinstance(value, dict):
            self.note(path, f"must be a mapping, not {type(value).__name__}")
            return {}
        names = list(known)
        for key in value:
            if key not in names:
                self.note(path, f"unknown key {key!r}{nearest(str(key), names)}; known are {', '.join(names)}")
        for key in required:
            if key not in value:
                self.note(path, f"{key} is missing")
        return {key: value[key] for key in value if key in names}

    def text(self, value: Any, path: str) -> str:
        if isinstance(value, str):
            return value
        self.note(path, f"must be a string, not {type(value).__name__}; quote it")
        return ""

    def number(self, value: Any, path: str, least: int) -> int:
        if isinstance(value, int) and not isinstance(value, bool) and value >= least:
            return value
        self.note(path, f"must be a whole number of at least {least}, not {value!r}")
        return least

    def strings(self, value: Any, path: str) -> tuple[str, ...]:
        if not isinstance(value, list):
            self.note(path, f"must be a list of strings, not {type(value).__name__}")
            return ()
        return tuple(self.text(item, f"{path}[{index}]") for index, item in enumerate(value))

    def recipe(self, content: Any, name: str) -> Recipe:
        top = self.mapping(content, "", ("name", "title", "engines", "validation"), ("name", "engines"))
        if top.get("name", name) != name:
            self.note("name", f"is {top['name']!r}, but the file is called {name}.yml")
        engines = self.mapping(top.get("engines", {}), "engines", ENGINES)
        return Recipe(
            name=name,
            title=self.text(top.get("title", name), "title"),
            engines={engine: self.engine(part, f"engines.{engine}", engine) for engine, part in engines.items()},
            validation=self.claims(top.get("validation", [])),
        )

    def engine(self, content: Any, path: str, engine: str) -> EngineRecipe:
        times = ("startup_period", "termination_grace", "pre_stop")
        probes = ("readiness", "router_readiness")
        required = ("model", "images", "tensor_parallel", "ready_timeout")
        part = self.mapping(content, path, (*required, "roles", *times, *probes), required)
        model = self.mapping(part.get("model", {}), f"{path}.model", ("path", "served_name"), ("path", "served_name"))
        images = self.mapping(part.get("images", {}), f"{path}.images", IMAGE_KEYS, IMAGE_KEYS)
        roles = self.mapping(part.get("roles", {}), f"{path}.roles", RECIPE_ROLES)
        optional: dict[str, Any] = {key: self.number(part[key], f"{path}.{key}", 0) for key in times if key in part}
        optional.update({key: self.probe(part[key], f"{path}.{key}", key) for key in probes if key in part})
        return EngineRecipe(
            engine=engine,
            model_path=self.text(model.get("path", ""), f"{path}.model.path"),
            served_name=self.text(model.get("served_name", ""), f"{path}.model.served_name"),
            images={key: self.text(images[key], f"{path}.images.{key}") for key in images},
            tensor_parallel=self.number(part.get("tensor_parallel", 1), f"{path}.tensor_parallel", 1),
            ready_timeout=self.number(part.get("ready_timeout", 1), f"{path}.ready_timeout", 1),
            roles={role: self.role(settings, f"{path}.roles.{role}") for role, settings in roles.items()},
            **optional,
        )

    def role(self, content: Any, path: str) -> RoleSettings:
        part = self.mapping(content, path, [each.name for each in fields(RoleSettings)])
        env = part.get("env", {})
        env = self.mapping(env, f"{path}.env", env if isinstance(env, dict) else ())
        return RoleSettings(
            args=self.strings(part.get("args", []), f"{path}.args"),
            env={key: self.text(value, f"{path}.env.{key}") for key, value in env.items()},
            resources=self.resources(part.get("resources", {}), f"{path}.resources"),
            volumes=self.volumes(part.get("volumes", []), f"{path}.volumes"),
        )

    def resources(self, content: Any, path: str) -> Resources:
        part = self.mapping(content, path, [each.name for each in fields(Resources)])
        for key, value in part.items():
            if not is_quantity(value):
                self.note(f"{path}.{key}", f"{value!r} is no Kubernetes quantity in quotes, such as '4' or 96Gi")
        return Resources(**{key: str(value) for key, value in part.items()})

    def volumes(self, content: Any, path: str) -> tuple[HostPath, ...]:
        if not isinstance(content, list):
            self.note(path, f"must be a list, not {type(content).__name__}")
            return ()
        required = ("name", "path", "mount_path")
        found = []
        for index, item in enumerate(content):
            where = f"{path}[{index}]"
            part = self.mapping(item, where, (*required, "read_only"), required)
            if all(key in part for key in required):
                texts = {key: self.text(part[key], f"{where}.{key}") for key in required}
                found.append(HostPath(**texts, read_only=part.get("read_only", True) is not False))
        return tuple(found)

    def probe(self, content: Any, path: str, key: str) -> Probe:
        part = self.mapping(content, path, [each.name for each in fields(Probe)])
        base = getattr(EngineRecipe, key)
        values = {each.name: getattr(base, each.name) for each in fields(Probe)}
        for name, value in part.items():
            values[name] = self.number(value, f"{path}.{name}", 0 if name == "initial_delay" else 1)
        return Probe(**values)

    def claims(self, content: Any) -> tuple[Validation, ...]:
        if not isinstance(content, list):
            self.note("validation", f"must be a list, not {type(content).__name__}")
            return ()
        found = []
        required = ("engine", "shape", "status")
        for index, item in enumerate(content):
            path = f"validation[{index}]"
            part = self.mapping(item, path, [each.name for each in fields(Validation)], required)
            texts = {key: self.text(value, f"{path}.{key}") for key, value in part.items()}
            if texts.get("status") not in STATUSES:
                self.note(f"{path}.status", f"must be one of {', '.join(STATUSES)}")
            if all(key in texts for key in required):
                found.append(Validation(**texts))
        return tuple(found)


def is_quantity(value: Any) -> bool:
    """Whether a value is a Kubernetes quantity as text, in the forms that recipes use."""
    return isinstance(value, str) and _QUANTITY.fullmatch(value) is not None
