# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""OCI image archives: is this file exactly the image that a digest names?

An archive is an OCI image layout (image-spec, image-layout.md) in one uncompressed tar. Nothing of it is ever unpacked: the
members' headers are read first (they are few), then the documents that lead from the pinned digest to its blobs, then every
blob once, in the order of the file, hashed while it passes. What passes can be handed on, so that the check and the
import are one reading.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference

INDEX_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFEST_TYPES = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
LAYER_TYPE = re.compile(
    r"application/vnd\.oci\.image\.layer\.(nondistributable\.)?v1\.tar(\+gzip|\+zstd)?"
    r"|application/vnd\.docker\.image\.rootfs\.(foreign\.)?diff\.tar(\.gzip|\.zstd)?"
)
#: What registries and containerd accept for a manifest; a larger "manifest" is not one.
MAX_DOCUMENT = 8 * 1024 * 1024
CHUNK = 1024 * 1024
#: An archive's images that a message names.
MAX_SHOWN = 6

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_COMPRESSED = {
    b"\x1f\x8b": ("gzip", "gzip -dk"),
    b"\x28\xb5\x2f\xfd": ("zstd", "zstd -dk"),
    b"BZh": ("bzip2", "bzip2 -dk"),
    b"\xfd7zXZ": ("xz", "xz -dk"),
}
_IMAGE_NAME = "io.containerd.image.name"
_REF_NAME = "org.opencontainers.image.ref.name"
_LAYOUT = b'{"imageLayoutVersion":"1.0.0"}'


@dataclass(frozen=True)
class Descriptor:
    """What an index or a manifest says about a blob."""

    media_type: str
    digest: str
    size: int
    platform: str = ""

    @property
    def member(self) -> str:
        """The blob's name in the archive."""
        return "blobs/" + self.digest.replace(":", "/")


@dataclass(frozen=True)
class Member:
    """A file in the tar: where its bytes begin, and how many they are."""

    offset: int
    size: int


@dataclass(frozen=True)
class ArchivedImage:
    """The image that a digest names, and all that it consists of. C(size) is the sum of its blobs in bytes."""

    target: Descriptor
    blobs: tuple[Descriptor, ...]
    documents: dict[str, bytes] = field(repr=False)

    @property
    def size(self) -> int:
        return sum(blob.size for blob in self.blobs)


