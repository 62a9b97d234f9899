# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The wrapper refuses to run anything where lab addresses would leave by the machine's own network."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.infera_lab import build, ssh
from ansible_collections.infera.baremetal.tests.lab.infera_lab.plan import Lab


@pytest.fixture
def enter(tmp_path: Path) -> Path:
    """The wrapper in a checkout that has no lab."""
    folder = tmp_path / "tests/lab"
    folder.mkdir(parents=True)
    return Path(shutil.copy(build.LAB / "enter", folder))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gets as far as the question whether the lab is up")
@pytest.mark.parametrize("marked_up", [False, True])
def test_nothing_runs_while_the_lab_is_down(enter: Path, tmp_path: Path, marked_up: bool) -> None:
    if marked_up:  # the machine was restarted: the mark is there, the namespaces are gone
        (tmp_path / ".lab").mkdir()
        (tmp_path / ".lab/up").touch()
    done = subprocess.run([enter, "touch", tmp_path / "ran"], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "make lab" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_without_a_command_it_shows_its_usage(enter: Path) -> None:
    done = subprocess.run([enter], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "enter COMMAND" in done.stderr


def test_ssh_configuration_names_every_node_and_trusts_only_known_hosts(tmp_path: Path) -> None:
    lab = Lab(tmp_path, tmp_path)
    text = ssh.config_text(lab)
    assert "Host lab5 10.77.0.15\n" in text
    assert "StrictHostKeyChecking yes" in text
    assert "GlobalKnownHostsFile /dev/null" in text


def test_sockets_fit_into_the_kernels_limit_however_deep_the_checkout_lies(tmp_path: Path) -> None:
    lab = Lab(tmp_path / ("deep/" * 40), tmp_path)
    # sun_path has 108 bytes with its end; %C is 40 characters, and ssh appends a dot and 16 more while it makes the socket.
    assert len(str(lab.runtime)) + 1 + 40 + 17 < 108


def test_known_hosts_lists_name_and_address(tmp_path: Path) -> None:
    nodes = Lab(tmp_path, tmp_path).nodes(2)
    text = ssh.known_hosts_text(nodes, ["ssh-ed25519 AAAA1 lab1\n", "ssh-ed25519 AAAA2 lab2\n"])
    assert text == "lab1,10.77.0.11 ssh-ed25519 AAAA1\nlab2,10.77.0.12 ssh-ed25519 AAAA2\n"
