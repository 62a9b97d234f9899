# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Findings: what every stage says about a host, an object or a file.

A finding is C({code, severity, message, fix, where, why?}); one shape serves the preflight, the rails, the images, the
manifest lint and the report. Codes are stable: users waive findings by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable

SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Finding:
    """One statement for the person on call: what is wrong, where, and what to do about it.

    C(where) is a host, an object or a file, with the path in it after a colon where there is one
    (C(node1), C(node1:/mnt/data), C(serving_recipe)).
    """

    code: str
    severity: str
    message: str
    fix: str
    where: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise ValueError(f"severity of {self.code} is {self.severity!r}; it must be one of {', '.join(SEVERITIES)}")

    def to_dict(self) -> dict[str, str]:
        """The finding as it crosses to Ansible and to the cluster record; C(why) only where there is one."""
        result = {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "fix": self.fix,
            "where": self.where,
        }
        if self.why:
            result["why"] = self.why
        return result


class FindingError(Exception):
    """An error that carries its findings; modules and actions turn it into one C(fail_json)."""

    def __init__(self, *findings: Finding) -> None:
        self.findings = list(findings)
        super().__init__(summary([finding.to_dict() for finding in findings]))


def errors(findings: Iterable[dict[str, Any]], waived: Iterable[str] = ()) -> list[dict[str, Any]]:
    """The findings that stop a run: severity C(error) and a code that the operator has not waived."""
    codes = set(waived)
    return [finding for finding in findings if finding["severity"] == "error" and finding["code"] not in codes]


def summary(findings: Iterable[dict[str, Any]], waived: Iterable[str] = ()) -> str:
    """One line a finding, errors first, each with its fix: the text of a failure or of a report's head."""
    codes = set(waived)
    ordered = sorted(findings, key=lambda finding: SEVERITIES.index(finding["severity"]))
    return "\n".join(_line(finding, codes) for finding in ordered)


def verdict(subject: str, findings: Iterable[dict[str, Any]], waived: Iterable[str] = ()) -> str:
    """What a stage says of all its findings: how many stop it, then one line each."""
    listed, waived = list(findings), list(waived)
    stopping = len(errors(listed, waived))
    return f"{subject}: {stopping} to mend, {len(listed) - stopping} to know\n{summary(listed, waived)}"


def _line(finding: dict[str, Any], waived: set[str]) -> str:
    kind = "waived" if finding["severity"] == "error" and finding["code"] in waived else finding["severity"]
    where = f"{finding['where']}: " if finding.get("where") else ""
    why = f" ({finding['why']})" if finding.get("why") else ""
    return f"[{kind} {finding['code']}] {where}{finding['message']}{why} Fix: {finding['fix']}"
