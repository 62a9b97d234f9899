# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A double of the API server: it keeps objects by path, defaults nothing, and refuses what it is told to refuse."""

from __future__ import annotations

import copy
import json
from typing import Any

from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import Cluster, KubeError


class ApiDouble:
    """C(refused): path -> what the server says of it. C(lists): path of a collection -> its answers, the last one for ever."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refused: dict[str, KubeError] = {}
        self.lists: dict[str, list[list[dict[str, Any]]]] = {}
        self.logs: dict[str, str] = {}
        self.writes: list[tuple[str, str]] = []

    def request(self, method: str, path: str, query: Any, body: Any = None) -> str:
        if path in self.refused:
            raise self.refused[path]
        if path in self.logs:
            return self.logs[path]
        if path in self.lists:
            answers = self.lists[path]
            return json.dumps({"items": answers.pop(0) if len(answers) > 1 else answers[0]})
        if method == "PATCH":
            return json.dumps(self._apply(path, query, body))
        if path not in self.objects:
            raise KubeError(f"{path} not found", 404)
        if method == "DELETE":
            self.writes.append((method, path))
            del self.objects[path]
            return "{}"
        return json.dumps(self.objects[path])

    def _apply(self, path: str, query: Any, body: dict[str, Any]) -> dict[str, Any]:
        namespace = body["metadata"].get("namespace")
        if namespace and f"/api/v1/namespaces/{namespace}" not in self.objects:
            raise KubeError(f'namespaces "{namespace}" not found', 404)
        kept = copy.deepcopy(body)
        kept["metadata"]["resourceVersion"] = str(len(self.writes))
        if "dryRun" not in query:
            self.writes.append((method_of(query), path))
            self.objects[path] = kept
        return kept


def method_of(query: Any) -> str:
    """APPLY, and whether fields are taken over."""
    return "APPLY force" if query.get("force") == "true" else "APPLY"


def cluster(*objects: tuple[str, dict[str, Any]]) -> tuple[Cluster, ApiDouble]:
    """A cluster with these objects."""
    double = ApiDouble()
    double.objects.update(copy.deepcopy(dict(objects)))
    return Cluster(double), double
