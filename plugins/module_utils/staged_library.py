# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A copy of a library at a path that containers mount: replaced as a whole, never written in place, its digest beside it.

A package upgrade replaces the host's own file under a running mount. A mount of the copy keeps the file that it was started with.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from typing import Optional

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

MODE = 0o644


def digest_file(path: str) -> str:
    """Where the digest of a staged file stands."""
    return f"{path}.sha256"


def sha256_of(path: str) -> Optional[str]:
    """The digest of a regular file's content; None where there is none. Raises FindingError where it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return hashlib.sha256(handle.read()).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _refused(path, f"cannot be read: {error.strerror}", "Run the play as root (become: true).") from error


def stage(source: str, wanted: str, path: str, check_mode: bool = False) -> bool:
    """Put the library at C(path) if it is not there. True where something changes. Raises FindingError.

    C(wanted) is the digest that was judged: what is read now has to be that file still.
    """
    if sha256_of(path) == wanted and os.stat(path).st_mode & 0o777 == MODE and _noted(path) == wanted:
        return False
    try:
        with open(source, "rb") as handle:
            data = handle.read()
    except OSError as error:
        raise _refused(
            source, f"cannot be read: {error.strerror}", "Run again: its package may be being upgraded."
        ) from error
    if hashlib.sha256(data).hexdigest() != wanted:
        raise _refused(source, "has changed since it was judged", "Run again: its package is being upgraded.")
    if not check_mode:
        _write(path, data)
        _write(digest_file(path), f"{wanted}  {os.path.basename(path)}\n".encode())
    return True


def remove(path: str, check_mode: bool = False) -> bool:
    """Take the copy and its digest away, and the folder if nothing else is in it. True where something changes."""
    there = [each for each in (path, digest_file(path)) if os.path.lexists(each)]
    if there and not check_mode:
        try:
            for each in there:
                os.unlink(each)
        except OSError as error:
            raise _refused(
                path, f"cannot be removed: {error.strerror}", "Run the play as root (become: true)."
            ) from error
        with contextlib.suppress(OSError):  # Something else is in it.
            os.rmdir(os.path.dirname(path))
    return bool(there)


def _noted(path: str) -> str:
    try:
        with open(digest_file(path), encoding="ascii", errors="replace") as handle:
            return handle.read().partition(" ")[0]
    except OSError:
        return ""


def _write(path: str, data: bytes) -> None:
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".infera-")
        try:
            with os.fdopen(descriptor, "wb") as handle:
                handle.write(data)
                os.fchmod(handle.fileno(), MODE)
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise _refused(
            path, f"cannot be written: {error.strerror}", "Make room, or choose another libionic_path."
        ) from error


def _refused(path: str, message: str, fix: str) -> FindingError:
    return FindingError(Finding("library_not_staged", "error", message, fix, where=path))
