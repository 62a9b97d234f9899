# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Tells the person at the terminal what a long command does and how far it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Progress:
    """Counts steps: "[2/6] building the node image (about 1 min)"."""

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._step = 0
        self._begin = time.monotonic()

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One step; says how long it took when that was a second or more."""
        self._step += 1
        self.say(f"[{self._step}/{self._steps}] {title}")
        begin = time.monotonic()
        yield
        seconds = time.monotonic() - begin
        if seconds >= 1:
            self.note(f"done in {seconds:.0f} s")

    def note(self, text: str) -> None:
        """A line that belongs to the step."""
        self.say(f"      {text}")

    def say(self, text: str) -> None:
        """A line at once, also where the output is a pipe."""
        print(text, flush=True)

    @property
    def seconds(self) -> float:
        """Since the command began."""
        return time.monotonic() - self._begin