class OciArchive:
    """An OCI archive, opened for reading. C(where) names it in findings (C(controller:/images/engine.tar))."""

    def __init__(self, path: str, where: str = "") -> None:
        """Reads all headers. Raises FindingError when the file is absent, cut short, unsafe, or no OCI archive."""
        self.path = path
        self.where = where or path
        self._file = self._open()
        try:
            self.file_size = os.fstat(self._file.fileno()).st_size
            self._refuse_compressed()
            self._members = self._read_headers()
            self._index = self._read_index()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def image(self, reference: ImageReference) -> ArchivedImage:
        """Finds the pinned digest among the descriptors of the index and of the indexes in it, and all it refers to.

        Documents are checked against their digests here; layers are not read yet. Raises FindingError.
        """
        documents: dict[str, bytes] = {}
        seen: dict[str, Descriptor] = {}
        target = self._find(reference.digest, self._index, seen, documents)
        if target is None:
            raise FindingError(self._mismatch(reference, seen))
        blobs = self._collect(target, documents)
        return ArchivedImage(target=target, blobs=tuple(self._in_file_order(blobs)), documents=documents)

    def verify(self, image: ArchivedImage, sink: BlobSink | None = None) -> None:
        """Reads every blob of the image once and compares size and sha256; hands the bytes to C(sink) as they pass.

        Raises FindingError at the first blob that differs.
        """
        for blob in image.blobs:
            self._verify_blob(blob, sink)

    def pieces(self, blob: Descriptor) -> Iterator[bytes]:
        """A blob of C(image), as it is stored and not checked. Raises FindingError."""
        return self._chunks(self._members[blob.member])

    # -- opening ------------------------------------------------------------------------------------------------

    def _open(self) -> BinaryIO:
        try:
            if os.path.isdir(self.path):
                raise FindingError(self._not_oci("it is a folder"))
            return open(self.path, "rb")
        except OSError as error:
            raise FindingError(self._unreadable(error)) from error

    def _refuse_compressed(self) -> None:
        head = self._file.read(8)
        self._file.seek(0)
        for magic, (kind, command) in _COMPRESSED.items():
            if head.startswith(magic):
                raise FindingError(
                    self._finding(
                        "image_archive_compressed",
                        f"The archive is compressed with {kind}.",
                        f"Unpack it first (`{command} {self.path}`) and name the .tar file; its layers are compressed already.",
                    )
                )

    def _read_headers(self) -> dict[str, Member]:
        members: dict[str, Member] = {}
        odd: list[str] = []
        try:
            with tarfile.open(fileobj=self._file, mode="r:", errorlevel=2) as tar:
                for info in tar:
                    name = _plain_name(info)
                    reason = _oddity(info, name) or (f"two members are called {name!r}" if name in members else "")
                    if reason:
                        odd.append(reason)
                    elif not info.isdir():
                        members[name] = Member(info.offset_data, info.size)
                end = tar.offset
        except tarfile.ReadError as error:
            if members:
                raise FindingError(self._truncated()) from error
            raise FindingError(self._not_oci(f"it cannot be read as a tar file: {error}")) from error
        except OSError as error:
            raise FindingError(self._unreadable(error)) from error
        except (tarfile.TarError, ValueError, OverflowError) as error:
            raise FindingError(self._not_oci(f"it cannot be read as a tar file: {error}")) from error
        if not self._ends_at(end):
            raise FindingError(self._truncated())
        # What `docker save` writes has links in it; that it is no OCI archive says more.
        if "oci-layout" not in members and "manifest.json" in members:
            raise FindingError(self._docker_archive())
        if odd:
            raise FindingError(self._unsafe(odd[0]))
        return members

    def _ends_at(self, end: int) -> bool:
        """A tar ends with zero blocks; tarfile is content with any end of the file, or with a header it cannot read."""
        self._file.seek(end)
        return self._file.read(tarfile.BLOCKSIZE) == b"\0" * tarfile.BLOCKSIZE

    def _read_index(self) -> list[Descriptor]:
        if "index.json" not in self._members or "oci-layout" not in self._members:
            missing = "index.json" if "index.json" not in self._members else "oci-layout"
            raise FindingError(self._not_oci(f"it has no {missing}"))
        member = self._members["index.json"]
        if member.size > MAX_DOCUMENT:
            raise FindingError(self._not_oci(f"its index.json has {member.size} bytes"))
        document = self._parse(self._read(member), "index.json")
        return self._descriptors(document, "manifests", "index.json")

    # -- following the descriptors ------------------------------------------------------------------------------

    def _find(
        self, digest: str, top: list[Descriptor], seen: dict[str, Descriptor], documents: dict[str, bytes]
    ) -> Descriptor | None:
        """The descriptor with that digest, the outermost first. C(seen) gets all that was looked at."""
        waiting = list(top)
        while waiting:
            descriptor = waiting.pop(0)
            if descriptor.digest in seen:
                continue
            seen[descriptor.digest] = descriptor
            if descriptor.digest == digest:
                self._check_type(descriptor)
                return descriptor
            if descriptor.media_type in INDEX_TYPES and descriptor.member in self._members:
                document = self._document(descriptor, documents)
                waiting.extend(self._descriptors(document, "manifests", descriptor.digest))
        return None

    def _collect(self, target: Descriptor, documents: dict[str, bytes]) -> dict[str, Descriptor]:
        """The target and all that it refers to, by digest."""
        blobs: dict[str, Descriptor] = {}
        waiting = [target]
        while waiting:
            descriptor = waiting.pop()
            self._check_type(descriptor)
            if not self._add(descriptor, blobs):
                continue
            document = self._document(descriptor, documents)
            if descriptor.media_type in INDEX_TYPES:
                waiting.extend(self._descriptors(document, "manifests", descriptor.digest))
            else:
                for leaf in self._manifest_children(descriptor, document):
                    self._add(leaf, blobs)
        return blobs

    def _add(self, descriptor: Descriptor, blobs: dict[str, Descriptor]) -> bool:
        """Notes a blob that must be there; False when it is noted already."""
        self._present(descriptor)
        known = blobs.setdefault(descriptor.digest, descriptor)
        return known is descriptor

    def _manifest_children(self, descriptor: Descriptor, document: dict[str, Any]) -> list[Descriptor]:
        config = self._descriptors({"config": [document.get("config")]}, "config", descriptor.digest)
        layers = self._descriptors(document, "layers", descriptor.digest)
        # Attestations (platform unknown/unknown) are manifests whose layers are not file systems; nobody runs them.
        if not descriptor.platform.startswith("unknown/"):
            for layer in layers:
                if not LAYER_TYPE.fullmatch(layer.media_type):
                    raise FindingError(self._wrong_type(layer, f"a layer of {descriptor.digest}"))
        return config + layers

    def _document(self, descriptor: Descriptor, documents: dict[str, bytes]) -> dict[str, Any]:
        """The index or manifest behind a descriptor, with its digest, size and type checked."""
        if descriptor.digest not in documents:
            self._present(descriptor)
            if descriptor.size > MAX_DOCUMENT:
                raise FindingError(self._corrupt(descriptor, f"a manifest of {descriptor.size} bytes is not plausible"))
            text = self._read(self._members[descriptor.member])
            if _sha256(text) != descriptor.digest:
                raise FindingError(self._corrupt(descriptor, f"its content has the digest {_sha256(text)}"))
            documents[descriptor.digest] = text
        document = self._parse(documents[descriptor.digest], descriptor.digest)
        self._check_shape(descriptor, document)
        return document

    def _check_type(self, descriptor: Descriptor) -> None:
        if descriptor.media_type not in INDEX_TYPES + MANIFEST_TYPES:
            raise FindingError(self._wrong_type(descriptor, "an image"))

    def _check_shape(self, descriptor: Descriptor, document: dict[str, Any]) -> None:
        """A document must be what its descriptor says: one that is both index and manifest reads differently to different
        programs (CVE-2021-41190)."""
        own_type = document.get("mediaType", descriptor.media_type)
        wanted, forbidden = (
            ("manifests", ("layers", "config")) if descriptor.media_type in INDEX_TYPES else ("layers", ("manifests",))
        )
        if own_type != descriptor.media_type or wanted not in document or any(key in document for key in forbidden):
            raise FindingError(
                self._wrong_type(descriptor, f"a document that says {own_type} and holds {', '.join(sorted(document))}")
            )

    def _descriptors(self, document: dict[str, Any], key: str, owner: str) -> list[Descriptor]:
        entries = document.get(key)
        if not isinstance(entries, list):
            raise FindingError(self._not_oci(f"{owner} has no list of {key}"))
        return [self._descriptor(entry, owner) for entry in entries]

    def _descriptor(self, entry: Any, owner: str) -> Descriptor:
        if not isinstance(entry, dict):
            raise FindingError(self._not_oci(f"{owner} holds a descriptor that is no dictionary"))
        digest, size = entry.get("digest"), entry.get("size")
        if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
            raise FindingError(self._not_oci(f"{owner} holds a descriptor with the digest {digest!r}"))
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise FindingError(self._not_oci(f"{owner} gives {digest} the size {size!r}"))
        platform = entry.get("platform")
        if not isinstance(platform, dict):
            platform = {}
        label = "/".join(str(platform[part]) for part in ("os", "architecture", "variant") if platform.get(part))
        return Descriptor(media_type=str(entry.get("mediaType", "")), digest=digest, size=size, platform=label)

    def _parse(self, text: bytes, name: str) -> dict[str, Any]:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FindingError(self._not_oci(f"{name} is not JSON")) from error
        if not isinstance(document, dict):
            raise FindingError(self._not_oci(f"{name} is not a JSON object"))
        return document

    # -- reading ------------------------------------------------------------------------------------------------

    def _present(self, descriptor: Descriptor) -> None:
        member = self._members.get(descriptor.member)
        if member is None:
            platform = f" ({descriptor.platform})" if descriptor.platform else ""
            raise FindingError(
                self._finding(
                    "image_blob_missing",
                    f"The blob {descriptor.digest}{platform} of the image is not in the archive.",
                    "Make the archive again; an index is complete only with `skopeo copy --all`, else pin the digest of one platform's manifest.",
                )
            )
        if member.size != descriptor.size:
            raise FindingError(
                self._corrupt(descriptor, f"it has {member.size} bytes, its descriptor says {descriptor.size}")
            )

    def _in_file_order(self, blobs: dict[str, Descriptor]) -> list[Descriptor]:
        return sorted(blobs.values(), key=lambda blob: self._members[blob.member].offset)

    def _verify_blob(self, blob: Descriptor, sink: BlobSink | None) -> None:
        checksum = hashlib.sha256()
        if sink is not None:
            sink.begin(blob)
        for chunk in self._chunks(self._members[blob.member]):
            checksum.update(chunk)
            if sink is not None:
                sink.write(chunk)
        digest = f"sha256:{checksum.hexdigest()}"
        if digest != blob.digest:
            raise FindingError(self._corrupt(blob, f"its content has the digest {digest}"))
        if sink is not None:
            sink.end(blob)

    def _chunks(self, member: Member) -> Iterator[bytes]:
        self._file.seek(member.offset)
        left = member.size
        while left:
            try:
                chunk = self._file.read(min(CHUNK, left))
            except OSError as error:
                raise FindingError(self._unreadable(error)) from error
            if not chunk:
                raise FindingError(self._truncated())
            left -= len(chunk)
            yield chunk

    def _read(self, member: Member) -> bytes:
        return b"".join(self._chunks(member))

    # -- findings -----------------------------------------------------------------------------------------------

    def _finding(self, code: str, message: str, fix: str, why: str = "") -> Finding:
        return Finding(code=code, severity="error", message=message, fix=fix, where=self.where, why=why)

    def _unreadable(self, error: OSError) -> Finding:
        return self._finding(
            "image_archive_missing",
            f"The archive cannot be read: {error.strerror or error}.",
            "Correct the archive of the image in images_list, or copy the file there.",
        )

    def _not_oci(self, reason: str) -> Finding:
        return self._finding(
            "image_archive_not_oci",
            f"The file is not an OCI image archive: {reason}.",
            f"Make one: {copy_command()}",
        )

    def _docker_archive(self) -> Finding:
        return self._finding(
            "image_archive_docker",
            "The file was made by `docker save` (or `podman save`): it does not hold the registry's manifest.",
            f"Make an OCI archive that keeps digests: {copy_command()}",
            why="containerd would make up a manifest, and its digest could not be the registry's",
        )

    def _truncated(self) -> Finding:
        return self._finding(
            "image_archive_truncated",
            f"The archive ends in the middle of something, at {self.file_size} bytes: it was cut short.",
            "Copy it again, and compare the size with the source.",
        )

    def _unsafe(self, reason: str) -> Finding:
        return self._finding(
            "image_archive_unsafe",
            f"The archive is refused: {reason}.",
            f"No tool that writes image archives does this; find out where the file comes from, then make it again: {copy_command()}",
        )

    def _corrupt(self, blob: Descriptor, reason: str) -> Finding:
        return self._finding(
            "image_blob_corrupt",
            f"The blob {blob.digest} is damaged: {reason}.",
            "Copy the archive again, or make it again; the image's digest stays the same.",
        )

    def _wrong_type(self, descriptor: Descriptor, what: str) -> Finding:
        return self._finding(
            "image_media_type",
            f"{descriptor.digest} is {what}, and its media type {descriptor.media_type or '(none)'!r} does not fit that.",
            f"Make the archive from the registry's image: {copy_command()}",
        )

    def _mismatch(self, reference: ImageReference, seen: dict[str, Descriptor]) -> Finding:
        shown = [_describe(descriptor) for descriptor in seen.values()][:MAX_SHOWN]
        more = f" and {len(seen) - MAX_SHOWN} more" if len(seen) > MAX_SHOWN else ""
        held = (", ".join(shown) or "no image") + more
        docker = "manifest.json" in self._members
        return self._finding(
            "image_digest_mismatch",
            f"{reference} is wanted, but the archive holds {held}.",
            f"If the archive is the right one, correct the digest in the image's name (images_list), else make the archive again: {copy_command(reference)}",
            why="it was made by `docker save`, which does not keep the registry's digests" if docker else "",
        )


