# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a lab remembers between two commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.infera_lab import state
from ansible_collections.infera.baremetal.tests.lab.infera_lab.plan import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, tmp_path)


def test_there_is_no_state_without_a_lab(lab: Lab) -> None:
    assert state.load(lab) is None


def test_state_is_read_back(lab: Lab) -> None:
    written = state.State(nodes=3, complete=True, faults=["rail-down lab2 rail3"])
    state.save(lab, written)
    assert state.load(lab) == written


def test_the_mark_that_enter_looks_for_is_there_only_while_the_lab_is_complete(lab: Lab) -> None:
    state.save(lab, state.State(complete=True))
    assert (lab.state / "up").exists()
    state.save(lab, state.State(complete=False))
    assert not (lab.state / "up").exists()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"unknown": 1}'])
def test_a_damaged_file_counts_as_no_state(lab: Lab, content: str) -> None:
    lab.state.mkdir()
    (lab.state / "state.json").write_text(content)
    assert state.load(lab) is None
