# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Log lines in k3s's form (logrus), on standard error, which systemd takes to the journal."""

from __future__ import annotations

import json
import sys
import time


def log(level: str, message: str) -> None:
    """Write one line: time, level and the quoted message."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    print(f'time="{moment}" level={level} msg={json.dumps(message, ensure_ascii=False)}', file=sys.stderr, flush=True)
