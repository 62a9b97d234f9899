# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""C(serving_rollout), all of it: the objects of a deployment, and the wait until its pods are ready."""

from __future__ import annotations

from typing import Any

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.applied import Outcome
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import Cluster, collection
from ansible_collections.infera.baremetal.plugins.plugin_utils.rollout import LOG_LINES, RolloutAction, poll
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import PodObject, Rollout, name_of, rollout


class ActionModule(RolloutAction):
    OPTIONS = {
        "namespace": {"type": "str", "required": True},
        "selector": {"type": "str", "required": True},
        "timeout": {"type": "int", "required": True},
    }

    def settle(
        self, cluster: Cluster, options: dict[str, Any], outcome: Outcome
    ) -> tuple[list[Finding], dict[str, Any]]:
        namespace, objects = options["namespace"], options["objects"]
        pods: list[PodObject] = []

        def look() -> Rollout:
            pods[:] = cluster.list("v1", "Pod", namespace, options["selector"])
            return rollout(objects, pods)

        state = look()
        removed = list(state.stale)
        more: dict[str, Any] = {"removed": removed, "changed": bool(removed)}
        if self._task.check_mode:
            return [], more
        for name in removed:
            cluster.delete(f"{collection('apps/v1', 'Deployment', namespace)}/{name}")
        if not state.done:
            state = poll(look, lambda seen: seen.done or seen.failed, options["timeout"], self._tell)
        if state.done:
            return [], more
        events = cluster.list("v1", "Event", namespace)
        logs = {name_of(pod): cluster.log(namespace, name_of(pod), "main", LOG_LINES) for pod in pods}
        return list(rollout(objects, pods, events, logs).findings), more

    def _tell(self, state: Rollout) -> None:
        self.progress("; ".join(f"{each.where} {each.message.splitlines()[0]}" for each in state.findings))
