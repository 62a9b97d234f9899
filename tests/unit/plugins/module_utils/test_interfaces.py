# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The layouts of test_advertise are read here too, where a structure is the point."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.interfaces import (
    HeldAddress,
    Interface,
    layers,
    parse_listing,
    read_interfaces,
)
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils import interface_layouts as layouts


def read(name: str, root: Path) -> dict[str, Interface]:
    layout = layouts.load(name)
    return read_interfaces(str(layouts.lay_out(layout, root)), layouts.run(layout))


def test_a_nic_is_what_has_a_device_and_its_bus_tells_a_bmc_apart(tmp_path: Path) -> None:
    interfaces = read("usb_bmc", tmp_path / "sys")

    assert {name: (one.device, one.bus) for name, one in interfaces.items()} == {
        "bmc0": (True, "usb"),
        "ens1": (True, "pci"),
        "ens2": (True, "pci"),
        "enx00": (True, "usb"),
    }


def test_what_is_stacked_is_followed_to_the_nics(tmp_path: Path) -> None:
    interfaces = read("vlan_on_bond", tmp_path / "sys")

    stacked, leaves = layers("bond0.100", interfaces)

    assert [layer.name for layer in stacked] == ["bond0.100", "bond0"]
    assert [leaf.name for leaf in leaves if leaf] == ["eno1", "eno2"]


def test_a_nic_and_an_empty_bond_are_leaves_of_themselves(tmp_path: Path) -> None:
    interfaces = read("bond", tmp_path / "sys")

    assert layers("eno1", interfaces) == ([], [interfaces["eno1"]])
    assert layers("bond1", interfaces) == ([], [interfaces["bond1"]])


def test_a_leaf_of_another_namespace_is_unknown(tmp_path: Path) -> None:
    interfaces = read("other_namespace", tmp_path / "sys")

    assert layers("eth0.5", interfaces) == ([interfaces["eth0.5"]], [None])
    assert (interfaces["eth0"].known, interfaces["eth1"].known) == (False, False)


def test_a_ring_ends(tmp_path: Path) -> None:
    stacked, leaves = layers("bond0", read("ring", tmp_path / "sys"))

    assert ([layer.name for layer in stacked], leaves) == (["bond0", "bond0.5"], [])


def test_a_virtual_function_leads_to_its_physical_one(tmp_path: Path) -> None:
    interfaces = read("sriov", tmp_path / "sys")

    assert [name for name, one in interfaces.items() if one.virtual_function] == ["enp65s0f0v0"]


def test_an_interface_that_leaves_while_it_is_read_has_no_structure(tmp_path: Path) -> None:
    layout = layouts.load("bond")
    root = layouts.lay_out(layout, tmp_path / "sys")
    (root / "class" / "net" / "bond0").unlink()

    interfaces = read_interfaces(str(root), layouts.run(layout))

    assert (interfaces["bond0"].known, interfaces["bond0"].lower) == (False, ())


# As iproute2 6.1 printed it, keys that say nothing here left out.
LISTING = """[{},{"ifindex":7,"link":"eno1","ifname":"eno1.5","altnames":["data0"],"flags":["BROADCAST","UP","LOWER_UP"],
"operstate":"UP","master":"br0","linkinfo":{"info_kind":"vlan","info_data":{"id":5},"info_slave_kind":"bridge"},
"addr_info":[{},{"family":"inet","local":"10.1.0.2","prefixlen":24,"scope":"global","secondary":true,"label":"eno1.5"},
{"family":"inet6","local":"fd00::1","prefixlen":64,"scope":"global","deprecated":true,"tentative":true}]}]"""


def test_the_listing_of_iproute2_is_read() -> None:
    assert parse_listing(LISTING) == [
        Interface(
            name="eno1.5",
            index=7,
            kind="vlan",
            altnames=("data0",),
            master="br0",
            master_kind="bridge",
            addresses=(
                HeldAddress(ipaddress.ip_address("10.1.0.2"), 24, "global", ("secondary",)),
                HeldAddress(ipaddress.ip_address("fd00::1"), 64, "global", ("deprecated", "tentative")),
            ),
        )
    ]


@pytest.mark.parametrize(
    ("flags", "state", "down"),
    [
        (["UP", "LOWER_UP"], "UP", ""),
        (["UP", "LOWER_UP"], "UNKNOWN", ""),
        (["UP", "LOWER_UP"], "DORMANT", "operational state DORMANT"),
        (["UP"], "DOWN", "no carrier"),
        (["LOWER_UP"], "DOWN", "not set up"),
    ],
)
def test_up_is_set_up_and_carrying(flags: list[str], state: str, down: str) -> None:
    text = f'[{{"ifname": "ens1", "flags": {flags}, "operstate": "{state}"}}]'.replace("'", '"')

    assert [interface.down for interface in parse_listing(text)] == [down]


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (127, ""),
        (1, "[]"),
        (0, "ip: unrecognized option: j"),
        (0, "{}}"),
        (0, "7"),
        (0, '["eth0"]'),
        (0, '[{"ifname": "eth0", "addr_info": [{"local": "10.1"}]}]'),
        (0, '[{"ifname": "eth0", "addr_info": [{"local": "10.1.0.1", "prefixlen": null}]}]'),
        (0, '[{"ifname": "eth0", "addr_info": 5}]'),
    ],
)
def test_an_iproute2_that_does_not_answer_is_one_error(status: int, text: str, tmp_path: Path) -> None:
    with pytest.raises(FindingError, match="interfaces_unreadable.*Install iproute2"):
        read_interfaces(str(tmp_path), lambda command: (status, text))


def test_no_sysfs_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(FindingError, match="interfaces_unreadable.*class/net.*Mount sysfs"):
        read_interfaces(str(tmp_path), lambda command: (0, "[]"))
