# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Small files of a service, written as one set, and whether the running service has seen them."""

from __future__ import annotations

import os
import stat
import tempfile
from dataclasses import dataclass
from typing import Iterable, Optional

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

HIDDEN = "(not shown: the file holds a secret)\n"


@dataclass(frozen=True)
class ManagedFile:
    """A file as it should be; C(text) is None where it should not exist. C(mode) is the permission bits."""

    path: str
    text: Optional[str]
    mode: int = 0o644
    secret: bool = False


@dataclass(frozen=True)
class Change:
    """What was, or would be, done to one file. The texts are what a diff may show."""

    path: str
    before: str
    after: str

    def to_diff(self) -> dict[str, str]:
        """The form that Ansible's diff mode prints."""
        return {"before_header": self.path, "after_header": self.path, "before": self.before, "after": self.after}


def plan(files: Iterable[ManagedFile]) -> list[tuple[ManagedFile, Change]]:
    """The files that differ from what they should be, with the change. Reads only.

    Raises FindingError (C(file_unreadable), C(file_not_regular)) where a path cannot be managed.
    """
    changes = []
    for file in files:
        text, mode = _current(file.path)
        if text == file.text and (file.text is None or mode == file.mode):
            continue
        changes.append((file, _change(file, text, mode)))
    return changes


def apply(file: ManagedFile) -> None:
    """Make the file so: written beside, synced and renamed, so that a kill leaves the old one or the new one.

    Raises FindingError (C(file_unwritable)).
    """
    try:
        if file.text is None:
            os.unlink(file.path)
            return
        folder = os.path.dirname(file.path)
        os.makedirs(folder, mode=0o755, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=folder, prefix=".infera-")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
                handle.write(file.text)
                os.fchmod(handle.fileno(), file.mode)
                handle.flush()
                os.fsync(handle.fileno())
            os.replace(temporary, file.path)
        except BaseException:
            os.unlink(temporary)
            raise
    except FileNotFoundError:
        if file.text is not None:
            raise
    except OSError as error:
        raise FindingError(
            Finding(
                "file_unwritable",
                "error",
                f"cannot be written: {error.strerror}",
                "Make room, or make the folder writable.",
                where=file.path,
            )
        ) from error


def newer_than(paths: Iterable[str], started: Optional[int]) -> list[str]:
    """Those paths whose content is newer than C(started) (seconds since the epoch; None when nothing runs).

    A run that was killed between writing a file and restarting the service leaves exactly this trace.
    """
    if started is None:
        return []
    return [path for path in paths if os.path.exists(path) and int(os.stat(path).st_mtime) > started]


def _current(path: str) -> tuple[Optional[str], int]:
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None, 0
    if not stat.S_ISREG(status.st_mode):
        raise FindingError(
            Finding(
                "file_not_regular",
                "error",
                "exists and is not a regular file",
                "Move it away; the collection writes this path.",
                where=path,
            )
        )
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(), stat.S_IMODE(status.st_mode)
    except OSError as error:
        raise FindingError(
            Finding(
                "file_unreadable",
                "error",
                f"cannot be read: {error.strerror}",
                "Run the play as root (become: true).",
                where=path,
            )
        ) from error


def _change(file: ManagedFile, text: Optional[str], mode: int) -> Change:
    def shown(content: Optional[str], bits: int) -> str:
        if content is None:
            return ""
        return f"# mode {bits:04o}\n" + (HIDDEN if file.secret else content)

    return Change(file.path, shown(text, mode), shown(file.text, file.mode))
