# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cached builds: whole or not there, built once, and safe when their lab is killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.infera_lab import build
from ansible_collections.infera.baremetal.tests.lab.infera_lab.shell import LabError


def shell_build(cache: Path, script: str, name: str = "thing") -> build.Build:
    return build.Build("a thing", name, "key", "1 s", cache, ("sh", "-c", script, "sh", "{out}"))


def silent(_text: str) -> None:
    return None


def test_result_is_put_in_place_and_not_built_again(tmp_path: Path) -> None:
    thing = shell_build(tmp_path, f'mkdir "$1" && echo built >> {tmp_path}/log && touch "$1/file"')
    build.ensure([thing], silent)
    build.ensure([thing], silent)
    assert (thing.directory / "file").exists()
    assert (tmp_path / "log").read_text() == "built\n"
    assert not thing.directory.with_suffix(".partial").exists()


def test_failed_build_leaves_no_result_and_the_next_starts_from_nothing(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="a thing"):
        build.ensure([shell_build(tmp_path, 'mkdir "$1" && touch "$1/half" && exit 3')], silent)
    thing = shell_build(tmp_path, 'mkdir "$1" && touch "$1/whole"')
    assert not thing.built
    build.ensure([thing], silent)
    assert [path.name for path in thing.directory.iterdir()] == ["whole"]


def test_builds_run_side_by_side(tmp_path: Path) -> None:
    # Each waits for a file of the other's: one after the other they would never end.
    meet = 'mkdir "$1"; touch {own}; for _ in $(seq 100); do [ -e {other} ] && exit 0; sleep 0.1; done; exit 1'
    first = shell_build(tmp_path, meet.format(own=tmp_path / "one", other=tmp_path / "two"), "first")
    second = shell_build(tmp_path, meet.format(own=tmp_path / "two", other=tmp_path / "one"), "second")
    build.ensure([first, second], silent)
    assert first.built
    assert second.built


def test_a_build_whose_lab_is_killed_ends_well_and_the_next_lab_waits_for_it(tmp_path: Path) -> None:
    thing = shell_build(tmp_path, f'mkdir "$1" && touch {tmp_path}/begun && sleep 1 && echo built >> {tmp_path}/log')
    words = [thing.title, thing.name, thing.key, thing.about]
    program = (
        "import pathlib, sys\n"
        f"sys.path.insert(0, {str(build.LAB)!r})\n"
        "from infera_lab import build\n"
        f"build.ensure([build.Build(*{words!r}, pathlib.Path({str(tmp_path)!r}), {thing.command!r})], print)\n"
    )
    lab = subprocess.Popen([sys.executable, "-c", program])
    deadline = time.monotonic() + 20
    while not (tmp_path / "begun").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    lab.send_signal(signal.SIGKILL)
    lab.wait()
    said: list[str] = []
    build.ensure([thing], said.append)
    assert said == ["another run is building a thing: waiting for it"]
    assert (tmp_path / "log").read_text() == "built\n"


def test_key_follows_content_mode_and_words() -> None:
    script = build.LAB / "enter"
    assert build.key_of([script]) == build.key_of([script])
    assert build.key_of([script]) != build.key_of([script], "word")
    assert build.key_of([script]) != build.key_of([build.LAB / "lab"])