class BlobSink:
    """Takes a verified image's bytes as they pass: an uncompressed tar with one image under the names CRI looks up.

    The index, without which nothing gets a name, is written by C(finish) only, when all blobs were right.
    """

    def __init__(self, stream: BinaryIO, reference: ImageReference) -> None:
        self._stream = stream
        self._reference = reference
        self._write_file("oci-layout", _LAYOUT)

    def begin(self, blob: Descriptor) -> None:
        self._stream.write(_header(blob.member, blob.size))

    def write(self, chunk: bytes) -> None:
        self._stream.write(chunk)

    def end(self, blob: Descriptor) -> None:
        self._stream.write(_padding(blob.size))

    def finish(self, target: Descriptor) -> None:
        descriptor: dict[str, Any] = {"mediaType": target.media_type, "digest": target.digest, "size": target.size}
        if self._reference.tag:
            descriptor["annotations"] = {_IMAGE_NAME: self._reference.tagged_name, _REF_NAME: self._reference.tag}
        index = {"schemaVersion": 2, "mediaType": INDEX_TYPES[0], "manifests": [descriptor]}
        self._write_file("index.json", json.dumps(index).encode())
        self._stream.write(b"\0" * (2 * tarfile.BLOCKSIZE))
        self._stream.flush()

    def _write_file(self, name: str, content: bytes) -> None:
        self._stream.write(_header(name, len(content)) + content + _padding(len(content)))


