# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An image is read once, however many hosts and runs ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("elftools")

from ansible import constants as C
from ansible_collections.infera.baremetal.plugins.action.image_libraries_info import ActionModule, once
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_image_layers import layer
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_oci_archive import Layout, pinned
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.tiny_elf import Tiny, libibverbs

FOLDER = "usr/lib/x86_64-linux-gnu"


@pytest.fixture(name="archive")
def fixture_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.setattr(C, "DEFAULT_LOCAL_TMP", str(tmp_path / "run"))
    layout = Layout()
    files = {f"{FOLDER}/libibverbs.so.1": libibverbs(), f"{FOLDER}/libionic.so.1": Tiny(abis=(4, 4)).build()}
    layout.top = [layout.image(layer(*files.items()))]
    return {"name": str(pinned(layout.top[0])), "archive": layout.write(tmp_path / "engine.tar")}


def test_an_archive_is_read_here_and_what_its_files_say_is_returned(archive: dict[str, str]) -> None:
    image = run(ActionModule, **archive)["image"]

    assert (image["libibverbs"]["suffix"], image["providers"][0]["max_abi"]) == ("34", 4)
    assert "content" not in str(image)


def test_the_second_run_needs_no_archive(archive: dict[str, str], tmp_path: Path) -> None:
    cache = str(tmp_path / "cluster")
    first = run(ActionModule, **archive, cache=cache)
    Path(archive["archive"]).unlink()

    assert run(ActionModule, **archive, cache=cache)["image"] == first["image"]
    assert run(ActionModule, check_mode=True, **archive, cache=cache)["image"] == first["image"]
    assert run(ActionModule, **archive, cache=cache, driver="mlx5")["findings"][0]["code"] == "image_archive_missing"


def test_check_mode_leaves_nothing_in_the_cache(archive: dict[str, str], tmp_path: Path) -> None:
    run(ActionModule, check_mode=True, **archive, cache=str(tmp_path / "cluster"))

    assert not (tmp_path / "cluster").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"name": "lab/engine:v1"}, "image_not_pinned"),
        ({"cache": "/proc/none"}, "name a folder that can be written as cache"),
    ],
)
def test_what_is_wrong_is_one_message(arguments: dict[str, Any], said: str, archive: dict[str, str]) -> None:
    result = run(ActionModule, **{**archive, **arguments})

    assert result["failed"] and said in result["msg"]


def test_a_kept_answer_that_was_cut_short_is_asked_for_again_and_nothing_is_kept_of_a_failure(tmp_path: Path) -> None:
    folders = [str(tmp_path)]
    assert once(folders, "key", lambda: {"failed": True}) == {"failed": True}
    assert once(folders, "key", lambda: {"image": None}) == {"image": None}
    (kept,) = tmp_path.iterdir()
    kept.write_text('{"image": {"dig', encoding="utf-8")

    assert once(folders, "key", lambda: {"image": {"digest": "x"}, "invocation": 1}) == {"image": {"digest": "x"}}
    assert once(folders, "key", dict) == {"image": {"digest": "x"}}
