# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A few files of an image, read out of its layers while they pass: nothing is unpacked, nothing is run.

Each layer is a tar of what differs from those below (OCI image-spec, layer.md): C(.wh.NAME) takes NAME of the lower layers away,
C(.wh..wh..opq) all that they had in its folder. Links count as a runtime's unpacking has them: absolute ones begin at the image's root.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import posixpath
import shutil
import subprocess
import tarfile
import threading
import zlib
from dataclasses import dataclass
from typing import Any, BinaryIO, Callable, ContextManager, Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

#: Of one file. What is larger is noted without its content.
MOST_BYTES = 4 << 20
#: Of all files that are kept; what is looked for is a handful of 100 KB each, and one C library.
MOST_KEPT = 64 << 20
MOST_LINKS = 1 << 20
_BUFFER = 1 << 18
_HOPS = 40
PROGRAMS = "/usr/local/bin:/usr/bin:/bin"
_WHITEOUT, _OPAQUE = ".wh.", ".wh..wh..opq"
_DAMAGE = (tarfile.TarError, zlib.error, OSError, EOFError, ValueError, OverflowError)

#: Whether a file of that path, without a leading slash, is kept with its content.
Wanted = Callable[[str], bool]
#: Opens a layer's blob, as it is stored, in pieces.
Layer = Callable[[], ContextManager[Iterable[bytes]]]


@dataclass(frozen=True)
class File:
    """A regular file; C(content) is None where it is larger than MOST_BYTES. C(layer) counts from the lowest."""

    content: Optional[bytes]
    layer: int


@dataclass(frozen=True)
class Link:
    """A symbolic link, with its target as it is written."""

    target: str
    layer: int


#: Name -> File, Link or Folder.
Folder = Dict[str, Any]


class Tree:
    """What is kept of an image's file system: all links, and the wanted files with the folders that lead to them."""

    def __init__(self) -> None:
        self._root: Folder = {}

    def find(self, path: str) -> Tuple[str, Optional[File]]:
        """The real path (absolute) behind links, and the file there; None where there is none, or one that was not wanted."""
        folder, name = self._walk(_parts(path))
        real = "/" + posixpath.join(*folder, name)
        node = self._at(folder).get(name)
        return real, node if isinstance(node, File) else None

    def names(self, path: str) -> List[str]:
        """What is kept in a folder."""
        folder, name = self._walk(_parts(path))
        node = self._at(folder).get(name)
        return sorted(node) if isinstance(node, dict) else []

    def put(self, parts: List[str], node: Union[File, Link]) -> None:
        folder = self._folder(parts[:-1], make=True)
        if folder is not None:
            folder[parts[-1]] = node

    def drop(self, parts: List[str]) -> None:
        """Something else that is not kept is here now."""
        folder = self._folder(parts[:-1])
        if folder is not None:
            folder.pop(parts[-1], None)

    def become_folder(self, parts: List[str]) -> None:
        """A folder here replaces a file or a link; one that is here already stays."""
        folder = self._folder(parts[:-1])
        if folder is not None and not isinstance(folder.get(parts[-1]), dict):
            folder.pop(parts[-1], None)

    def hide(self, parts: List[str], layer: int, itself: bool) -> None:
        """Take away what layers below C(layer) have at a path, or (not C(itself)) in that folder."""
        folder = self._folder(parts if not itself else parts[:-1])
        if folder is not None:
            for name in [parts[-1]] if itself else list(folder):
                if name in folder and not _prune(folder[name], layer):
                    del folder[name]

    def _folder(self, parts: List[str], make: bool = False) -> Optional[Folder]:
        """The folder at a path, links followed; None where there is none."""
        if not parts:
            return self._root
        above, name = self._walk(parts)
        folder = self._at(above, make)
        node = folder.get(name)
        if not isinstance(node, dict):
            if not make:
                return None
            node = folder[name] = {}
        return node

    def _at(self, parts: Iterable[str], make: bool = False) -> Folder:
        """The folder at a path without links."""
        folder = self._root
        for part in parts:
            node = folder.get(part)
            if not isinstance(node, dict):
                node = {}
                if make:
                    folder[part] = node
            folder = node
        return folder

    def _walk(self, parts: List[str]) -> Tuple[List[str], str]:
        """Folder and name of what a path leads to. A loop of links ends where it was noticed."""
        waiting, real, hops = list(reversed(parts)), [], 0  # type: Tuple[List[str], List[str], int]
        while waiting:
            part = waiting.pop()
            if part == "..":
                real = real[:-1]
                continue
            node = self._at(real).get(part)
            if isinstance(node, Link) and hops < _HOPS:
                hops += 1
                if node.target.startswith("/"):
                    real = []
                waiting.extend(reversed(_parts(node.target)))
            else:
                real.append(part)
        return real[:-1], real[-1] if real else ""


