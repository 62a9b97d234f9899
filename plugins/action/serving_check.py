# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""C(serving_check): pods are read here, the router is asked from the host of the task, since its address is the cluster's own."""

from __future__ import annotations

import os
import time
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import Cluster, KubeError, connect
from ansible_collections.infera.baremetal.plugins.plugin_utils.rollout import LOG_LINES, poll
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import name_of
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.verify import (
    answer_findings,
    answer_text,
    log_findings,
    placement_findings,
    worker_findings,
)

ROUTER_SECONDS = 10


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        # Asking changes nothing, and uri would answer that it is skipped.
        self._task.check_mode = False
        options = self.validate_argument_spec(
            {
                "kubeconfig": {"type": "path", "required": True},
                "plan": {"type": "dict", "required": True},
                "request": {"type": "dict", "required": True},
                "deadline": {"type": "int", "required": True},
                "pattern": {"type": "str", "default": ""},
            }
        )[1]
        try:
            cluster = connect(os.path.abspath(options["kubeconfig"]))
            result.update(self._check(cluster, options, task_vars or {}))
        except KubeError as error:
            result.update(failed=True, msg=str(error))
        result["changed"] = False
        return result

    def _check(self, cluster: Cluster, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        plan, deadline = options["plan"], options["deadline"]
        url = f"{plan['endpoint']}/v1"
        pods = cluster.list("v1", "Pod", plan["namespace"], plan["selector"])

        def registered() -> list[Finding]:
            workers = self._ask(task_vars, url=f"{url}/workers", timeout=ROUTER_SECONDS)
            return worker_findings(plan, workers, pods)

        findings = poll(registered, lambda found: not found, deadline)
        answer: dict[str, Any] = {}
        seconds = 0.0
        if not findings:
            start = time.monotonic()
            body = {"method": "POST", "body": options["request"], "body_format": "json"}
            answer = self._ask(task_vars, url=f"{url}/chat/completions", timeout=deadline, **body)
            seconds = time.monotonic() - start
            findings = answer_findings(answer, deadline, options["pattern"])
        findings = placement_findings(plan, pods) + findings
        if findings:
            logs = {name_of(pod): cluster.log(plan["namespace"], name_of(pod), "main", LOG_LINES) for pod in pods}
            findings += log_findings(plan, pods, logs)
        return {
            "answer": answer_text(answer),
            "seconds": round(answer.get("elapsed", seconds), 3),
            "findings": [finding.to_dict() for finding in findings],
        }

    def _ask(self, task_vars: dict[str, Any], **request: Any) -> dict[str, Any]:
        return self._execute_module(
            module_name="ansible.builtin.uri",
            module_args={"return_content": True, "use_proxy": False, **request},
            task_vars=task_vars,
        )
