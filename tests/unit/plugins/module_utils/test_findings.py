# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError, errors, summary

ERROR = Finding("disk_full", "error", "has 1 GiB free", "Make room.", where="node1:/data")
WARNING = Finding(
    "swap_on", "warning", "has swap", "Turn it off.", where="node1", why="the kubelet's limits assume none"
)


def test_dictionary_has_why_only_where_there_is_one():
    assert ERROR.to_dict() == {
        "code": "disk_full",
        "severity": "error",
        "message": "has 1 GiB free",
        "fix": "Make room.",
        "where": "node1:/data",
    }
    assert WARNING.to_dict()["why"] == "the kubelet's limits assume none"


def test_unknown_severity_is_refused():
    with pytest.raises(ValueError, match="fatal"):
        Finding("x", "fatal", "m", "f")


def test_summary_puts_errors_first_and_every_fix_on_its_line():
    text = summary([WARNING.to_dict(), ERROR.to_dict()])

    assert text.splitlines() == [
        "[error disk_full] node1:/data: has 1 GiB free Fix: Make room.",
        "[warning swap_on] node1: has swap (the kubelet's limits assume none) Fix: Turn it off.",
    ]


def test_only_unwaived_errors_stop_a_run():
    findings = [WARNING.to_dict(), ERROR.to_dict()]

    assert errors(findings) == [ERROR.to_dict()]
    assert errors(findings, waived=["disk_full"]) == []


def test_error_carries_its_findings_and_their_text():
    error = FindingError(ERROR, WARNING)

    assert error.findings == [ERROR, WARNING]
    assert "Make room." in str(error) and "Turn it off." in str(error)