def read(layers: Iterable[Layer], wanted: Wanted, where: str = "") -> Tree:
    """The tree that the layers, lowest first, make. Raises FindingError: image_layer_damaged, image_zstd_missing, image_tree_too_large."""
    tree = Tree()
    kept = links = 0
    for number, layer in enumerate(layers):
        try:
            with layer() as blob, _unpacked(blob, where) as stream:
                for info, file in _members(stream, wanted, number):
                    _apply(tree, info, file, number)
                    kept += len(file.content or b"") if file else 0
                    links += info.issym()
                    if kept > MOST_KEPT or links > MOST_LINKS:
                        raise FindingError(_too_large(where))
        except _DAMAGE as error:
            raise FindingError(_damaged(number, error, where)) from error
    return tree


def _members(stream: BinaryIO, wanted: Wanted, layer: int) -> Iterator[Tuple[tarfile.TarInfo, Optional[File]]]:
    with tarfile.open(fileobj=stream, mode="r|", bufsize=_BUFFER) as tar:
        while True:
            info = tar.next()
            if info is None:
                return
            file = None
            if info.isreg() and wanted("/".join(_parts(info.name))):
                content = tar.extractfile(info) if info.size <= MOST_BYTES else None
                file = File(content.read() if content else None, layer)
            yield info, file
            tar.members.clear()  # tarfile remembers every header; a layer can have a million


def _apply(tree: Tree, info: tarfile.TarInfo, file: Optional[File], layer: int) -> None:
    parts = _parts(info.name)
    if not parts or ".." in parts:
        return  # a runtime refuses what points outside of the image
    name = parts[-1]
    if name == _OPAQUE:
        tree.hide(parts[:-1], layer, itself=False)
    elif name.startswith(_WHITEOUT):
        tree.hide([*parts[:-1], name[len(_WHITEOUT) :]], layer, itself=True)
    elif info.isdir():
        tree.become_folder(parts)
    elif info.issym():
        tree.put(parts, Link(info.linkname, layer))
    elif info.islnk() and (other := tree.find(info.linkname)[1]):
        tree.put(parts, File(other.content, layer))
    elif file:
        tree.put(parts, file)
    else:
        tree.drop(parts)


def _prune(node: Union[File, Link, Folder], layer: int) -> bool:
    """Whether something of this layer itself is left; what is of lower ones is taken out."""
    if not isinstance(node, dict):
        return node.layer >= layer
    for name in list(node):
        if not _prune(node[name], layer):
            del node[name]
    return bool(node)


def _parts(path: str) -> List[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


@contextlib.contextmanager
def _unpacked(blob: Iterable[bytes], where: str) -> Iterator[BinaryIO]:
    """The tar in a blob, by how it begins: media types are not always true."""
    pieces = iter(blob)
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= 4:
            break
    whole = itertools.chain([head], pieces)
    if head.startswith(b"\x1f\x8b"):
        with gzip.GzipFile(fileobj=_Pieces(whole)) as stream:  # type: ignore[call-overload]
            yield stream
    elif head.startswith(b"\x28\xb5\x2f\xfd"):
        with _zstd(whole, where) as stream:
            yield stream
    else:
        yield _Pieces(whole)  # type: ignore[misc]


class _Pieces:
    """Pieces of a file, as a file that is read from its beginning to its end."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self._piece, self._at = pieces, b"", 0

    def read(self, size: int) -> bytes:
        """At most C(size) bytes; none at the end."""
        while self._at >= len(self._piece):
            try:
                self._piece, self._at = next(self._pieces), 0
            except StopIteration:
                return b""
        found = self._piece[self._at : self._at + size]
        self._at += len(found)
        return found


@contextlib.contextmanager
def _zstd(blob: Iterator[bytes], where: str) -> Iterator[BinaryIO]:
    """Python learns zstd with 3.14; until then it is a program."""
    program = shutil.which("zstd", path=PROGRAMS)
    if program is None:
        raise FindingError(_no_zstd(where))
    command = [program, "-dcq"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        feeder = threading.Thread(target=_feed, args=(blob, process.stdin), daemon=True)
        feeder.start()
        try:
            yield process.stdout  # type: ignore[misc]
            while process.stdout.read(_BUFFER):  # type: ignore[union-attr]
                pass  # the zeros after the tar's end
            if process.wait():
                raise EOFError("zstd cannot unpack it")
        finally:
            process.kill()
            feeder.join()


def _feed(blob: Iterator[bytes], stdin: BinaryIO) -> None:
    # What is cut short here, zstd notices.
    with contextlib.suppress(OSError, FindingError), stdin:
        for piece in blob:
            stdin.write(piece)


def _no_zstd(where: str) -> Finding:
    return Finding(
        "image_zstd_missing",
        "error",
        "a layer of the image is compressed with zstd, and the program zstd is not there",
        "apt-get install zstd (dnf install zstd)",
        where,
    )


def _damaged(number: int, error: BaseException, where: str) -> Finding:
    said = " ".join(str(error).split()) or type(error).__name__
    return Finding(
        "image_layer_damaged",
        "error",
        f"layer {number + 1} of the image cannot be read: {said}",
        "make the archive again, or remove and import the image again (playbooks/images.yml)",
        where,
    )


def _too_large(where: str) -> Finding:
    return Finding(
        "image_tree_too_large",
        "error",
        f"the image has more than {MOST_KEPT >> 20} MiB of RDMA libraries, or more than {MOST_LINKS} links",
        "find out where the image comes from; set libionic_check_image to false to go on without this check",
        where,
    )
