# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(assert_findings): all of it."""

from __future__ import annotations

from typing import Any, Iterable

from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import errors, verdict


class ActionModule(ActionBase):
    TRANSFERS_FILES = False
    _requires_connection = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        _spec, options = self.validate_argument_spec(
            {
                "findings": {"type": "list", "elements": "dict", "required": True},
                "waive": {"type": "list", "elements": "str", "default": []},
                "subject": {"type": "str", "required": True},
            }
        )
        findings = options["findings"]
        waive = [code.strip() for code in options["waive"] if code.strip()]
        stopping = errors(findings, waive)
        result.update(
            changed=False,
            # Codes alone: Ansible prints a result beside its message, and the message has all of it.
            errors=_codes(stopping),
            waived=_codes(finding for finding in errors(findings) if finding not in stopping),
        )
        if findings:
            result["msg"] = verdict(options["subject"], findings, waive)
        result["failed"] = bool(stopping)
        return result


def _codes(findings: Iterable[dict[str, Any]]) -> list[str]:
    return sorted({finding["code"] for finding in findings})
