# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stand-in as one file: the same bytes each time, and it says what it is."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from ansible_collections.infera.baremetal.tests.lab.k3s import pack
from ansible_collections.infera.baremetal.tests.lab.k3s.standin import certificates


@pytest.fixture(name="k3s")
def fixture_k3s(tmp_path):
    path = tmp_path / "k3s"
    assert pack.main([str(path)]) == 0
    return path


def run(*command):
    return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)


def test_the_bytes_depend_on_the_sources_alone(k3s, tmp_path):
    copy = shutil.copytree(pack.SOURCES, tmp_path / "elsewhere" / "standin")
    for source in copy.iterdir():
        source.touch()

    assert pack.packed(copy) == k3s.read_bytes()


def test_it_is_executable_and_says_that_it_is_a_stand_in(k3s):
    assert k3s.stat().st_mode & 0o777 == 0o755
    assert k3s.read_bytes().startswith(b"#!/usr/bin/python3\n")
    assert run(k3s, "--version").stdout.startswith("k3s version v1.20.2 (stand-in for tests)\n")


def test_an_unknown_flag_ends_it(k3s):
    done = run(k3s, "agent", "--bogus")

    assert done.returncode == 1
    assert "flag provided but not defined: -bogus" in done.stderr


def test_an_unknown_command_ends_it(k3s):
    assert run(k3s, "serve").returncode == 1


def test_names_of_a_certificate():
    names = ["localhost", "10.0.0.1", "localhost", "fd00::1"]

    assert certificates.subject_alt_names(names) == "DNS:localhost,IP:10.0.0.1,IP:fd00::1"
