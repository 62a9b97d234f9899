# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""C(apply_objects): one call of C(kubernetes.core.k8s) for all objects, and its result in a form that a reader can use."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.plugin_utils.applied import (
    Outcome,
    applied_names,
    collect,
    explain,
    predict,
    shown_diff,
)


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(
            {
                "kubeconfig": {"type": "path", "required": True},
                "objects": {"type": "list", "elements": "dict", "required": True},
                "field_manager": {"type": "str", "default": "infera"},
                "force_conflicts": {"type": "bool", "default": False},
            }
        )[1]
        objects, kubeconfig = options["objects"], os.path.abspath(options["kubeconfig"])
        if self._task.check_mode and not os.path.exists(kubeconfig):
            return self._outcome(
                result, predict(objects), msg="There is no cluster yet; this is what would be applied."
            )
        answer = self._execute_module(
            module_name="kubernetes.core.k8s",
            module_args={
                "kubeconfig": kubeconfig,
                "resource_definition": objects,
                "apply": True,
                "server_side_apply": {key: options[key] for key in ("field_manager", "force_conflicts")},
                # A dry run does not make the namespace that the other objects are in: the errors are told apart below.
                "continue_on_error": bool(self._task.check_mode),
            },
            task_vars=task_vars,
        )
        if answer.get("failed"):
            # Not the module's own exception with it: it repeats the client's words, an object of the API in JSON.
            return {
                **result,
                "failed": True,
                "msg": f"The objects could not be applied. {explain(answer.get('msg', ''))}",
            }
        outcome = collect(objects, answer, self._task.check_mode)
        if outcome.errors:
            return {**result, "failed": True, "msg": "\n".join(outcome.errors)}
        if answer.get("warnings"):
            result["warnings"] = answer["warnings"]
        return self._outcome(result, outcome)

    def _outcome(self, result: dict[str, Any], outcome: Outcome, **more: str) -> dict[str, Any]:
        result.update(
            changed=outcome.changed, resources=list(outcome.resources), applied=applied_names(outcome), **more
        )
        if self._task.diff:
            result["diff"] = shown_diff(outcome)
        return result
