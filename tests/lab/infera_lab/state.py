# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a lab remembers of itself between two commands: how many nodes it has, and which faults are on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .plan import Lab

DEFAULT_NODES = 2


@dataclass
class State:
    """`complete` is true from the end of `up` to the begin of the next `up` or `down`; `leaving` from the begin of a `down`."""

    nodes: int = DEFAULT_NODES
    complete: bool = False
    leaving: bool = False
    faults: list[str] = field(default_factory=list)


def load(lab: Lab) -> State | None:
    """None when there is no lab."""
    try:
        return State(**json.loads(_path(lab).read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None


def save(lab: Lab, state: State) -> None:
    """Write the state, and the file by whose presence `enter` knows that the lab is up."""
    lab.state.mkdir(exist_ok=True)
    beside = _path(lab).with_suffix(".new")
    beside.write_text(json.dumps(asdict(state)) + "\n")
    beside.replace(_path(lab))
    if state.complete:
        (lab.state / "up").touch()
    else:
        (lab.state / "up").unlink(missing_ok=True)


def _path(lab: Lab) -> Path:
    return lab.state / "state.json"
