# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""C(gpu_plugin_rollout), all of it: the device plugin, and the wait until the nodes offer their GPUs."""

from __future__ import annotations

from typing import Any

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.applied import Outcome
from ansible_collections.infera.baremetal.plugins.plugin_utils.gpu_plugin import (
    NAMESPACE,
    POD_LABELS,
    gpu_findings,
    plugin_path,
    rolled_out,
    seen_gpus,
)
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import Cluster
from ansible_collections.infera.baremetal.plugins.plugin_utils.rollout import LOG_LINES, RolloutAction, poll
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import name_of


class ActionModule(RolloutAction):
    OPTIONS = {
        "expected": {"type": "dict", "required": True},
        "timeout": {"type": "int", "required": True},
    }

    def settle(
        self, cluster: Cluster, options: dict[str, Any], outcome: Outcome
    ) -> tuple[list[Finding], dict[str, Any]]:
        expected = options["expected"]
        nodes: list[dict[str, Any]] = []

        def look() -> list[Finding]:
            nodes[:] = cluster.list("v1", "Node")
            return gpu_findings(expected, nodes)

        def settled(found: list[Finding]) -> bool:
            # What nodes offer may still be the old plugin's: after a change the new one has to run first.
            return not found and (not outcome.changed or rolled_out(cluster.get(plugin_path())))

        if self._task.check_mode:
            look()
            return [], {"seen": seen_gpus(nodes)}
        found = poll(look, settled, options["timeout"], self._tell)
        if found:
            pods = cluster.list("v1", "Pod", NAMESPACE, ",".join(f"{key}={value}" for key, value in POD_LABELS.items()))
            logs = {name_of(pod): cluster.log(NAMESPACE, name_of(pod), "", LOG_LINES) for pod in pods}
            found = gpu_findings(expected, nodes, pods, logs)
        return found, {"seen": seen_gpus(nodes)}

    def _tell(self, found: list[Finding]) -> None:
        self.progress("; ".join(f"{each.where} {each.message.splitlines()[0]}" for each in found) or "the new plugin")
