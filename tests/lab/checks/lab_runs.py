# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Starting playbooks as an operator does, reading what they print, and killing them."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_places import CHECKOUT, LOGS

LIMIT_SECONDS = 900
_RECAP = re.compile(r"^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)", re.MULTILINE)
# ansible-core 2.19 prints each failure once with its whole message, then the host's result.
_ERROR = re.compile(
    r"^\[ERROR\]: (.*?)(?=^(?:Origin|fatal|failed|TASK|PLAY|NO MORE|\[ERROR\])\b|\Z)", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Run:
    """What one command did; `killed` when this test ended it."""

    title: str
    status: int
    output: str
    seconds: float
    killed: bool = False

    @property
    def hosts(self) -> dict[str, dict[str, int]]:
        """Host -> the recap's counts."""
        names = ("ok", "changed", "unreachable", "failed")
        return {host: dict(zip(names, map(int, counts), strict=True)) for host, *counts in _RECAP.findall(self.output)}

    @property
    def changed(self) -> int:
        """Changes on all hosts."""
        return sum(counts["changed"] for counts in self.hosts.values())

    @property
    def errors(self) -> list[str]:
        """The messages of the failures, white space made single."""
        return [" ".join(text.split()) for text in _ERROR.findall(self.output)]

    def succeeded(self) -> Run:
        """The run itself, once it is certain that it went well on every host."""
        tail = "\n".join(self.output.splitlines()[-60:])
        assert self.status == 0, f"{self.title} ended with {self.status}:\n{tail}"
        assert self.hosts, f"{self.title} printed no recap:\n{tail}"
        assert not any(counts["failed"] or counts["unreachable"] for counts in self.hosts.values()), tail
        return self

    def unchanged(self) -> Run:
        """The run itself, once it is certain that it went well and changed nothing."""
        self.succeeded()
        lines = self.output.splitlines()
        tasks = [last for last, line in _with_task(lines) if line.startswith("changed:")]
        assert self.changed == 0, f"{self.title} changed something: {tasks or self.hosts}"
        return self

    def refused(self) -> str:
        """The one message with which the run refused its input."""
        assert self.status != 0 and not self.killed, f"{self.title} was not refused"
        assert len(self.errors) == 1, (
            f"{self.title} said {len(self.errors)} things, not one: {self.errors}\n{self.output[-3000:]}"
        )
        return self.errors[0]


def _with_task(lines: Sequence[str]) -> list[tuple[str, str]]:
    """(title of the task, line) for each line of an output."""
    title, found = "", []
    for line in lines:
        if line.startswith(("TASK [", "RUNNING HANDLER [")):
            title = line.rstrip(" *")
        found.append((title, line))
    return found


class Runs:
    """Starts commands in the checkout and keeps their outputs below .cache/lab-checks."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._count = 0
        LOGS.mkdir(parents=True, exist_ok=True)
        for old in LOGS.glob("*.log"):
            old.unlink()

    def play(
        self,
        playbook: str,
        *arguments: str,
        variables: Mapping[str, Any] | None = None,
        inventory: str = "inventories/lab",
        **options: Any,
    ) -> Run:
        """One ansible-playbook; variables travel in a file, as secrets should. Options are those of `command`."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(variables or {}, file)
            file.flush()
            command = ["ansible-playbook", "-i", inventory, f"playbooks/{playbook}", "-e", f"@{file.name}", *arguments]
            title = " ".join([playbook, *arguments])
            return self.command(title, command, **options)

    def command(
        self,
        title: str,
        command: Sequence[str],
        *,
        cwd: Path = CHECKOUT,
        environment: Mapping[str, str] | None = None,
        kill_at: Sequence[str] = (),
        kill_after: float = 0.0,
    ) -> Run:
        """Run a command to its end, or send SIGKILL to its process group.

        That is `kill_after` seconds after lines have matched the expressions of `kill_at`, one after the other.
        """
        self._count += 1
        log = LOGS / f"{self._count:02d}-{re.sub(r'[^A-Za-z0-9.=-]+', '_', title)[:80]}.log"
        started = time.monotonic()
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**self._environment(), **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            # A group of its own: what is killed is this run and nothing else.
            start_new_session=True,
        )
        lines: list[str] = []
        killed = False
        awaited = list(kill_at)
        assert process.stdout is not None
        with log.open("w") as record:
            for line in process.stdout:
                lines.append(line)
                record.write(line)
                record.flush()
                if awaited and re.search(awaited[0], line):
                    awaited.pop(0)
                    if awaited:
                        continue
                    time.sleep(kill_after)
                    os.killpg(process.pid, signal.SIGKILL)
                    killed = True
                if time.monotonic() - started > LIMIT_SECONDS:
                    os.killpg(process.pid, signal.SIGKILL)
                    raise AssertionError(f"{title}: not done after {LIMIT_SECONDS} s, see {log}")
        status = process.wait()
        run = Run(title, status, "".join(lines), time.monotonic() - started, killed)
        ending = "killed" if killed else f"exit {status}"
        self._say(f"{run.seconds:6.1f} s  {title}  ({ending}, {run.changed} changed)  {log.relative_to(CHECKOUT)}")
        return run

    @staticmethod
    def _environment() -> dict[str, str]:
        return {
            **os.environ,
            "ANSIBLE_CONFIG": str(CHECKOUT / "ansible.cfg"),
            "ANSIBLE_COLLECTIONS_PATH": str(CHECKOUT / ".collections"),
            "ANSIBLE_INJECT_FACT_VARS": "false",
            "ANSIBLE_FORCE_COLOR": "0",
            "NO_COLOR": "1",
            "PYTHONUNBUFFERED": "1",
        }
