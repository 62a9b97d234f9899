# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What systemd knows of a unit."""

from __future__ import annotations

import calendar
import re
import subprocess
import time
from dataclasses import dataclass
from typing import Callable, Optional

Runner = Callable[[list[str]], "tuple[int, str]"]

# A secure k3s token names itself; whatever a log says after the prefix is cut.
_TOKEN = re.compile(r"K10[0-9a-f]{64}::\S+")


def run(command: list[str]) -> tuple[int, str]:
    """Exit status and standard output with standard error; 127 where the program is missing, 126 where it cannot be run, 124 after 30 seconds."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=30, check=False
        )
    except FileNotFoundError:
        return 127, f"{command[0]}: not found"
    except OSError as error:
        return 126, f"{command[0]}: {error.strerror or error}"
    except subprocess.TimeoutExpired:
        return 124, f"{command[0]}: no answer within 30 s"
    return done.returncode, done.stdout.decode("utf-8", "replace")


@dataclass(frozen=True)
class Unit:
    """A unit's state: C(active) as systemd says it (active, activating, failed, inactive), C(started) in seconds since the epoch."""

    name: str
    loaded: bool
    active: str
    restarts: int
    started: Optional[int]
    enabled: bool = False
    needs_reload: bool = False

    @property
    def running(self) -> bool:
        return self.started is not None and self.active in ("active", "activating", "reloading")


def read_unit(name: str, runner: Runner = run) -> Unit:
    """Ask systemd once; a unit that does not exist is inactive."""
    keys = "LoadState,ActiveState,NRestarts,MainPID,ExecMainStartTimestamp,UnitFileState,NeedDaemonReload"
    # systemctl formats times in the caller's zone; --timestamp=unix came with systemd 251, Ubuntu 22.04 has 249.
    text = runner(["env", "TZ=UTC", "LC_ALL=C", "systemctl", "show", name, f"--property={keys}"])[1]
    values = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    alive = values.get("MainPID", "0") not in ("", "0")
    return Unit(
        name=name,
        loaded=values.get("LoadState") == "loaded",
        active=values.get("ActiveState", "inactive"),
        restarts=int(values.get("NRestarts") or 0),
        started=_seconds(values.get("ExecMainStartTimestamp", "")) if alive else None,
        enabled=values.get("UnitFileState") == "enabled",
        needs_reload=values.get("NeedDaemonReload") == "yes",
    )


def _seconds(stamp: str) -> Optional[int]:
    try:
        return calendar.timegm(time.strptime(stamp, "%a %Y-%m-%d %H:%M:%S UTC"))
    except ValueError:
        return None


def last_log_lines(name: str, lines: int = 200, runner: Runner = run, since: Optional[float] = None) -> list[str]:
    """The unit's last journal lines, tokens cut out; none from before C(since), in seconds since the epoch."""
    after = ["--since", f"@{int(since)}"] if since is not None else []
    command = ["journalctl", "--unit", name, *after, "--lines", str(lines), "--output", "cat", "--no-pager"]
    status, text = runner(command)
    return [_TOKEN.sub("K10<cut>", line) for line in text.splitlines() if line.strip()] if status == 0 else []
