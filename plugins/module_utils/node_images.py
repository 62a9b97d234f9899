# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The images a node must have: what is there, what is lacking, and how it gets there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, BinaryIO

from ansible_collections.infera.baremetal.plugins.module_utils.containerd import (
    PINNED_LABEL,
    PINNED_VALUE,
    Containerd,
    StoredImage,
)
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference
from ansible_collections.infera.baremetal.plugins.module_utils.oci_archive import (
    BlobSink,
    OciArchive,
    copy_command,
)

#: How long CRI may take to notice a new name. Its 1.6 form replaces all labels then, so ours are set afterwards.
NOTICE_SECONDS = 3.0
NOTICE_STEP = 0.1


@dataclass(frozen=True)
class ImageState:
    """What the store knows of one wanted image. C(stored) are the names that lead to its whole content."""

    reference: ImageReference
    stored: tuple[StoredImage, ...]

    @property
    def found(self) -> bool:
        """True when the kubelet will find it: the name CRI looks up leads to the whole content."""
        return self.reference.lookup_name in self.names

    @property
    def names(self) -> tuple[str, ...]:
        """The wanted names that are there."""
        stored = {image.name for image in self.stored}
        return tuple(name for name in self.reference.names if name in stored)

    @property
    def lacking_names(self) -> tuple[str, ...]:
        return tuple(name for name in self.reference.names if name not in self.names)

    @property
    def pinned(self) -> bool:
        """True when every wanted name that is there carries the label."""
        mine = [image for image in self.stored if image.name in self.names]
        return bool(mine) and all(image.pinned for image in mine)

    @property
    def source(self) -> str:
        """A name from which the lacking ones can be made without an archive; empty when the content is not there."""
        return next(iter(self.names or tuple(image.name for image in self.stored)), "")

    @property
    def size(self) -> int:
        return self.stored[0].size if self.stored else 0

    def mislabelled(self, pinned: bool) -> tuple[str, ...]:
        return tuple(image.name for image in self.stored if image.name in self.names and image.pinned != pinned)

    def settled(self, pinned: bool) -> bool:
        return not self.lacking_names and not self.mislabelled(pinned)

    def to_dict(self) -> dict[str, Any]:
        """The image as it crosses to Ansible and to the cluster record."""
        return {
            "name": str(self.reference),
            "digest": self.reference.digest,
            "size": self.size,
            "present": self.found,
            "pinned": self.pinned,
            "names": list(self.names),
        }


@dataclass(frozen=True)
class WantedImage:
    """An image to have, and the archive on this node that brings it; empty where none is given."""

    reference: ImageReference
    archive: str = ""


