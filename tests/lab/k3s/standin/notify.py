# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""systemd's readiness protocol (sd_notify)."""

from __future__ import annotations

import os
import socket


def notify_ready() -> None:
    """Tell systemd, if it asked, that the service is ready."""
    path = os.environ.pop("NOTIFY_SOCKET", "")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            channel.sendto(b"READY=1\n", "\0" + path[1:] if path.startswith("@") else path)
