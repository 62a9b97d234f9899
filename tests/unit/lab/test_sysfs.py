# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fixture tree, read back as a program on a node reads /sys."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.infera_lab import sysfs
from ansible_collections.infera.baremetal.tests.lab.infera_lab.plan import Lab, Node


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Lab(tmp_path, tmp_path).node("lab1")


@pytest.fixture
def tree(tmp_path: Path, node: Node) -> Path:
    root = tmp_path / "sysfs"
    sysfs.write(root, node)
    return root


def read(path: Path) -> str:
    return path.read_text().rstrip("\n")


def test_a_port_is_an_active_400g_roce_port(tree: Path) -> None:
    port = tree / "class/infiniband/ionic_3/ports/1"
    assert read(port / "state") == "4: ACTIVE"
    assert read(port / "phys_state") == "5: LinkUp"
    assert read(port / "link_layer") == "Ethernet"
    assert read(port / "rate") == "400 Gb/sec (4X NDR)"


def test_gids_are_link_local_then_the_rails_address_then_empty(tree: Path) -> None:
    port = tree / "class/infiniband/ionic_3/ports/1"
    assert read(port / "gids/0") == "fe80:0000:0000:0000:0077:00ff:fe03:0301"
    assert read(port / "gids/1") == "fd00:0077:0003:0001:0000:0000:0000:0002"
    assert read(port / "gids/2") == "0000:0000:0000:0000:0000:0000:0000:0000"
    assert read(port / "gid_attrs/types/1") == "RoCE v2"
    assert read(port / "gid_attrs/ndevs/1") == "rail3"
    assert not (port / "gid_attrs/types/2").exists()


def test_device_and_netdev_name_each_other_through_the_pci_device(tree: Path) -> None:
    device = tree / "class/infiniband/ionic_3/device"
    assert [path.name for path in (device / "net").iterdir()] == ["rail3"]
    assert device.resolve() == (tree / "class/net/rail3/device").resolve()
    assert device.resolve().name == "0000:35:00.0"
    assert read(device / "vendor") == "0x1dd8"
    assert read(device / "numa_node") == "0"


@pytest.mark.parametrize(
    ("name", "physical"), [("eth0", True), ("pub0", True), ("rail0", True), ("docker0", False), ("lo", False)]
)
def test_only_cards_have_a_device_and_lie_outside_of_virtual(tree: Path, name: str, physical: bool) -> None:
    interface = tree / "class/net" / name
    assert (interface / "device").exists() == physical
    assert ("virtual" not in interface.resolve().parts) == physical


def test_every_interface_has_the_mac_and_mtu_that_the_lab_gives_it(tree: Path, node: Node) -> None:
    shown = {
        nic.name: (read(tree / "class/net" / nic.name / "address"), int(read(tree / "class/net" / nic.name / "mtu")))
        for nic in node.nics
    }
    assert shown == {nic.name: (nic.mac, nic.mtu) for nic in node.nics}
    assert shown["rail0"] == ("02:77:00:03:00:01", 9000)


def test_the_drivers_abi_is_not_the_cores(tree: Path) -> None:
    verbs = tree / "class/infiniband_verbs"
    assert read(verbs / "abi_version") == "6"
    assert read(verbs / "uverbs3/abi_version") == "1"
    assert read(verbs / "uverbs3/ibdev") == "ionic_3"


def test_kfd_lists_eight_gpus_of_gfx950_and_two_cpus(tree: Path) -> None:
    nodes = [
        dict(line.split() for line in read(file).splitlines())
        for file in (tree / "class/kfd/kfd/topology/nodes").glob("*/properties")
    ]
    gpus = [each for each in nodes if int(each["simd_count"]) > 0]
    assert len(nodes) == 10
    assert [each["gfx_target_version"] for each in gpus] == ["90500"] * 8


def test_the_tree_works_from_wherever_it_is_mounted(tree: Path, tmp_path: Path) -> None:
    moved = tree.rename(tmp_path / "moved")
    assert read(moved / "class/net/rail3/device/vendor") == "0x1dd8"


def test_a_port_goes_down_and_comes_back(tree: Path, node: Node) -> None:
    port = tree / "class/infiniband/ionic_3/ports/1"
    sysfs.set_link(tree, node.rails[3], up=False)
    assert read(port / "state") == "1: DOWN"
    assert read(port / "phys_state") == "3: Disabled"
    assert read(tree / "class/net/rail3/carrier") == "0"
    assert read(tree / "class/infiniband/ionic_2/ports/1/state") == "4: ACTIVE"
    sysfs.write(tree, node)
    assert read(port / "state") == "4: ACTIVE"
    assert read(tree / "class/net/rail3/operstate") == "up"


def test_another_abi_is_reported_by_every_device_of_the_driver(tree: Path, node: Node) -> None:
    sysfs.set_abi(tree, node, 4)
    assert {read(tree / f"class/infiniband_verbs/uverbs{index}/abi_version") for index in range(8)} == {"4"}
    assert read(tree / "class/infiniband_verbs/abi_version") == "6"
