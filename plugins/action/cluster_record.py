# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(cluster_record): all of it."""

from __future__ import annotations

import os
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.plugin_utils.record import RecordError, write_stage


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, options = self.validate_argument_spec(
            {
                "path": {"type": "path", "required": True},
                "stage": {"type": "str", "required": True},
                "result": {"type": "dict", "required": True},
            }
        )
        path = os.path.abspath(options["path"])
        if not self._task.check_mode:
            try:
                write_stage(path, options["stage"], options["result"])
            except RecordError as error:
                raise AnsibleActionFail(str(error)) from error
        result.update(changed=False, path=path)
        return result
