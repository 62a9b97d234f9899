# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.modules import rail_rdma_test

TEST = {
    "rail": 0,
    "rdma_device": "ionic_0",
    "port": 1,
    "gid_index": 1,
    "netdev": "rail0",
    "peer": "gpu2",
    "peer_rail": 0,
    "peer_address": "10.1.0.2",
    "tcp_port": 18515,
    "bandwidth": True,
}
OPTIONS: dict[str, Any] = {"tests": [TEST], "seconds": 2, "timeout": 30.0, "lifetime": 300, "sysfs_root": "/sys"}


@pytest.fixture(name="calls", autouse=True)
def fixture_calls(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What would start or end something is written down instead."""
    calls: list[Any] = []

    def note(name: str, result: Any) -> None:
        def called(*given: Any) -> Any:
            calls.append((name, *given))
            return result

        monkeypatch.setattr(rail_rdma_test, name, called)

    note("start_servers", None)
    note("stop_servers", ["told"])
    note("run_client", ["measured"])
    monkeypatch.setattr(rail_rdma_test, "missing_tools", lambda: ["ib_write_bw"])
    return calls


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seconds": 0}, "seconds is 0; it must be from 1 to 60"),
        ({"timeout": 0.5}, "timeout is 0.5; it must be from 1 to 600"),
        ({"lifetime": 3601}, "lifetime is 3601; it must be from 1 to 3600"),
        ({"tests": [{**TEST, "rdma_device": "--help"}]}, "rdma_device is '--help'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    for state in ("server", "client"):
        with pytest.raises(ValueError, match=message):
            rail_rdma_test.run({**OPTIONS, "state": state, **options})


@pytest.mark.parametrize(
    ("state", "result", "called"),
    [
        ("server", {}, ("start_servers", 2, 300)),
        ("client", {"results": ["measured"]}, ("run_client", 2, 30.0, "/sys")),
        ("stopped", {"servers": ["told"]}, ("stop_servers",)),
    ],
)
def test_each_state_does_its_part_and_names_missing_tools(
    calls: list[Any], state: str, result: dict[str, Any], called: tuple[Any, ...]
) -> None:
    assert rail_rdma_test.run({**OPTIONS, "state": state}) == {"missing": ["ib_write_bw"], **result}

    ((name, *given),) = calls
    assert (name, *[value for value in given if not isinstance(value, list)]) == called


def test_the_specification_has_the_keys_of_a_test() -> None:
    assert set(rail_rdma_test.TEST) == set(TEST)
    assert rail_rdma_test.parse_tests([TEST])[0].command("pingpong", 2, client=True)[-1] == "10.1.0.2"
