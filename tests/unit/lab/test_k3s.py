# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which k3s a lab gets."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.infera_lab import k3s
from ansible_collections.infera.baremetal.tests.lab.infera_lab.shell import LabError

VERSION = "v1.31.4+k3s1"
BINARY = b"#!/bin/sh\necho 'k3s version v1.31.4+k3s1 (a562d090)'\n"


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """A release as GitHub serves it."""
    folder = tmp_path / "releases" / VERSION
    folder.mkdir(parents=True)
    contents = {"k3s": BINARY, "k3s-airgap-images-amd64.tar.zst": b"images"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in contents.items())
    (folder / "sha256sum-amd64.txt").write_text(sums)
    return folder.parent


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        ("k3s version v1.31.4+k3s1 (a562d090)\ngo version go1.22.9\n", "v1.31.4+k3s1"),
        ("k3s version v1.20.2 (stand-in for tests)\n", "v1.20.2"),
        ("k3s version v1.32.0-rc1+k3s1 (00000000)\n", "v1.32.0-rc1+k3s1"),
    ],
)
def test_version_is_read_from_what_the_binary_prints(printed: str, version: str) -> None:
    assert k3s.version_of(printed) == version


@pytest.mark.parametrize("printed", ["", "ls (GNU coreutils) 9.1", "containerd v1.6.20"])
def test_another_program_is_not_taken_for_k3s(printed: str) -> None:
    with pytest.raises(LabError, match="LAB_K3S"):
        k3s.version_of(printed)


def test_a_given_binary_and_archive_are_used_and_keep_their_format(tmp_path: Path) -> None:
    binary, archive = tmp_path / "given-k3s", tmp_path / "some-airgap.tar.zst"
    binary.write_bytes(BINARY)
    archive.write_bytes(b"images")
    directory = tmp_path / "out"
    directory.mkdir()
    (directory / "k3s-airgap-images-amd64.tar").write_bytes(b"of an earlier choice")
    chosen = k3s.up(directory, tmp_path, tmp_path, {"LAB_K3S": str(binary), "LAB_K3S_AIRGAP": str(archive)})
    assert chosen.version == VERSION
    assert not chosen.stand_in
    assert sorted(path.name for path in directory.iterdir()) == ["k3s", "k3s-airgap-images-amd64.tar.zst"]


def test_a_binary_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="/nowhere/k3s"):
        k3s.up(tmp_path / "out", tmp_path, tmp_path, {"LAB_K3S": "/nowhere/k3s"})


def test_a_release_is_downloaded_once(tmp_path: Path, releases: Path) -> None:
    binary, archive = k3s.download(VERSION, tmp_path / "cache", releases.as_uri())
    assert (binary.read_bytes(), archive.read_bytes()) == (BINARY, b"images")
    assert k3s.download(VERSION, tmp_path / "cache", "file:///nowhere") == (binary, archive)


def test_a_download_that_does_not_match_its_sum_leaves_nothing(tmp_path: Path, releases: Path) -> None:
    (releases / VERSION / "k3s").write_bytes(b"something else")
    with pytest.raises(LabError, match="SHA-256"):
        k3s.download(VERSION, tmp_path / "cache", releases.as_uri())
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_release_that_cannot_be_reached_is_explained(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="stand-in"):
        k3s.download(VERSION, tmp_path / "cache", (tmp_path / "nowhere").as_uri())
