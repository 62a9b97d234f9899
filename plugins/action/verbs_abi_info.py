# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(verbs_abi_info): the host sends its libraries, which are read here."""

from __future__ import annotations

from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.plugin_utils.elf import HAS_ELFTOOLS
from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import report


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        # Not in a log: it would be a hundred kilobytes of base64.
        context = self._play_context
        was, context.no_log = context.no_log, True
        try:
            told = self._execute_module(module_args=dict(self._task.args), task_vars=task_vars)
        finally:
            context.no_log = was
        if told.get("failed") or told.get("unreachable"):
            return {**result, **told}
        if not HAS_ELFTOOLS:
            msg = "The Python library pyelftools is missing on the controller. Fix: pip install -r requirements.txt"
            return {**result, "failed": True, "msg": msg}
        return {**result, "changed": False, **report(told["host"], str(self._task.args.get("driver") or "ionic"))}
