# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The folder on a node's large disk where archives wait for their import, and only for that long."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import pwd
import stat
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TextIO

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

#: k3s imports whatever looks like an archive in its images folder; a staged file must look like none.
SUFFIX = ".staged"


#: An import outlives the run that was killed over it; the next one waits for it here.
LOCK = "/run/infera-images.lock"
#: Seconds to wait: as long as a large import on a slow disk takes.
LOCK_SECONDS = 3600


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
            _give(path, owner, where)
        _remove(path, keep=set(keep))
        free = os.statvfs(path)
        return Staged(path=path, free_bytes=free.f_bavail * free.f_frsize, files=_files(path))
    except (OSError, KeyError) as error:
        raise FindingError(_unusable(path, str(error), where)) from error


@contextlib.contextmanager
def alone(lock: str = LOCK, where: str = "", seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Holds the lock, so that one process at a time works on the node's images. Raises FindingError after C(seconds)."""
    try:
        file = open(lock, "a+", encoding="ascii")  # noqa: SIM115
    except OSError:
        yield  # who cannot write there cannot change images either, and containerd says so better
        return
    with file:
        _wait(file, seconds, where)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _wait(file: TextIO, seconds: float, where: str) -> None:
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pass
        if time.monotonic() >= until:
            file.seek(0)
            raise FindingError(_busy(file.read() or "unknown", seconds, where))
        time.sleep(min(0.5, seconds))


def _busy(process: str, seconds: float, where: str) -> Finding:
    return Finding(
        code="image_import_running",
        severity="error",
        message=f"Another import (process {process}) is at work on this host for more than {seconds:.0f} s.",
        fix="Look what it does; end it if it hangs, then run playbooks/images.yml again.",
        where=where,
    )


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


def _give(path: str, owner: str, where: str) -> None:
    """Makes the folder the owner's, and makes sure that the owner can get there."""
    account = pwd.getpwnam(owner)
    groups = os.getgrouplist(owner, account.pw_gid)
    for parent in pathlib.PurePath(path).parents:
        if account.pw_uid and not _may_enter(os.stat(parent), account.pw_uid, groups):
            raise FindingError(_unusable(path, f"the account {owner!r} may not enter {str(parent)!r}", where))
    os.chown(path, account.pw_uid, account.pw_gid)


def _may_enter(status: os.stat_result, uid: int, groups: list[int]) -> bool:
    if status.st_uid == uid:
        return bool(status.st_mode & stat.S_IXUSR)
    if status.st_gid in groups:
        return bool(status.st_mode & stat.S_IXGRP)
    return bool(status.st_mode & stat.S_IXOTH)


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
        fix="Set images_staging_dir to a folder on the large disk, outside of agent/images, that the connecting account can reach.",
        where=where,
    )
