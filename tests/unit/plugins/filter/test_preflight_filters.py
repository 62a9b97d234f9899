# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.infera.baremetal.plugins.filter.findings_lines import findings_lines
from ansible_collections.infera.baremetal.plugins.filter.preflight_findings import preflight_findings
from ansible_collections.infera.baremetal.plugins.filter.preflight_peers import preflight_peers


def test_a_wrong_setting_is_a_finding_beside_the_others() -> None:
    (finding,) = preflight_findings({}, {"max_skew": "soon"})

    assert (finding["code"], finding["severity"]) == ("preflight_input", "error")
    assert "preflight_max_skew is 'soon'; it must be a number" in finding["message"]


def test_a_wrong_setting_is_one_clear_error_where_there_is_no_list_of_findings() -> None:
    with pytest.raises(AnsibleFilterError, match="preflight_max_skew is 'soon'; it must be a number"):
        preflight_peers({}, {"max_skew": "soon"})


def test_findings_cross_to_playbooks_as_dictionaries() -> None:
    (finding,) = preflight_findings({}, {"groups": {"k3s_cluster": [], "k3s_server": []}})

    assert finding == {
        "code": "no_server",
        "severity": "error",
        "message": "the group k3s_server has no host",
        "fix": "Put one host into k3s_server.",
        "where": "inventory",
    }


def test_lines_are_one_a_finding_the_worst_first() -> None:
    given = [
        {"code": "swap_on", "severity": "warning", "message": "swap", "fix": "Off.", "where": "gpu1"},
        {"code": "no_server", "severity": "error", "message": "none", "fix": "One.", "where": "inventory"},
    ]

    assert findings_lines(given) == [
        "[error no_server] inventory: none Fix: One.",
        "[warning swap_on] gpu1: swap Fix: Off.",
    ]
