# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An archive on the controller is read once a run, however many hosts need it.

Ansible works on each host in a process of its own. They share the run's temporary folder: the first to come locks
the archive's entry there and checks, the others wait and read what it found.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from dataclasses import dataclass

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference
from ansible_collections.infera.baremetal.plugins.module_utils.oci_archive import OciArchive

WHERE = "controller"


@dataclass(frozen=True)
class CheckedArchive:
    """An archive that holds exactly the pinned image. Sizes in bytes: of the file, and of the image's blobs."""

    path: str
    file_size: int
    image_size: int


def check(path: str, reference: ImageReference, cache: str) -> CheckedArchive:
    """Checks every byte of the image, or takes what another process of this run found. C(cache) is the run's folder.

    Raises FindingError.
    """
    path = os.path.realpath(path)
    try:
        status = os.stat(path)
    except OSError:
        return _read(path, reference)  # it says what is wrong
    key = f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0{reference.digest}"
    entry = os.path.join(cache, f"image-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json")
    os.makedirs(cache, mode=0o700, exist_ok=True)
    with open(entry, "a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        known = file.read()
        if not known:
            known = _outcome(path, reference)
            file.write(known)
    outcome = json.loads(known)
    if outcome["findings"]:
        raise FindingError(*(Finding(**finding) for finding in outcome["findings"]))
    return CheckedArchive(path, outcome["file_size"], outcome["image_size"])


def _outcome(path: str, reference: ImageReference) -> str:
    try:
        checked = _read(path, reference)
    except FindingError as error:
        return json.dumps({"findings": [finding.to_dict() for finding in error.findings]})
    return json.dumps({"findings": [], "file_size": checked.file_size, "image_size": checked.image_size})


def _read(path: str, reference: ImageReference) -> CheckedArchive:
    archive = OciArchive(path, where=f"{WHERE}:{path}")
    try:
        image = archive.image(reference)
        archive.verify(image)
        return CheckedArchive(path, archive.file_size, image.size)
    finally:
        archive.close()
