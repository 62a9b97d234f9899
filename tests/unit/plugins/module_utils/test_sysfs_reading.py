# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import sysfs

MISSING = "not-there"


@pytest.mark.parametrize(
    "ordered",
    [
        ["enp9s0", "enp9s0f0", "enp9s0f1", "enp105s0"],
        ["ionic_0", "ionic_2", "ionic_10"],
        ["eth0", "eth0.5", "eth0.100", "eth1"],
        ["0", "1", "10", "a"],
        # A digit of another script is a letter here.
        ["eth1", "eth2", "eth٣"],
    ],
)
def test_numbers_in_names_count_as_numbers(ordered: list[str]) -> None:
    shuffled = random.Random(3).sample(ordered, len(ordered))

    assert sorted(shuffled, key=sysfs.natural_key) == ordered


def test_text_comes_without_white_space_around_it(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("4: ACTIVE\n")

    assert sysfs.read_text(str(tmp_path), "state") == "4: ACTIVE"


def test_bytes_that_are_not_utf8_and_endless_files_are_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "fw_ver").write_bytes(b"1.\xff")
    (tmp_path / "long").write_bytes(b"x" * 70_000)

    assert sysfs.read_text(str(tmp_path), "fw_ver") == "1.�"
    assert len(sysfs.read_text(str(tmp_path), "long") or "") == 65_536


@pytest.mark.parametrize(
    ("text", "number"),
    [("2\n", 2), ("0x1dd8\n", 0x1DD8), ("-1\n", -1), ("", None), ("4: ACTIVE\n", None), ("0x\n", None)],
)
def test_numbers(tmp_path: Path, text: str, number: int | None) -> None:
    (tmp_path / "value").write_text(text)

    assert sysfs.read_int(str(tmp_path), "value") == number


@pytest.mark.parametrize("name", [MISSING, "folder", "dangling", "nul\0byte"])
def test_what_cannot_be_read_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to(MISSING)

    assert sysfs.read_text(str(tmp_path), name) is None
    assert sysfs.read_int(str(tmp_path), name) is None


def test_a_folder_that_is_gone_is_empty_and_one_that_stands_is_sorted(tmp_path: Path) -> None:
    for name in ("10", "9", "1"):
        (tmp_path / name).touch()

    assert sysfs.names(str(tmp_path)) == ["1", "9", "10"]
    assert sysfs.names(str(tmp_path), MISSING) == []
    assert sysfs.names(str(tmp_path), "1") == []
    assert sysfs.names(str(tmp_path), "nul\0byte") == []


def test_a_link_is_followed_to_where_it_really_is(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "devices").mkdir()
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("devices")
    (root / "dangling").symlink_to(MISSING)

    assert sysfs.link_path(str(root), "one") == str(root / "devices")
    assert sysfs.link_path(str(root), "dangling") is None
    assert sysfs.link_path(str(root), MISSING) is None
