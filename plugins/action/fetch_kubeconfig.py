# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""C(fetch_kubeconfig): read on the host, written on the controller, shown nowhere."""

from __future__ import annotations

import base64
import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.managed_files import ManagedFile, apply, plan
from ansible_collections.infera.baremetal.plugins.plugin_utils.kubeconfig import usable_from_elsewhere


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(
            {
                "src": {"type": "path", "default": "/etc/rancher/k3s/k3s.yaml"},
                "dest": {"type": "path", "required": True},
                "server": {"type": "str", "required": True},
                "name": {"type": "str", "required": True},
            }
        )[1]
        read = self._read(options["src"], task_vars)
        if read.get("failed"):
            return {**result, "failed": True, "msg": f"{options['src']} cannot be read: {read.get('msg', '')}"}
        path = os.path.abspath(options["dest"])
        try:
            text = base64.b64decode(read["content"]).decode("utf-8")
            text = usable_from_elsewhere(text, options["server"], options["name"])
            changes = plan([ManagedFile(path, text, 0o600, secret=True)])
            if not self._task.check_mode:
                for file, _change in changes:
                    apply(file)
        except (ValueError, FindingError) as error:
            return {**result, "failed": True, "msg": str(error)}
        result.update(changed=bool(changes), path=path)
        if self._task.diff:
            result["diff"] = [change.to_diff() for _file, change in changes]
        return result

    def _read(self, path: str, task_vars: dict[str, Any] | None) -> dict[str, Any]:
        # -vvv prints what comes over the connection: not this. The task itself stays readable, errors and all.
        context = self._play_context
        was, context.no_log = context.no_log, True
        try:
            return self._execute_module(
                module_name="ansible.builtin.slurp", module_args={"src": path}, task_vars=task_vars
            )
        finally:
            context.no_log = was
