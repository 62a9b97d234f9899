# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The staging folder: made, cleaned, refused where it would do harm."""

from __future__ import annotations

import os
import stat
import threading
import time

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.staging import alone, discard, file_name, prepare

DIGEST = "sha256:" + "a" * 64


def test_a_staged_file_does_not_look_like_an_archive():
    assert file_name(DIGEST, 42) == "a" * 64 + "-42.staged"


def test_the_folder_is_made_for_the_owner_alone(tmp_path):
    path = tmp_path / "agent" / ".infera-staging"

    place = prepare(str(path))

    assert stat.S_IMODE(os.stat(path).st_mode) == 0o700
    assert place.files == {}
    assert place.free_bytes > 0


def test_leftovers_go_unless_they_are_of_use(tmp_path):
    (tmp_path / "a.staged").write_bytes(b"1234")
    (tmp_path / "b.staged").write_bytes(b"12")
    (tmp_path / "c.staged").symlink_to("/etc/passwd")
    (tmp_path / "notes.txt").write_bytes(b"not ours")

    place = prepare(str(tmp_path), keep=["a.staged"])

    assert place.files == {"a.staged": 4}
    assert sorted(os.listdir(tmp_path)) == ["a.staged", "notes.txt"]
    assert os.path.exists("/etc/passwd")


def test_the_folder_goes_when_it_is_empty(tmp_path):
    path = tmp_path / "staging"
    prepare(str(path))
    (path / "a.staged").write_bytes(b"1234")
    (path / "b.staged").write_bytes(b"1234")

    discard(str(path), keep=["b.staged"])
    assert os.listdir(path) == ["b.staged"]

    discard(str(path))
    assert not path.exists()


def test_a_folder_with_other_files_stays_and_none_is_no_error(tmp_path):
    (tmp_path / "notes.txt").write_bytes(b"not ours")

    discard(str(tmp_path))
    discard(str(tmp_path / "none"))

    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("relative", "absolute"),
        ("/mnt/data/k3s/agent/images", "imports everything"),
        ("/mnt/data/k3s/agent/images/x/../staging", "imports everything"),
        ("/dev/null", "not a folder"),
        ("/dev/null/x", "Not a directory"),
    ],
)
def test_folders_that_would_do_harm_are_refused(path, says):
    with pytest.raises(FindingError) as refused:
        prepare(path, where="node1")

    (finding,) = refused.value.findings
    assert finding.code == "image_staging_unusable"
    assert says in finding.message
    assert "images_staging_dir" in finding.fix


def test_a_link_is_not_followed(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)

    with pytest.raises(FindingError, match="not a folder"):
        prepare(str(tmp_path / "link"))


def test_a_folder_that_the_sender_cannot_reach_is_told(tmp_path):
    """k3s may keep its data-dir for root alone."""
    closed = tmp_path / "k3s"
    closed.mkdir(mode=0o700)

    with pytest.raises(FindingError) as refused:
        prepare(str(closed / "staging"), owner="nobody")

    assert "'nobody' may not enter" in refused.value.findings[0].message


def test_an_unknown_owner_is_told(tmp_path):
    with pytest.raises(FindingError, match="nobody-at-all"):
        prepare(str(tmp_path / "s"), owner="nobody-at-all")


def test_one_import_at_a_time(tmp_path):
    lock = str(tmp_path / "lock")

    with alone(lock), pytest.raises(FindingError) as refused, alone(lock, "node1", seconds=0.01):
        pass

    (finding,) = refused.value.findings
    assert finding.code == "image_import_running"
    assert str(os.getpid()) in finding.message
    with alone(lock, seconds=0):
        pass  # it is free again


def test_the_next_import_waits_for_the_one_before(tmp_path):
    lock = str(tmp_path / "lock")
    order = []

    def second():
        with alone(lock):
            order.append("second")

    thread = threading.Thread(target=second)
    with alone(lock):
        thread.start()
        time.sleep(0.05)
        order.append("first")
    thread.join()

    assert order == ["first", "second"]


def test_without_a_place_for_the_lock_the_work_goes_on(tmp_path):
    with alone(str(tmp_path / "none" / "lock")):
        pass
