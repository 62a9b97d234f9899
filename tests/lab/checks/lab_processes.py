# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What `ps` would have shown over a time, on this machine and in all nodes: their processes are this machine's."""

from __future__ import annotations

import threading
from pathlib import Path

INTERVAL_SECONDS = 0.2


class Sampler:
    """Collects the arguments of all processes while the `with` block runs."""

    def __init__(self) -> None:
        self._seen: set[bytes] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._stop.set()
        self._thread.join()

    @property
    def text(self) -> str:
        """All that was seen, one process a line."""
        return b"\n".join(self._seen).replace(b"\0", b" ").decode(errors="replace")

    def _run(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self._seen.add(path.read_bytes())
                except OSError:
                    continue  # It ended meanwhile.
