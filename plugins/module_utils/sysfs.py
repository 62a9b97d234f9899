# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reading a sysfs tree that may be somebody's fixture, may lack anything, and may change while it is read.

Nothing here raises: a file that is gone, unreadable or refuses to be read (an empty slot of C(gid_attrs) answers EINVAL) is
None, a folder that is gone is empty. What that means is the caller's to say.
"""

from __future__ import annotations

import os
import re
from typing import List, Optional, Tuple

ROOT = "/sys"
_LIMIT = 1 << 16


def natural_key(name: str) -> Tuple[Tuple[int, int, str], ...]:
    """Sort key by which C(enp9s0) comes before C(enp105s0)."""
    parts = re.findall(r"\d+|\D+", name)
    return tuple((0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts)


def read_text(*parts: str) -> Optional[str]:
    """Content of a file below the joined path, without white space around it."""
    try:
        with open(os.path.join(*parts), "rb") as handle:
            return handle.read(_LIMIT).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return None


def read_int(*parts: str) -> Optional[int]:
    """A number, decimal or C(0x...); None where it is not one."""
    text = read_text(*parts)
    try:
        return int(text, 0) if text else None
    except ValueError:
        return None


def names(*parts: str) -> List[str]:
    """What is in a folder, sorted naturally."""
    try:
        return sorted(os.listdir(os.path.join(*parts)), key=natural_key)
    except (OSError, ValueError):
        return []


def link_path(*parts: str) -> Optional[str]:
    """Where a link or folder really is, as an absolute path; None where nothing is."""
    path = os.path.join(*parts)
    return os.path.realpath(path) if os.path.exists(path) else None
