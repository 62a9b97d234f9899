# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module's own part: changed, diff, and one message. What it does to files is tested with module_utils."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.infera.baremetal.plugins.modules import libionic_stage

SHA256 = hashlib.sha256(b"library").hexdigest()


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> str:
    (tmp_path / "libionic.so.1").write_bytes(b"library")
    return str(tmp_path / "libionic.so.1")


def run(capsys: pytest.CaptureFixture[str], **options: Any) -> tuple[Any, dict[str, Any]]:
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        libionic_stage.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_staged_once_with_the_digests_as_diff_and_then_unchanged(source: str, tmp_path: Path, capsys: Any) -> None:
    options = {"src": source, "sha256": SHA256, "dest": str(tmp_path / "staged")}

    code, first = run(capsys, **options)
    second = run(capsys, **options)[1]

    assert (code, first["changed"], second["changed"]) == (0, True, False)
    assert (first["diff"]["before"], first["diff"]["after"]) == ("", f"sha256 {SHA256}\n")
    assert first["sha256"] == SHA256


def test_removal_needs_no_source_and_check_mode_removes_nothing(source: str, tmp_path: Path, capsys: Any) -> None:
    staged = tmp_path / "staged"
    run(capsys, src=source, sha256=SHA256, dest=str(staged))

    predicted = run(capsys, state="absent", dest=str(staged), _ansible_check_mode=True)[1]
    assert (predicted["changed"], staged.exists()) == (True, True)
    removed = run(capsys, state="absent", dest=str(staged))[1]
    assert (removed["changed"], removed["sha256"], staged.exists()) == (True, "", False)


def test_a_file_that_is_not_the_judged_one_is_one_message(source: str, tmp_path: Path, capsys: Any) -> None:
    code, result = run(capsys, src=source, sha256="0" * 64, dest=str(tmp_path / "staged"))

    assert code == 1
    assert result["msg"].startswith("[error library_not_staged]") and "has changed since it was judged" in result["msg"]
    assert "required by" not in result["msg"] and "\n" not in result["msg"]


def test_without_a_digest_nothing_is_staged(source: str, tmp_path: Path, capsys: Any) -> None:
    code, result = run(capsys, src=source, dest=str(tmp_path / "staged"))

    assert code == 1 and "sha256" in result["msg"]
