# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import (
    PreflightInputError,
    Settings,
    some,
)


def test_a_survey_gives_strings_and_they_mean_the_same() -> None:
    given = {
        "waive": "swap_on, cgroup_v1,",
        "node_ports": "10250/tcp",
        "max_skew": "2.5",
        "base_bytes": "1024",
        "required_bytes": "",
        "pod_cidrs": "",
    }

    settings = Settings.parse(given)

    assert settings.waive == ["swap_on", "cgroup_v1"]
    assert settings.node_ports == ["10250/tcp"]
    assert (settings.max_skew, settings.base_bytes, settings.required_bytes) == (2.5, 1024, 0)
    assert settings.pod_cidrs == []


@pytest.mark.parametrize(
    ("value", "message"), [("soon", "must be a number"), ("-1", "must not be negative"), ([], "must be a number")]
)
def test_a_wrong_number_names_its_variable(value: Any, message: str) -> None:
    with pytest.raises(PreflightInputError, match=f"preflight_max_skew is .*{message}"):
        Settings.parse({"max_skew": value})


def test_a_wrong_port_names_its_variable() -> None:
    with pytest.raises(
        PreflightInputError, match="preflight_node_ports: '10250' is not a port; write it like 6443/tcp"
    ):
        Settings.parse({"node_ports": "10250"})


def test_ports_follow_the_groups() -> None:
    settings = Settings.parse({"groups": {"k3s_server": ["a"], "decode": ["b"]}})

    assert settings.ports_of("a") == ["6443/tcp", "10250/tcp", "8472/udp"]
    assert settings.ports_of("b") == ["10250/tcp", "8472/udp", "30000/tcp", "8998/tcp"]
    assert settings.join_ports_of("b") == ["10250/tcp", "8472/udp"]


def test_many_names_are_cut() -> None:
    assert some(["a", "b"]) == "a, b"
    assert some(list("abcdefg")) == "a, b, c, d, e and 2 more"
