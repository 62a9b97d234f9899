# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import advertise
from ansible_collections.infera.baremetal.plugins.module_utils.interfaces import read_interfaces
from ansible_collections.infera.baremetal.plugins.modules import advertise_address_info as module
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils import interface_layouts as layouts


class Ended(Exception):
    """What the module returned."""


class StandIn:
    """AnsibleModule without Ansible: the options go in, what the module ends with comes out."""

    params: dict[str, Any] = {}

    def __init__(self, **_arguments: Any) -> None:
        pass

    def exit_json(self, **result: Any) -> None:
        raise Ended({"failed": False, **result})

    def fail_json(self, **result: Any) -> None:
        raise Ended({"failed": True, **result})


def run(name: str, root: Path, monkeypatch: pytest.MonkeyPatch, **options: Any) -> dict[str, Any]:
    layout = layouts.load(name)
    tree = layouts.lay_out(layout, root)
    StandIn.params = {**layouts.OPTIONS, **layout["options"], "sysfs_root": str(tree), **options}
    monkeypatch.setattr(module, "AnsibleModule", StandIn)
    monkeypatch.setattr(advertise, "read_interfaces", lambda path: read_interfaces(path, layouts.run(layout)))
    with pytest.raises(Ended) as ended:
        module.main()
    return ended.value.args[0]


def test_the_answer_has_the_keys_of_the_contract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("several_addresses", tmp_path / "sys", monkeypatch)

    keys = {"interface", "address", "prefix_length", "reason", "candidates", "findings"}
    assert set(result) == keys | {"changed", "failed"}
    assert (result["failed"], result["changed"], result["address"], result["prefix_length"]) == (
        False,
        False,
        "10.1.0.1",
        24,
    )


def test_a_failure_lists_every_interface_and_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("bridge", tmp_path / "sys", monkeypatch)

    assert result["failed"]
    assert result["msg"].splitlines() == [
        "[error advertise_none] no ipv4 address of this host can be advertised"
        " Fix: Set cluster_interface to br0 if it is meant.",
        "br0 10.1.0.1: virtual, bridge over eno1, taken only when named",
        "eno1: enslaved, a port of br0, which carries its traffic",
        "vnet0: virtual, tun, no NIC below it",
    ]


def test_a_wrong_option_fails_with_its_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("bridge", tmp_path / "sys", monkeypatch, peers=["gpu2"])

    assert result["failed"] and result["candidates"] == []
    assert [finding["code"] for finding in result["findings"]] == ["advertise_input"]


def test_a_host_without_sysfs_fails_with_its_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = run("bridge", tmp_path / "sys", monkeypatch, sysfs_root=str(tmp_path / "none"))

    assert [finding["code"] for finding in result["findings"]] == ["interfaces_unreadable"]
