# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The copy that containers mount: whole, verified, replaced beside a mount of the old one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.staged_library import (
    digest_file,
    remove,
    sha256_of,
    stage,
)


@pytest.fixture(name="source")
def _source(tmp_path: Path) -> Path:
    file = tmp_path / "libionic.so.1.1.54"
    file.write_bytes(b"one")
    return file


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_a_library_is_copied_once_with_its_digest_beside_it(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "staged/libionic.so.1"

    assert stage(str(source), sha256(b"one"), str(path)) is True
    assert stage(str(source), sha256(b"one"), str(path)) is False
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"one", 0o644)
    assert Path(digest_file(str(path))).read_text() == f"{sha256(b'one')}  libionic.so.1\n"
    assert sorted(each.name for each in path.parent.iterdir()) == ["libionic.so.1", "libionic.so.1.sha256"]


def test_a_new_one_replaces_the_file_and_who_has_the_old_one_open_keeps_it(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "libionic.so.1"
    stage(str(source), sha256(b"one"), str(path))
    with path.open("rb") as mounted:
        source.write_bytes(b"two")

        assert stage(str(source), sha256(b"two"), str(path)) is True
        assert mounted.read() == b"one"
    assert path.read_bytes() == b"two"


def test_a_copy_that_somebody_changed_is_made_right(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "libionic.so.1"
    stage(str(source), sha256(b"one"), str(path))

    for spoil in (
        lambda: path.write_bytes(b"x"),
        lambda: path.chmod(0o600),
        lambda: Path(digest_file(str(path))).unlink(),
    ):
        spoil()
        assert stage(str(source), sha256(b"one"), str(path)) is True
    assert path.read_bytes() == b"one"


def test_a_file_that_is_not_the_one_that_was_judged_is_refused(source: Path, tmp_path: Path) -> None:
    with pytest.raises(FindingError, match="has changed since it was judged"):
        stage(str(source), sha256(b"other"), str(tmp_path / "staged"))
    assert not (tmp_path / "staged").exists()


def test_check_mode_writes_and_removes_nothing(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "staged/libionic.so.1"

    assert stage(str(source), sha256(b"one"), str(path), check_mode=True) is True
    assert not path.parent.exists()
    stage(str(source), sha256(b"one"), str(path))
    assert remove(str(path), check_mode=True) is True
    assert path.exists()


def test_removal_is_clean_and_spares_what_is_not_its_own(source: Path, tmp_path: Path) -> None:
    path = tmp_path / "staged/libionic.so.1"
    stage(str(source), sha256(b"one"), str(path))

    assert remove(str(path)) is True
    assert not path.parent.exists()
    assert remove(str(path)) is False
    stage(str(source), sha256(b"one"), str(path))
    (path.parent / "mine").write_text("")
    remove(str(path))
    assert [each.name for each in path.parent.iterdir()] == ["mine"]


def test_what_cannot_be_read_or_written_is_one_finding(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FindingError, match="cannot be written"):
        stage(str(source), sha256(b"one"), str(tmp_path / "file/below"))
    with pytest.raises(FindingError, match="cannot be read"):
        sha256_of(str(tmp_path))
    with pytest.raises(FindingError, match="cannot be read"):
        stage(str(tmp_path / "none"), sha256(b"one"), str(tmp_path / "staged"))