def copy_command(reference: ImageReference | None = None) -> str:
    """The skopeo command that makes an archive which keeps the registry's digests."""
    source = reference.lookup_name if reference else "REGISTRY/PATH@sha256:DIGEST"
    name = (reference.tagged_name or reference.repository) if reference else "REGISTRY/PATH:TAG"
    return f"`skopeo copy --all --preserve-digests docker://{source} oci-archive:FILE.tar:{name}`"


def _plain_name(info: tarfile.TarInfo) -> str:
    name = info.name
    while name.startswith("./"):
        name = name[2:]
    return name


def _oddity(info: tarfile.TarInfo, name: str) -> str:
    """Why a member has no place in an image layout; empty for plain files and folders."""
    if name.startswith("/") or ".." in name.split("/") or "\\" in name or "\0" in name:
        return f"the member {info.name!r} points outside of the archive"
    if info.issym() or info.islnk():
        return f"the member {info.name!r} is a link to {info.linkname!r}"
    if not info.isdir() and (not info.isreg() or info.issparse() or info.size < 0):
        return f"the member {info.name!r} is not a plain file"
    return ""


def _describe(descriptor: Descriptor) -> str:
    kind = "index" if descriptor.media_type in INDEX_TYPES else descriptor.platform or "manifest"
    return f"{descriptor.digest} ({kind})"


def _sha256(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _header(name: str, size: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o644
    return info.tobuf(tarfile.GNU_FORMAT)  # sizes beyond 8 GiB in one block


def _padding(size: int) -> bytes:
    return b"\0" * (-size % tarfile.BLOCKSIZE)
