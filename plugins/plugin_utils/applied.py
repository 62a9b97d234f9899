# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Applying a list of objects: tried as a whole first, then only what differs, so that a conflict leaves nothing half applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from ansible.module_utils.common.dict_transformations import recursive_diff
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import Cluster, KubeError, path_of

FIELD_MANAGER = "infera"
# Set by the API server and its controllers, not by whoever applies.
_NOISE = ("managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink")


class ApplyError(Exception):
    """What the API refuses, one line for each object."""


@dataclass(frozen=True)
class Applied:
    """One object's outcome; the parts that differ, for a diff."""

    label: str
    changed: bool
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """All objects' outcomes; C(resources) as the server has them now, without status and what changes by itself."""

    objects: tuple[Applied, ...]
    resources: tuple[Mapping[str, Any], ...] = ()

    @property
    def changed(self) -> bool:
        return any(each.changed for each in self.objects)

    @property
    def names(self) -> list[str]:
        """Labels of the objects that changed."""
        return [each.label for each in self.objects if each.changed]


def apply(cluster: Cluster, definitions: Iterable[Mapping[str, Any]], force: bool, check_mode: bool) -> Outcome:
    """Server-side apply of all objects. Raises ApplyError, before anything but a new namespace is made."""
    wanted = list(definitions)
    new_namespaces = set()
    for definition in wanted:
        if definition["kind"] == "Namespace" and cluster.get(path_of(definition)) is None:
            new_namespaces.add(definition["metadata"]["name"])
            if not check_mode:
                _try(lambda each=definition: cluster.apply(each, FIELD_MANAGER, force), definition)
    objects, resources, errors = [], [], []
    for definition in wanted:
        name = definition["metadata"]["name"] if definition["kind"] == "Namespace" else ""
        if check_mode and new_namespaces & {name, definition["metadata"].get("namespace", "")}:
            objects.append(Applied(label(definition), True, {}, definition))
            continue
        before = None
        try:
            before = cluster.get(path_of(definition))
            after = cluster.apply(definition, FIELD_MANAGER, force, dry_run=True)
        except KubeError as error:
            errors.append(f"{label(definition)}: {error}{_way_out(error, before)}")
            continue
        is_new = name in new_namespaces
        objects.append(_compared(definition, None if is_new else before, after))
        resources.append(after if objects[-1].changed and not check_mode and not is_new else before or after)
    if errors:
        raise ApplyError("\n".join(errors))
    if check_mode:
        return Outcome(tuple(objects), tuple(map(_quiet, resources)))
    for index, (definition, outcome) in enumerate(zip(wanted, objects)):
        if outcome.changed:
            resources[index] = _try(lambda each=definition: cluster.apply(each, FIELD_MANAGER, force), definition)
    return Outcome(tuple(objects), tuple(map(_quiet, resources)))


def predict(definitions: Iterable[Mapping[str, Any]]) -> Outcome:
    """The outcome on a cluster that does not exist yet: every object is new."""
    return Outcome(tuple(Applied(label(each), True, {}, each) for each in definitions))


def label(definition: Mapping[str, Any]) -> str:
    """Kind and name of an object, with its namespace where it has one."""
    metadata = definition["metadata"]
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{definition['kind']} {namespace}{metadata['name']}"


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


def _try(action: Any, definition: Mapping[str, Any]) -> Any:
    try:
        return action()
    except KubeError as error:
        raise ApplyError(f"{label(definition)}: {error}") from error


def _way_out(error: KubeError, before: Any) -> str:
    """An edit that does not go together with what is applied is no conflict to the API server, but an invalid object."""
    if error.status == 422 and before is not None:
        return (
            " Fix: if somebody edited it, undo that, or delete it (kubectl delete) and run again, which makes it anew."
        )
    return ""


def _compared(definition: Mapping[str, Any], before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Applied:
    if before is None:
        return Applied(label(definition), True, {}, definition)
    difference = recursive_diff(_quiet(before), _quiet(after))
    if difference is None:
        return Applied(label(definition), False)
    return Applied(label(definition), True, difference[0], difference[1])


def _quiet(part: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: value for key, value in part.items() if key != "status"}
    kept["metadata"] = {key: value for key, value in kept.get("metadata", {}).items() if key not in _NOISE}
    return kept
