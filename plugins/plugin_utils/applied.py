# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What C(kubernetes.core.k8s) returned for a list of objects, object by object."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

# Set by the API server and its controllers, not by whoever applies.
_NOISE = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


@dataclass(frozen=True)
class Applied:
    """One object's outcome."""

    label: str
    changed: bool
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """All objects' outcomes; C(resources) as the server has them now."""

    objects: tuple[Applied, ...]
    resources: tuple[Mapping[str, Any], ...]
    errors: tuple[str, ...]

    @property
    def changed(self) -> bool:
        return any(each.changed for each in self.objects)


def label(definition: Mapping[str, Any]) -> str:
    """Kind and name of an object, with its namespace where it has one."""
    metadata = definition["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{definition['kind']} {namespace}{metadata['name']}"


def predict(definitions: Iterable[Mapping[str, Any]]) -> Outcome:
    """The outcome on a cluster that does not exist yet: every object is new."""
    return Outcome(tuple(Applied(label(each), True, {}, each) for each in definitions), (), ())


def collect(definitions: Iterable[Mapping[str, Any]], answer: Mapping[str, Any], check_mode: bool) -> Outcome:
    """Pair the definitions with the module's results (one result is returned bare, several in a list)."""
    wanted = list(definitions)
    results = [answer] if len(wanted) == 1 else answer["result"]["results"]
    new_namespaces = {
        each["metadata"]["name"]
        for each, result in zip(wanted, results)
        if each["kind"] == "Namespace" and check_mode and result.get("changed")
    }
    objects, resources, errors = [], [], []
    for definition, result in zip(wanted, results):
        error = result.get("error")
        if error and definition["metadata"].get("namespace") in new_namespaces:
            objects.append(Applied(label(definition), True, {}, definition))
        elif error:
            errors.append(f"{label(definition)}: {explain(str(error.get('msg', error)))}")
        else:
            objects.append(_applied(definition, result))
            resources.append(result.get("result") or {})
    return Outcome(tuple(objects), tuple(resources), tuple(errors))


def explain(message: str) -> str:
    """The API server's own words out of the client's message, and what to do about a conflict."""
    start = message.find("{")
    try:
        status = json.loads(message[start:]) if start >= 0 else {}
    except ValueError:
        return message
    told = status.get("message", message)
    if status.get("reason") == "Conflict":
        return f"{told}. Undo that change, or allow to take the field over (force_conflicts)."
    return str(told)


def _applied(definition: Mapping[str, Any], result: Mapping[str, Any]) -> Applied:
    difference = result.get("diff") or {}
    before, after = _quiet(difference.get("before") or {}), _quiet(difference.get("after") or {})
    return Applied(label(definition), bool(result.get("changed")), before, after)


def _quiet(part: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in part.items() if key != "status"}
    if "metadata" in kept:
        kept["metadata"] = {key: value for key, value in kept["metadata"].items() if key not in _NOISE}
        if not kept["metadata"]:
            del kept["metadata"]
    return kept


def applied_names(outcome: Outcome) -> list[str]:
    """Labels of the objects that changed."""
    return [each.label for each in outcome.objects if each.changed]


def shown_diff(outcome: Outcome) -> list[dict[str, Any]]:
    """Ansible's diff of each object that changed."""
    return [
        {
            "before": dict(each.before),
            "after": dict(each.after),
            "before_header": each.label,
            "after_header": each.label,
        }
        for each in outcome.objects
        if each.changed
    ]