class NodeImages:
    """Brings a node's image store to what is wanted. C(sleep) is replaceable in tests."""

    def __init__(
        self, containerd: Containerd, pinned: bool = True, where: str = "", sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._containerd = containerd
        self._pinned = pinned
        self._where = where
        self._sleep = sleep

    def examine(self, references: Sequence[ImageReference]) -> list[ImageState]:
        """What is there of each image: two calls of C(ctr), however many images."""
        wanted = {reference.digest for reference in references}
        candidates = [image for image in self._containerd.images() if image.digest in wanted]
        incomplete = self._containerd.incomplete(image.name for image in candidates)
        whole = [image for image in candidates if image.name not in incomplete]
        return [
            ImageState(reference, tuple(image for image in whole if image.digest == reference.digest))
            for reference in references
        ]

    def load_all(self, wanted: Sequence[WantedImage]) -> None:
        """Imports images from archives on this node. All archives must hold the right digest before the first is imported."""
        findings: list[Finding] = []
        for image in wanted:
            try:
                with closing(self._open(image)) as archive:
                    archive.image(image.reference)
            except FindingError as error:
                findings.extend(error.findings)
        if findings:
            raise FindingError(*findings)
        for image in wanted:
            with closing(self._open(image)) as archive:
                self._load(image.reference, archive)

    def _open(self, image: WantedImage) -> OciArchive:
        if not image.archive:
            raise FindingError(archive_unset(image.reference, self._where))
        return OciArchive(image.archive, where=f"{self._where}:{image.archive}")

    def _load(self, reference: ImageReference, archive: OciArchive) -> None:
        """Every byte is checked on its way, and without the last of them nothing gets a name."""
        image = archive.image(reference)

        def feed(stream: BinaryIO) -> None:
            sink = BlobSink(stream, reference)
            archive.verify(image, sink)
            sink.finish(image.target)

        self._containerd.load(reference.repository, feed)

    def settle(self, references: Sequence[ImageReference]) -> list[ImageState]:
        """Gives images whose content is there all their names and labels. Raises FindingError where that fails."""
        states = self.examine(references)
        if all(state.settled(self._pinned) for state in states):
            return states
        for state in states:
            if state.lacking_names and state.source:
                self._containerd.tag(state.source, state.lacking_names)
        states = self._noticed(references)
        for state in states:
            for name in state.mislabelled(self._pinned):
                self._containerd.label(name, {PINNED_LABEL: PINNED_VALUE if self._pinned else ""})
        states = self.examine(references)
        unsettled = [state for state in states if not state.settled(self._pinned)]
        if unsettled:
            raise FindingError(*(self._not_settled(state) for state in unsettled))
        return states

    def remove(self, references: Sequence[ImageReference]) -> list[str]:
        """Removes the images' names, and CRI's own name for content that has no other left. Returns what went."""
        going = self.removable(references)
        if going:
            self._containerd.remove(going)
        return going

    def removable(self, references: Sequence[ImageReference]) -> list[str]:
        images = self._containerd.images()
        names = {name for reference in references for name in reference.names}
        # A tag that has moved on to another content is not this image's any more.
        pairs = {(name, reference.digest) for reference in references for name in reference.names}
        going = [image.name for image in images if (image.name, image.digest) in pairs]
        for digest in {reference.digest for reference in references}:
            rest = [image.name for image in images if image.digest == digest and image.name not in names]
            if all(name.startswith("sha256:") for name in rest):
                going.extend(rest)
        return going

    def _noticed(self, references: Sequence[ImageReference]) -> list[ImageState]:
        """Waits until CRI has noticed the names, if it is there at all."""
        waited = 0.0
        while True:
            states = self.examine(references)
            if waited >= NOTICE_SECONDS or all(image.managed for state in states for image in state.stored):
                return states
            self._sleep(NOTICE_STEP)
            waited += NOTICE_STEP

    def _not_settled(self, state: ImageState) -> Finding:
        lacking = ", ".join(state.lacking_names) or f"the label {PINNED_LABEL}"
        return Finding(
            code="image_not_settled",
            severity="error",
            message=f"containerd took {state.reference} in, but {lacking} is not there afterwards.",
            fix="Run playbooks/images.yml again; if it stays, look at containerd's log for removals.",
            where=self._where,
            why="something else may remove or rename images on this node at the same time",
        )


def missing(states: Iterable[ImageState]) -> list[str]:
    """The images for which a pod would make the kubelet pull."""
    return [str(state.reference) for state in states if not state.found]


def listing(states: Iterable[ImageState]) -> str:
    """The names that are there, one a line: what a diff compares."""
    return _lines(
        _line(image.name, image.digest, image.pinned)
        for state in states
        for image in state.stored
        if image.name in state.names
    )


def intended_listing(references: Iterable[ImageReference], pinned: bool) -> str:
    """The same for a node that has all of them."""
    return _lines(_line(name, reference.digest, pinned) for reference in references for name in reference.names)


def archive_unset(reference: ImageReference, where: str) -> Finding:
    return Finding(
        code="image_archive_unset",
        severity="error",
        message=f"{reference} is not in containerd, and no archive is named for it.",
        fix=f"Name its archive. One that keeps the digest is made by {copy_command(reference)}.",
        where=where,
    )


def _line(name: str, digest: str, pinned: bool) -> str:
    return f"{name} {digest}{' pinned' if pinned else ''}"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in sorted(set(lines)))
