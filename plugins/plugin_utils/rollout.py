# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Apply, wait, explain: what the actions that deploy something have in common."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, TypeVar

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, verdict
from ansible_collections.infera.baremetal.plugins.plugin_utils.applied import (
    ApplyError,
    Outcome,
    apply,
    predict,
    shown_diff,
)
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import Cluster, KubeError, connect

Seen = TypeVar("Seen")

LOG_LINES = 20
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 3.0
TELL_EVERY = 30.0


def poll(
    look: Callable[[], Seen],
    settled: Callable[[Seen], bool],
    seconds: float,
    tell: Callable[[Seen], None] = lambda seen: None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Seen:
    """The first look that is settled, or the last one when C(seconds) are over. C(tell) hears of it every half minute."""
    start = told = clock()
    pause = FIRST_PAUSE
    while True:
        seen = look()
        now = clock()
        if settled(seen) or now - start >= seconds:
            return seen
        if now - told >= TELL_EVERY:
            tell(seen)
            told = now
        sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)


class RolloutAction(ActionBase):
    """An action that applies objects from the controller, and then waits for what they are for."""

    TRANSFERS_FILES = False
    _requires_connection = False
    OPTIONS: dict[str, Any] = {}

    def settle(
        self, cluster: Cluster, options: dict[str, Any], outcome: Outcome
    ) -> tuple[list[Finding], dict[str, Any]]:
        """What stands in the way after the wait, and what to return beside it. In check mode it only looks."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(
            {
                "kubeconfig": {"type": "path", "required": True},
                "objects": {"type": "list", "elements": "dict", "required": True},
                "force_conflicts": {"type": "bool", "default": False},
                "subject": {"type": "str", "required": True},
                **self.OPTIONS,
            }
        )[1]
        kubeconfig = os.path.abspath(options["kubeconfig"])
        if self._task.check_mode and not os.path.exists(kubeconfig):
            outcome = predict(options["objects"])
            return {
                **self._told(result, outcome),
                "msg": "There is no cluster yet; this is what would be applied.",
                "predicted": True,
            }
        try:
            cluster = connect(kubeconfig)
            outcome = apply(cluster, options["objects"], options["force_conflicts"], self._task.check_mode)
            found, more = self.settle(cluster, options, outcome)
        except ApplyError as error:
            return {**result, "failed": True, "msg": f"{options['subject']} could not be applied.\n{error}"}
        except KubeError as error:
            return {**result, "failed": True, "msg": f"{options['subject']}: {error}"}
        self._told(result, outcome)
        result.update(more, changed=outcome.changed or bool(more.get("changed")), predicted=False)
        if found:
            findings = [finding.to_dict() for finding in found]
            # Ansible prints what is returned beside a message: the objects in full would bury it.
            del result["resources"]
            result.update(failed=True, msg=verdict(options["subject"], findings))
        return result

    def progress(self, text: str) -> None:
        """One line for whoever watches a long wait."""
        self._display.display(f"  still waiting: {text}")

    def _told(self, result: dict[str, Any], outcome: Outcome) -> dict[str, Any]:
        result.update(changed=outcome.changed, resources=list(outcome.resources), applied=outcome.names)
        if self._task.diff:
            result["diff"] = shown_diff(outcome)
        return result
