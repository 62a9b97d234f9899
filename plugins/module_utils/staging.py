# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The folder on a node's large disk where archives wait for their import, and only for that long."""

from __future__ import annotations

import contextlib
import os
import pwd
import stat
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

#: k3s imports whatever looks like an archive in its images folder; a staged file must look like none.
SUFFIX = ".staged"


@dataclass(frozen=True)
class Staged:
    """The folder as it is: free bytes of its file system, and the staged files with their sizes."""

    path: str
    free_bytes: int
    files: dict[str, int]


def file_name(digest: str, size: int) -> str:
    """The name under which an archive of C(size) bytes waits; its first image's digest tells it from all others."""
    return f"{digest.partition(':')[2]}-{size}{SUFFIX}"


def prepare(path: str, keep: Iterable[str] = (), owner: str = "", where: str = "") -> Staged:
    """Makes the folder (0700) for C(owner), who will write there, and removes what an earlier run left, save C(keep).

    Raises FindingError where the folder must not or cannot be.
    """
    _refuse(path, where)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if owner:
            account = pwd.getpwnam(owner)
            os.chown(path, account.pw_uid, account.pw_gid)
        _remove(path, keep=set(keep))
        free = os.statvfs(path)
        return Staged(path=path, free_bytes=free.f_bavail * free.f_frsize, files=_files(path))
    except (OSError, KeyError) as error:
        raise FindingError(_unusable(path, str(error), where)) from error


def discard(path: str, keep: Iterable[str] = ()) -> None:
    """Removes what is staged, save C(keep), and the folder when it is empty then. What is not there is no error."""
    with contextlib.suppress(OSError):
        _remove(path, keep=set(keep))
        if not keep:
            os.rmdir(path)


def _refuse(path: str, where: str) -> None:
    if not os.path.isabs(path):
        raise FindingError(_unusable(path, "it is not an absolute path", where))
    if "/agent/images/" in os.path.normpath(path) + "/":
        raise FindingError(_unusable(path, "k3s imports everything in its agent/images folder at every start", where))
    try:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            raise FindingError(_unusable(path, "it is not a folder", where))
    except OSError:
        pass  # to be made, or makedirs says better what is wrong


def _files(path: str) -> dict[str, int]:
    with os.scandir(path) as entries:
        return {entry.name: entry.stat(follow_symlinks=False).st_size for entry in entries if _ours(entry)}


def _remove(path: str, keep: set[str]) -> None:
    with os.scandir(path) as entries:
        leftovers = [entry.path for entry in entries if _ours(entry) and entry.name not in keep]
    for leftover in leftovers:
        os.unlink(leftover)


def _ours(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(SUFFIX) and not entry.is_dir(follow_symlinks=False)


def _unusable(path: str, reason: str, where: str) -> Finding:
    return Finding(
        code="image_staging_unusable",
        severity="error",
        message=f"Archives cannot be staged in {path!r}: {reason}.",
        fix="Set images_staging_dir to a folder on the large disk, beside containerd's data and outside of agent/images.",
        where=where,
    )
