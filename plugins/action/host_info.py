# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(host_info): how far the host's clock is off, without trusting how long the call took."""

from __future__ import annotations

import time
from typing import Any

from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        before = time.time()
        result.update(
            self._execute_module(
                module_name="infera.baremetal.host_info", module_args=self._task.args, task_vars=task_vars
            )
        )
        after = time.time()
        clock = (result.get("host") or {}).get("clock")
        if clock:
            clock.update(clock_bounds(clock["first_seen"], clock["last_seen"], before, after))
        return result


def clock_bounds(first_seen: float, last_seen: float, before: float, after: float) -> dict[str, float]:
    """Bounds, in seconds, of how far the host's clock is ahead of the controller's.

    The host read its clock first after C(before), and last before C(after), both by the controller's clock. So the time
    that the reading itself took does not widen the bounds; only what connecting and starting took does.
    """
    return {"ahead_min": round(last_seen - after, 3), "ahead_max": round(first_seen - before, 3)}
