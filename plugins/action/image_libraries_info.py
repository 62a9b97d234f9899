# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(image_libraries_info): an archive is looked into here, and all ELF files are read here."""

from __future__ import annotations

import os
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_libraries import of_archive
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse
from ansible_collections.infera.baremetal.plugins.modules.image_libraries_info import ARGUMENT_SPEC


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(ARGUMENT_SPEC)[1]
        try:
            told = self._archive(options) if options["archive"] else self._containerd(options, task_vars)
        except FindingError as error:
            findings = [finding.to_dict() for finding in error.findings]
            return {**result, "failed": True, "msg": str(error), "findings": findings}
        if told.get("failed") or told.get("unreachable"):
            return {**result, **told}
        try:
            from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import image_report
        except ImportError:
            msg = "The Python library pyelftools is missing on the controller. Fix: pip install -r requirements.txt"
            return {**result, "failed": True, "msg": msg}
        return {**result, "changed": False, "image": told["image"] and image_report(told["image"])}

    def _archive(self, options: dict[str, Any]) -> dict[str, Any]:
        path = os.path.abspath(options["archive"])
        return {"image": of_archive(path, parse(options["name"], "name"), options["driver"], f"controller:{path}")}

    def _containerd(self, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        # Not in a log: it would be hundreds of kilobytes of base64.
        context = self._play_context
        was, context.no_log = context.no_log, True
        try:
            return self._execute_module(module_args=options, task_vars=task_vars)
        finally:
            context.no_log = was
