# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each task took on each host, and the objects that were deployed: one JSON file, written at the end of the run."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: bench
type: aggregate
short_description: Times tasks for tests/bench
description: Writes to the file that the environment variable BENCH_FILE names.
"""

# Facts of the roles that the plain script is given, so that it applies the same objects.
FACTS = ("_gpu_plugin_objects", "_serving_objects", "_serving_plan")


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "bench"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self.began = time.monotonic()
        self.tasks: list[dict[str, Any]] = []
        self.results: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}
        self.started: dict[tuple[str, str], float] = {}

    def _now(self) -> float:
        return time.monotonic() - self.began

    def _task_begins(self, task: Any) -> None:
        self.tasks.append({"name": task.get_name(), "at": self._now()})

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        self._task_begins(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        self._task_begins(task)

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self.started[host.get_name(), task._uuid] = self._now()

    def _result(self, result: Any, status: str) -> None:
        host, task = result._host.get_name(), result._task
        start = self.started.get((host, task._uuid), self._now())
        changed = bool(result._result.get("changed"))
        self.results.append(
            {
                "host": host,
                "task": task.get_name(),
                "action": task.action,
                "status": status,
                "changed": changed,
                "seconds": self._now() - start,
            }
        )
        facts = result._result.get("ansible_facts") or {}
        self.facts.update({name: facts[name] for name in FACTS if name in facts})

    def v2_runner_on_ok(self, result: Any) -> None:
        self._result(result, "ok")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._result(result, "failed")

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._result(result, "skipped")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._result(result, "unreachable")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        written = {"tasks": self.tasks, "results": self.results, "facts": self.facts, "end": self._now()}
        with open(os.environ["BENCH_FILE"], "w", encoding="utf-8") as handle:
            json.dump(written, handle, default=str)
