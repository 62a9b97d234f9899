# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import os

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.managed_files import (
    ManagedFile,
    apply,
    newer_than,
    plan,
)


def write_all(files):
    changes = plan(files)
    for file, _change in changes:
        apply(file)
    return [file.path for file, _change in changes]


def test_writes_once_and_finds_nothing_to_do_the_second_time(tmp_path):
    path = str(tmp_path / "etc" / "k3s" / "config.yaml")
    files = [ManagedFile(path, "a: 1\n", 0o600)]

    assert write_all(files) == [path]
    assert write_all(files) == []
    assert (tmp_path / "etc" / "k3s" / "config.yaml").read_text() == "a: 1\n"
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_wrong_mode_alone_is_a_change(tmp_path):
    path = tmp_path / "token"
    path.write_text("t")
    path.chmod(0o644)

    assert write_all([ManagedFile(str(path), "t", 0o600, secret=True)]) == [str(path)]
    assert path.stat().st_mode & 0o777 == 0o600


def test_removes_what_should_not_exist_and_leaves_the_absent_alone(tmp_path):
    path = tmp_path / "registries.yaml"
    path.write_text("old")

    assert write_all([ManagedFile(str(path), None)]) == [str(path)]
    assert not path.exists()
    assert write_all([ManagedFile(str(path), None), ManagedFile(str(tmp_path / "no" / "folder"), None)]) == []


def test_diff_of_a_secret_shows_neither_the_old_nor_the_new(tmp_path):
    path = tmp_path / "token"
    path.write_text("old-secret")

    ((_file, change),) = plan([ManagedFile(str(path), "new-secret", 0o600, secret=True)])

    assert "old-secret" not in str(change.to_diff())
    assert "new-secret" not in str(change.to_diff())


def test_leaves_no_temporary_file_beside(tmp_path):
    write_all([ManagedFile(str(tmp_path / "unit"), "x")])

    assert os.listdir(tmp_path) == ["unit"]


@pytest.mark.parametrize("make", [os.mkdir, lambda path: os.symlink("/etc/passwd", path)], ids=["folder", "symlink"])
def test_what_is_no_regular_file_is_refused(tmp_path, make):
    path = str(tmp_path / "config.yaml")
    make(path)

    with pytest.raises(FindingError) as caught:
        plan([ManagedFile(path, "x")])
    assert [finding.code for finding in caught.value.findings] == ["file_not_regular"]


def test_newer_than_the_start_means_unseen(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("")
    new.write_text("")
    os.utime(old, (1000, 1000))
    os.utime(new, (2000, 2000.5))

    assert newer_than([str(old), str(new), str(tmp_path / "absent")], 1500) == [str(new)]
    # Written and started within one second: the start came last.
    assert newer_than([str(new)], 2000) == []
    assert newer_than([str(new)], None) == []
