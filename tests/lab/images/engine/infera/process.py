# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The edge to the process: log lines on stdout, signals, and a last word instead of a traceback."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import typing as t


class FatalError(Exception):
    """The process cannot do its work; the message is its last log line."""


def run(name: str, serve: t.Callable[[threading.Event], None]) -> int:
    """Runs `serve(stop)` until it returns; `stop` is set by SIGTERM and SIGINT. Returns the exit status."""
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="[%(asctime)s] %(levelname)s %(name)s: %(message)s",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    log = logging.getLogger(name)
    try:
        serve(stop)
    except (FatalError, OSError) as error:
        log.error("%s", error)
        return 1
    log.info("stopped")
    return 0
