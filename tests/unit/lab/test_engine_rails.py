# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which RDMA devices the lab's engine counts, and the address it takes from their GIDs."""

from __future__ import annotations

import pathlib
import shutil

from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.rails import read_rails
from ansible_collections.infera.baremetal.tests.unit.lab.engine_site import add_device, write

LINK_LOCAL = "fe80:0000:0000:0000:0690:81ff:fe00:0001"
ULA = "fd00:0077:0000:0001:0000:0000:0000:0002"
MAPPED = "0000:0000:0000:0000:0000:ffff:7f00:0001"
ZERO = "0000:0000:0000:0000:0000:0000:0000:0000"


def found(root: pathlib.Path) -> list[tuple[int, str, int | None, str | None]]:
    """index, device, GID index and address of each rail."""
    return [(rail.index, rail.device, rail.gid_index, rail.address) for rail in read_rails(root / "sys", root / "dev")]


def test_the_first_gid_that_is_neither_link_local_nor_zero(tmp_path: pathlib.Path) -> None:
    add_device(tmp_path, 0, [LINK_LOCAL, ULA, MAPPED, ZERO])
    add_device(tmp_path, 1, [ZERO, LINK_LOCAL, MAPPED, ULA])

    assert found(tmp_path) == [(0, "ionic_0", 1, "fd00:77:0:1::2"), (1, "ionic_1", 2, "127.0.0.1")]


def test_roce_v1_and_other_netdevs_do_not_count(tmp_path: pathlib.Path) -> None:
    add_device(tmp_path, 0, [ULA], gid_type="IB/RoCE v1")
    add_device(tmp_path, 1, [LINK_LOCAL, ULA])
    write(tmp_path / "sys/class/infiniband/ionic_1/ports/1/gid_attrs/ndevs/1", "bond0")

    assert found(tmp_path) == [(0, "ionic_0", None, None), (1, "ionic_1", None, None)]


def test_an_empty_slot_whose_attributes_cannot_be_read(tmp_path: pathlib.Path) -> None:
    add_device(tmp_path, 0, [ZERO, ULA])
    (tmp_path / "sys/class/infiniband/ionic_0/ports/1/gid_attrs/types/0").unlink()
    (tmp_path / "sys/class/infiniband/ionic_0/ports/1/gid_attrs/ndevs/0").unlink()

    assert found(tmp_path) == [(0, "ionic_0", 1, "fd00:77:0:1::2")]


def test_devices_count_in_natural_order_and_keep_their_index(tmp_path: pathlib.Path) -> None:
    for number, name in enumerate(["rocep9s0", "rocep105s0", "rocep10s0"]):
        add_device(tmp_path, number, [ULA], name=name)
    (tmp_path / "dev/infiniband/uverbs2").unlink()

    assert [(rail.index, rail.device) for rail in read_rails(tmp_path / "sys", tmp_path / "dev")] == [
        (0, "rocep9s0"),
        (2, "rocep105s0"),
    ]


def test_without_dev_infiniband_there_are_none(tmp_path: pathlib.Path) -> None:
    add_device(tmp_path, 0, [ULA])
    shutil.rmtree(tmp_path / "dev")

    assert found(tmp_path) == []


def test_outside_the_namespace_of_their_netdev_there_are_none(tmp_path: pathlib.Path) -> None:
    add_device(tmp_path, 0, [ULA], netdev="lab-no-such-dev")

    assert found(tmp_path) == []


def test_a_machine_without_infiniband(tmp_path: pathlib.Path) -> None:
    assert found(tmp_path) == []


def test_the_port_state_is_told(tmp_path: pathlib.Path) -> None:
    add_device(tmp_path, 0, [ULA], state="1: DOWN")

    assert [rail.state for rail in read_rails(tmp_path / "sys", tmp_path / "dev")] == ["DOWN"]
