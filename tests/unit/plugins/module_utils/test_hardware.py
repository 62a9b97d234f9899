# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host's hardware, from small trees; its programs are scripted here, none is started."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.hardware import (
    gfx_name,
    iommu,
    kernel_config,
    memlock,
    peer_memory,
    read_hardware,
    settings,
)

QOS = """NIC  : 42424650-4c32-3438-3130-313435000000 (0000:05:00.0)
  Port : 04908140-84a0-4242-4242-000011010000
    Classification type     : DSCP
    PFC no-drop priorities  : 3
NIC  : 42424650-4c32-3438-3130-313435000001 (0000:15:00.0)
  Port : 04908140-84a0-4242-4242-000011010001
    Classification type     : DSCP
    PFC no-drop priorities  : 3
"""


def put(root: Path, files: dict[str, str]) -> str:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return str(root)


def no_programs(command: list[str]) -> tuple[int, str]:
    return 127, ""


def test_gpus_are_the_nodes_of_kfd_that_have_simd_units(tmp_path: Path) -> None:
    nodes = "class/kfd/kfd/topology/nodes"
    root = put(
        tmp_path,
        {
            f"{nodes}/0/properties": "cpu_cores_count 64\nsimd_count 0\ngfx_target_version 0\n",
            f"{nodes}/10/properties": "simd_count 1024\ngfx_target_version 90402\n",
            f"{nodes}/2/properties": "simd_count 1024\ngfx_target_version 90500\n",
            f"{nodes}/3/properties": "garbage\nsimd_count many\n",
        },
    )

    assert read_hardware(root, no_programs, root)["gpus"] == [
        {"node": 2, "gfx": "gfx950"},
        {"node": 10, "gfx": "gfx942"},
    ]


@pytest.mark.parametrize(("version", "name"), [(90010, "gfx90a"), (90402, "gfx942"), (110001, "gfx1101"), (0, "")])
def test_names_of_gpus_have_hexadecimal_digits(version: int, name: str) -> None:
    assert gfx_name(version) == name


def test_a_host_without_any_of_it_is_read_all_the_same(tmp_path: Path) -> None:
    found = read_hardware(str(tmp_path), no_programs, str(tmp_path))

    assert found == {
        "gpus": None,
        "rdma_devices": [],
        "vendors": [],
        "firmware": [],
        "modules": {"amdgpu": None, "ionic": None, "ionic_rdma": None, "ib_peer_mem": None},
        "driver_files": [],
        "kernel_config": {"CONFIG_PCI_P2PDMA": None, "CONFIG_DMABUF_MOVE_NOTIFY": None},
        "iommu": {"groups": 0, "types": [], "cmdline": []},
        "memlock": None,
        "nicctl": {},
    }


def test_devices_and_drivers_are_read_from_sysfs(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        {
            "class/infiniband/ionic_0/device/vendor": "0x1dd8\n",
            "class/infiniband/ionic_0/fw_ver": "1.117.5\n",
            "module/ionic/version": "25.12\n",
            "module/amdgpu/srcversion": "x\n",
        },
    )

    found = read_hardware(root, no_programs, root)

    assert (found["rdma_devices"], found["vendors"], found["firmware"]) == (["ionic_0"], ["0x1dd8"], ["1.117.5"])
    assert (found["modules"]["ionic"], found["modules"]["amdgpu"]) == ("25.12", "in-tree")
    assert found["nicctl"] == {"qos": None, "dcqcn": None}


def test_the_kernels_configuration_is_read_from_boot_or_from_proc(tmp_path: Path) -> None:
    text = "CONFIG_PCI_P2PDMA=y\n# CONFIG_DMABUF_MOVE_NOTIFY is not set\n"
    expected = {"CONFIG_PCI_P2PDMA": True, "CONFIG_DMABUF_MOVE_NOTIFY": False}
    boot = put(tmp_path / "boot-file", {"proc/sys/kernel/osrelease": "6.8\n", "boot/config-6.8": text})
    packed = put(tmp_path / "proc-file", {"proc/sys/kernel/osrelease": "6.8\n"})
    (tmp_path / "proc-file/proc/config.gz").write_bytes(gzip.compress(text.encode()))

    assert kernel_config(boot) == kernel_config(packed) == expected


def test_a_damaged_configuration_is_an_unknown_one(tmp_path: Path) -> None:
    root = put(tmp_path, {"proc/config.gz": "no gzip"})

    assert set(kernel_config(root).values()) == {None}


def test_the_iommu_is_what_was_asked_for_and_what_its_groups_are(tmp_path: Path) -> None:
    root = put(
        tmp_path,
        {
            "proc/cmdline": "root=/dev/sda iommu=pt amd_iommu=on quiet\n",
            "kernel/iommu_groups/0/type": "identity\n",
            "kernel/iommu_groups/1/type": "DMA-FQ\n",
        },
    )

    assert iommu(root, root) == {"groups": 2, "types": ["DMA-FQ", "identity"], "cmdline": ["iommu=pt", "amd_iommu=on"]}


def test_the_limit_is_the_units_and_before_there_is_one_systemds_default() -> None:
    def standing(command: list[str]) -> tuple[int, str]:
        if "k3s" in command:
            return 0, "LimitMEMLOCK=8388608\nLoadState=not-found\n\nLimitMEMLOCK=infinity\nLoadState=loaded\n"
        return 0, "DefaultLimitMEMLOCK=65536\n"

    def fresh(command: list[str]) -> tuple[int, str]:
        return (0, "LimitMEMLOCK=1\nLoadState=not-found\n") if "k3s" in command else (0, "DefaultLimitMEMLOCK=65536\n")

    assert (memlock(standing), memlock(fresh), memlock(no_programs)) == ("infinity", "65536", None)


def test_a_tools_listing_is_compared_without_what_is_each_cards_own() -> None:
    other = QOS.replace("42424650-4c32", "52424650-4c32").replace("0000:05:00.0", "0000:85:00.0")

    assert settings(lambda command: (0, QOS), ["nicctl"]) == settings(lambda command: (0, other), ["nicctl"])
    changed = QOS.replace("priorities  : 3", "priorities  : 4", 1)
    assert settings(lambda command: (0, changed), ["nicctl"]) != settings(lambda command: (0, QOS), ["nicctl"])
    assert settings(no_programs, ["nicctl"]) is None


@pytest.mark.parametrize(
    ("module", "config", "expected"),
    [("1.0", (None, None), True), (None, (True, True), True), (None, (True, False), False), (None, (None, True), None)],
)
def test_gpu_memory_is_reached_by_the_module_or_by_the_kernel(module: Any, config: Any, expected: Any) -> None:
    hardware = {
        "modules": {"ib_peer_mem": module},
        "kernel_config": dict(zip(("CONFIG_PCI_P2PDMA", "CONFIG_DMABUF_MOVE_NOTIFY"), config)),
    }

    assert peer_memory(hardware) is expected
