# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Image names as the kubelet's runtime reads them.

CRI turns C(repo:tag@sha256:X) into C(repo@sha256:X), fully qualified, and looks up that exact name in containerd's store
(distribution/reference, "normalized named references"). What is imported under any other name is pulled again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

DEFAULT_REGISTRY = "docker.io"

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_PATH = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*")
_TAG = re.compile(r"\w[\w.-]{0,127}", re.ASCII)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MAX_REPOSITORY = 255


@dataclass(frozen=True)
class ImageReference:
    """A fully qualified image name, pinned to one content: C(docker.io/lab/engine), C(v1), C(sha256:...).

    C(tag) is empty where the name has none.
    """

    repository: str
    tag: str
    digest: str

    @property
    def lookup_name(self) -> str:
        """The name CRI looks up for a pod that uses this image."""
        return f"{self.repository}@{self.digest}"

    @property
    def tagged_name(self) -> str:
        """The name a person looks for; empty without a tag."""
        return f"{self.repository}:{self.tag}" if self.tag else ""

    @property
    def names(self) -> tuple[str, ...]:
        """Every name the store must have for this image, the one that CRI looks up first."""
        return tuple(name for name in (self.lookup_name, self.tagged_name) if name)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.repository}{tag}@{self.digest}"


def parse(name: str, where: str = "") -> ImageReference:
    """Reads C(repo:tag@sha256:...), qualifies it as CRI does (docker.io, library/) and insists on the digest.

    C(where) is the variable the name came from. Raises FindingError: image_name_invalid, image_not_pinned.
    """
    text = name if isinstance(name, str) else str(name)
    remainder, at, digest = text.partition("@")
    repository, tag = _split_tag(remainder)
    if not _valid_name(repository, tag):
        raise FindingError(_invalid(text, where))
    repository = _qualified(repository)
    if len(repository) > _MAX_REPOSITORY or not _PATH.fullmatch(repository.partition("/")[2]):
        raise FindingError(_invalid(text, where))
    if not at:
        raise FindingError(_not_pinned(text, where))
    if not _DIGEST.fullmatch(digest):
        raise FindingError(_bad_digest(text, digest, where))
    return ImageReference(repository=repository, tag=tag, digest=digest)


def parse_all(named: Iterable[tuple[str, str]]) -> tuple[ImageReference, ...]:
    """Reads many C((name, where)); raises one FindingError that holds every finding, conflicts included."""
    references: list[ImageReference] = []
    findings: list[Finding] = []
    digests: dict[str, tuple[str, str]] = {}
    for name, where in named:
        try:
            reference = parse(name, where)
        except FindingError as error:
            findings.extend(error.findings)
            continue
        first = digests.setdefault(reference.tagged_name or reference.lookup_name, (reference.digest, where))
        if first[0] != reference.digest:
            findings.append(_conflict(reference, where, first))
        references.append(reference)
    if findings:
        raise FindingError(*findings)
    return tuple(references)


def _split_tag(text: str) -> tuple[str, str]:
    """A colon before the last slash belongs to a registry's port, after it to a tag."""
    head, slash, last = text.rpartition("/")
    leaf, colon, tag = last.partition(":")
    if colon and not tag:
        return text, ""
    return f"{head}{slash}{leaf}", tag


def _valid_name(repository: str, tag: str) -> bool:
    if tag and not _TAG.fullmatch(tag):
        return False
    registry, path = _split_registry(repository)
    return bool(_PATH.fullmatch(path)) and (not registry or bool(_REGISTRY.fullmatch(registry)))


def _split_registry(repository: str) -> tuple[str, str]:
    """The first part is a registry when it has a dot or a colon, is C(localhost), or has a capital letter."""
    first, slash, rest = repository.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost" or first != first.lower()):
        return first, rest
    return "", repository


def _qualified(repository: str) -> str:
    registry, path = _split_registry(repository)
    if registry in ("", "index.docker.io"):
        registry = DEFAULT_REGISTRY
    if registry == DEFAULT_REGISTRY and "/" not in path:
        path = f"library/{path}"
    return f"{registry}/{path}"


def _invalid(text: str, where: str) -> Finding:
    return Finding(
        code="image_name_invalid",
        severity="error",
        message=f"{text!r} is not an image name.",
        fix="Write it as registry/path:tag@sha256:<64 hex digits>, the path in small letters.",
        where=where,
    )


def _not_pinned(text: str, where: str) -> Finding:
    return Finding(
        code="image_not_pinned",
        severity="error",
        message=f"The image {text!r} has no digest.",
        fix=f"Pin it: {text}@sha256:<digest>; `skopeo inspect --format '{{{{.Digest}}}}' docker://{text}` prints the digest.",
        where=where,
        why="a tag can change under its name, and the content could not be checked",
    )


def _bad_digest(text: str, digest: str, where: str) -> Finding:
    return Finding(
        code="image_digest_invalid",
        severity="error",
        message=f"The image {text!r} has the digest {digest!r}, which is not sha256: and 64 hex digits in small letters.",
        fix="Copy the whole digest as the registry or `skopeo inspect` prints it.",
        where=where,
    )


def _conflict(reference: ImageReference, where: str, first: tuple[str, str]) -> Finding:
    name = reference.tagged_name or reference.lookup_name
    return Finding(
        code="image_name_conflict",
        severity="error",
        message=f"{name} is given twice with different digests: {first[0]} ({first[1]}) and {reference.digest}.",
        fix="Keep the digest that is meant; one tag can stand for one content only.",
        where=where,
    )
