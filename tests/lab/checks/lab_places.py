# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where things are."""

from __future__ import annotations

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
ARTIFACTS = CHECKOUT / "artifacts" / "lab"
LOGS = CHECKOUT / ".cache" / "lab-checks"
# Where the second run would keep facts between runs.
FACTS = LOGS / "facts"
DATA_DIR = "/mnt/data/k3s"
