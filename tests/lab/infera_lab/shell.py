# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Running commands: the one place where the lab leaves Python."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


class LabError(Exception):
    """What is wrong, and what to do about it, for the person at the terminal."""


def run(
    *command: str | Path, stdin: str | bytes | None = None, timeout: float = 300, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run a short command to its end.

    It dies with the lab's own process, so that a killed `up` leaves nothing running beside the next.
    """
    words = ["setpriv", "--pdeathsig", "TERM", *map(str, command)]
    data = stdin.encode() if isinstance(stdin, str) else stdin
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL} if data is None else {"input": data}
    try:
        raw = subprocess.run(words, capture_output=True, timeout=timeout, check=False, **options)
    except subprocess.TimeoutExpired:
        raise LabError(f"no end after {timeout:.0f} s: {shlex.join(words[3:])}") from None
    done = subprocess.CompletedProcess(
        words[3:], raw.returncode, raw.stdout.decode(errors="replace"), raw.stderr.decode(errors="replace")
    )
    if check and done.returncode != 0:
        raise LabError(
            f"{shlex.join(words[3:])}: exit status {done.returncode}: {(done.stderr or done.stdout).strip()}"
        )
    return done


def output(*command: str | Path, **options: Any) -> str:
    """What the command prints."""
    return run(*command, **options).stdout


def output_json(*command: str | Path) -> Any:
    """What the command prints, as JSON; nothing printed is an empty list (`ip -j` does so)."""
    return json.loads(output(*command) or "[]")


def succeeds(*command: str | Path) -> bool:
    """Whether the command's exit status is 0."""
    return run(*command, check=False).returncode == 0


def lines(commands: Sequence[str]) -> str:
    """Commands for a program that reads them from its standard input."""
    return "".join(f"{command}\n" for command in commands)
