# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The processes that the stand-in runs in place of k3s's goroutines: they never outlive it.

Pods do: containerd's shims are not children of this process, and the next containerd adopts them by its state folder.
"""

from __future__ import annotations

import collections
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from .log import log

POLL_SECONDS = 0.2
LAST_LINES = 15
# klog's fatal lines and Go's own: behind them comes nothing but stacks.
_FATAL = re.compile(r"F\d{4} |panic: |fatal error: ")
_STORES = ("etcd", "containerd")
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)


class ChildDied(Exception):
    """A component ended by itself; the message holds its last lines."""


class Stopped(Exception):
    """systemd asked the service to stop."""


class Child:
    """One running component. Its output goes to the journal, or to its own log file as containerd's does in k3s."""

    def __init__(self, name: str, command: Sequence[str], log_file: Path | None, environment: dict[str, str]) -> None:
        self.name = name
        self.log_file = log_file
        self._lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        # Spawned from the main thread: the kernel ties "parent death" to the thread that forked.
        with open(log_file, "ab") if log_file else open(os.devnull, "rb") as stream:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream if log_file else subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                preexec_fn=_die_with_parent,
            )
        self._pump = threading.Thread(target=self._copy_output, daemon=True)
        if not log_file:
            self._pump.start()

    def _copy_output(self) -> None:
        assert self.process.stdout is not None
        for raw in self.process.stdout:
            line = raw.decode(errors="replace").rstrip()
            if not (self._lines and _FATAL.match(self._lines[-1])):
                self._lines.append(line)
            print(line, file=sys.stderr, flush=True)

    def last_lines(self) -> list[str]:
        """What the component said last."""
        if self.log_file:
            return self.log_file.read_text(errors="replace").splitlines()[-LAST_LINES:]
        self._pump.join(timeout=1)
        return list(self._lines)


class Children:
    """All components of this service, in the order in which they were started."""

    def __init__(self) -> None:
        self._children: list[Child] = []
        self._stopping = False
        # NOTIFY_SOCKET is for this process alone: containerd and etcd would speak on it too.
        self._environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)

    def _on_signal(self, _number: int, _frame: object) -> None:
        self._stopping = True

    def start(
        self, name: str, command: Sequence[str], log_file: Path | None = None, environment: dict[str, str] | None = None
    ) -> Child:
        """Start a component, with variables beyond the service's own if given."""
        log("info", f"Running {name} {' '.join(command[1:])}")
        child = Child(name, command, log_file, {**self._environment, **(environment or {})})
        self._children.append(child)
        return child

    def check(self) -> None:
        """Raises Stopped or ChildDied when there is cause."""
        if self._stopping:
            raise Stopped
        for child in self._children:
            code = child.process.poll()
            if code is not None:
                raise ChildDied("\n".join([f"{child.name} exited with {code}; its last lines:", *child.last_lines()]))

    def pause(self, seconds: float) -> None:
        """Sleep, awake to signals and to deaths."""
        end = time.monotonic() + seconds
        self.check()
        while time.monotonic() < end:
            time.sleep(min(POLL_SECONDS, seconds))
            self.check()

    def wait_for(self, what: str, condition: Callable[[], bool]) -> None:
        """Poll until the condition holds. k3s waits without an end, so this does: it is systemd or the user who gives up."""
        begin = said = time.monotonic()
        while not condition():
            self.pause(POLL_SECONDS)
            if time.monotonic() - said > 10:
                said = time.monotonic()
                log("info", f"Waiting for {what} ({said - begin:.0f}s)")
        log("info", f"{what}: ready after {time.monotonic() - begin:.1f}s")

    def run(self, name: str, command: Sequence[str]) -> None:
        """Run a command to its end; a failure is a death like a component's."""
        child = self.start(name, command)
        while child.process.poll() is None and not self._stopping:
            time.sleep(0.05)
        if child.process.poll() == 0:
            self._children.remove(child)
        self.check()

    def stop(self) -> None:
        """Stop everything, within seconds: first those that write to etcd and containerd, then these two."""
        for stores, seconds in ((False, 2), (True, 5)):
            group = [child for child in self._children if (child.name in _STORES) == stores]
            for child in _running(group):
                child.process.terminate()
            # The API server would wait a minute for its watchers.
            end = time.monotonic() + seconds
            while list(_running(group)) and time.monotonic() < end:
                time.sleep(0.05)
            for child in _running(group):
                child.process.kill()
                child.process.wait()
        self._children.clear()


def _running(group: Sequence[Child]) -> Iterator[Child]:
    return (child for child in group if child.process.poll() is None)


def _die_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # The service runs on with its own handlers; the components start with the defaults.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
