# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host's devices, their driver's ABI, and where its libraries are."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.verbs_abi import driver_files, kernel, library, suffixes


def put(root: Path, files: dict[str, str]) -> str:
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("-> "):
            file.symlink_to(content[3:])
        else:
            file.write_text(content)
    return str(root)


def device(number: int, abi: str, vendor: str = "0x1dd8\n", name: str = "ionic_") -> dict[str, str]:
    folder = f"class/infiniband_verbs/uverbs{number}"
    return {f"{folder}/ibdev": f"{name}{number}\n", f"{folder}/abi_version": abi, f"{folder}/device/vendor": vendor}


def test_the_drivers_abi_is_each_devices_and_not_the_cores(tmp_path: Path) -> None:
    files = {"class/infiniband_verbs/abi_version": "6\n", **device(10, "1\n"), **device(2, "1\n")}

    found = kernel(put(tmp_path, files), "ionic")

    assert found["abi"] == 1
    assert [(each["name"], each["uverbs"], each["abi"]) for each in found["devices"]] == [
        ("ionic_2", "uverbs2", 1),
        ("ionic_10", "uverbs10", 1),
    ]


def test_devices_of_other_vendors_are_not_the_drivers(tmp_path: Path) -> None:
    assert kernel(put(tmp_path, device(0, "1\n", vendor="0x15b3\n", name="mlx5_")), "ionic") == {
        "abi": None,
        "devices": [],
    }


def test_devices_that_differ_have_no_common_abi_and_an_unreadable_one_is_null(tmp_path: Path) -> None:
    found = kernel(put(tmp_path, {**device(0, "1\n"), **device(1, "4\n"), **device(2, "?\n")}), "ionic")

    assert found["abi"] is None
    assert [each["abi"] for each in found["devices"]] == [1, 4, None]


def test_a_device_without_a_vendor_is_told_by_its_kernel_driver_or_its_name(tmp_path: Path) -> None:
    files = {
        "class/infiniband_verbs/uverbs0/ibdev": "rdma0\n",
        "class/infiniband_verbs/uverbs0/abi_version": "1\n",
        "class/infiniband_verbs/uverbs0/device/driver": "-> ../../../../bus/irdma_gen",
        "bus/irdma_gen/bind": "",
        "class/infiniband_verbs/uverbs1/ibdev": "h1rxe0\n",
        "class/infiniband_verbs/uverbs1/abi_version": "2\n",
    }
    root = put(tmp_path, files)

    assert [each["name"] for each in kernel(root, "irdma")["devices"]] == ["rdma0"]
    assert [each["name"] for each in kernel(root, "rxe")["devices"]] == ["h1rxe0"]


def test_a_host_without_rdma_has_none(tmp_path: Path) -> None:
    assert kernel(str(tmp_path), "ionic") == {"abi": None, "devices": []}


@pytest.mark.parametrize("folder", ["usr/lib/x86_64-linux-gnu", "usr/lib64"], ids=["Debian", "EL and SUSE"])
def test_a_provider_is_found_and_its_links_followed(tmp_path: Path, folder: str) -> None:
    root = put(tmp_path, {f"{folder}/libionic.so.1": "-> libionic.so.1.1.54", f"{folder}/libionic.so.1.1.54": "elf"})

    found = library("", root, "ionic")

    assert found == {
        "path": f"/{folder}/libionic.so.1",
        "real_path": f"/{folder}/libionic.so.1.1.54",
        "sha256": hashlib.sha256(b"elf").hexdigest(),
        "content": base64.b64encode(b"elf").decode(),
    }


def test_a_provider_without_a_soname_is_found_by_the_link_that_libibverbs_follows(tmp_path: Path) -> None:
    root = put(
        tmp_path, {"usr/lib64/libibverbs/librxe-rdmav34.so": "elf", "usr/lib64/libibverbs/librxe-rdmav65.so": "elf"}
    )

    found = library("", root, "rxe")

    assert found is not None and found["path"] == "/usr/lib64/libibverbs/librxe-rdmav34.so"
    assert suffixes(root, "rxe") == ["34", "65"]


def test_a_library_that_is_not_there_dangles_or_is_no_file(tmp_path: Path) -> None:
    root = put(tmp_path, {"opt/x": "-> nowhere", "opt/y/z": ""})

    assert library("", root, "ionic") is None
    assert library("/opt/x", root, "ionic") == {
        "path": "/opt/x",
        "real_path": "/opt/nowhere",
        "error": "No such file or directory",
    }
    assert library("/opt/y", root, "ionic")["error"] == "Is a directory"


def test_driver_files_are_those_that_name_the_driver(tmp_path: Path) -> None:
    files = {
        "etc/libibverbs.d/ionic.driver": "driver ionic\n",
        "etc/libibverbs.d/mlx5.driver": "driver mlx5\n",
        "etc/libibverbs.d/old.driver.bak": "driver ionic\n",
        "usr/etc/libibverbs.d/also.driver": "# comment\ndriver  ionic \n",
    }

    assert driver_files(put(tmp_path, files), "ionic") == [
        "/etc/libibverbs.d/ionic.driver",
        "/usr/etc/libibverbs.d/also.driver",
    ]
