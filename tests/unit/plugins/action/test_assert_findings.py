# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.action.assert_findings import ActionModule as AssertFindings
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run

ERROR = {"code": "disk_full", "severity": "error", "message": "has 1 GiB free", "fix": "Make room.", "where": "gpu1"}
WARNING = {"code": "swap_on", "severity": "warning", "message": "has swap", "fix": "Turn it off.", "where": "gpu2"}


def test_one_message_lists_every_finding_errors_first():
    result = run(AssertFindings, subject="Preflight of 2 hosts", findings=[WARNING, ERROR])

    assert result["failed"]
    assert result["msg"].splitlines() == [
        "Preflight of 2 hosts: 1 to mend, 1 to know",
        "[error disk_full] gpu1: has 1 GiB free Fix: Make room.",
        "[warning swap_on] gpu2: has swap Fix: Turn it off.",
    ]


@pytest.mark.parametrize("waive", [["disk_full"], "disk_full", "other, disk_full"], ids=["list", "string", "commas"])
def test_a_waived_error_passes_and_is_named(waive):
    result = run(AssertFindings, subject="Preflight", findings=[ERROR], waive=waive)

    assert not result["failed"]
    assert result["waived"] == ["disk_full"]
    assert "[waived disk_full] gpu1: has 1 GiB free" in result["msg"]


def test_nothing_found_says_nothing():
    result = run(AssertFindings, subject="Preflight", findings=[])

    assert not result["failed"]
    assert not result["changed"]
    assert "msg" not in result
