# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Layers, made here as tars, one on top of the other: what a runtime would have unpacked is what is found."""

from __future__ import annotations

import contextlib
import gzip
import io
import shutil
import subprocess
import tarfile
from typing import Iterable, Union

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import image_layers
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_layers import Tree, read

# Path -> content; a text is a symbolic link's target, None a folder, a tuple the target of a hard link.
Entries = Iterable[tuple[str, Union[bytes, str, None, tuple[str]]]]


def layer(*entries: tuple[str, Union[bytes, str, None, tuple[str]]]) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name, what in entries:
            info = tarfile.TarInfo(name)
            if what is None:
                info.type = tarfile.DIRTYPE
            elif isinstance(what, str):
                info.type, info.linkname = tarfile.SYMTYPE, what
            elif isinstance(what, tuple):
                info.type, info.linkname = tarfile.LNKTYPE, what[0]
            else:
                info.size = len(what)
            tar.addfile(info, io.BytesIO(what if isinstance(what, bytes) else b""))
    return content.getvalue()


def tree(*layers: bytes, piece: int = 1000) -> Tree:
    def opener(blob: bytes):
        return lambda: contextlib.nullcontext(blob[at : at + piece] for at in range(0, len(blob), piece))

    return read([opener(blob) for blob in layers], lambda path: path.rpartition("/")[2].startswith("lib"), "gpu1")


def content(found: Tree, path: str) -> Union[bytes, None]:
    _real, file = found.find(path)
    return file.content if file else None


def test_the_upper_layer_wins_and_what_is_not_wanted_is_not_kept() -> None:
    found = tree(layer(("usr/liba", b"old"), ("usr/other", b"x")), layer(("./usr/liba", b"new")))

    assert content(found, "/usr/liba") == b"new"
    assert found.names("/usr") == ["liba"]


@pytest.mark.parametrize(
    ("upper", "left"),
    [
        ([("usr/.wh.liba", b"")], ["sub"]),
        ([("usr/.wh.sub", b"")], ["liba"]),
        ([("usr/.wh..wh..opq", b"")], []),
        ([(".wh.usr", b"")], []),
        ([(".wh..wh..opq", b"")], []),
        # A whiteout takes away what is below, not what its own layer brings, wherever it stands in the tar.
        ([("usr/liba", b"mine"), ("usr/.wh..wh..opq", b"")], ["liba"]),
        ([("usr/.wh.liba", b""), ("usr/liba", b"mine")], ["liba", "sub"]),
        ([("usr/sub/libc", b"mine"), ("usr/.wh.sub", b"")], ["liba", "sub"]),
        # Something else in its place.
        ([("usr/liba", None)], ["sub"]),
        ([("usr/sub", b"a file now")], ["liba"]),
        ([("usr", b"a file now")], []),
        ([("usr/sub", None)], ["liba", "sub"]),
        (
            [("nothing/.wh.liba", b""), ("nothing/.wh..wh..opq", b""), ("../usr/liba", b"outside"), (".", None)],
            ["liba", "sub"],
        ),
    ],
)
def test_what_an_upper_layer_takes_away(upper: Entries, left: list[str]) -> None:
    assert tree(layer(("usr/liba", b"a"), ("usr/sub/libb", b"b")), layer(*upper)).names("/usr") == left


@pytest.mark.parametrize(
    ("entries", "path", "real"),
    [
        (
            [("usr/lib/libx.so.1", "libx.so.1.0"), ("usr/lib/libx.so.1.0", b"x")],
            "/usr/lib/libx.so.1",
            "/usr/lib/libx.so.1.0",
        ),
        (
            [("usr/lib/v/libx.so", "../libx.so.1.0"), ("usr/lib/libx.so.1.0", b"x")],
            "/usr/lib/v/libx.so",
            "/usr/lib/libx.so.1.0",
        ),
        ([("a/liby", "/opt/libx"), ("opt/libx", b"x")], "/a/liby", "/opt/libx"),
        ([("a/liby", "../../../../opt/libx"), ("opt/libx", b"x")], "/a/liby", "/opt/libx"),
        ([("lib", "usr/lib"), ("usr/lib/libx", b"x")], "/lib/libx", "/usr/lib/libx"),
        # A file that a layer has below a link goes where the link leads.
        ([("lib", "usr/lib"), ("lib/libx", b"x")], "/usr/lib/libx", "/usr/lib/libx"),
    ],
)
def test_links_are_followed_within_the_image(entries: Entries, path: str, real: str) -> None:
    found = tree(layer(*entries))

    assert (found.find(path)[0], content(found, path)) == (real, b"x")


def test_a_hard_link_keeps_what_it_led_to_when_its_target_is_replaced() -> None:
    found = tree(layer(("libx", b"old"), ("liby", ("libx",))), layer(("libx", b"new")))

    assert (content(found, "/libx"), content(found, "/liby")) == (b"new", b"old")


def test_links_that_lead_nowhere_or_in_a_circle_are_not_found() -> None:
    found = tree(layer(("liba", "libb"), ("libb", "liba"), ("libc", "/gone"), ("libd", ("gone",))))

    assert [content(found, path) for path in ("/liba", "/libc", "/libd", "/")] == [None] * 4


def test_a_file_that_is_too_large_is_noted_without_its_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_layers, "MOST_BYTES", 3)

    assert tree(layer(("libx", b"1234"))).find("/libx")[1] == image_layers.File(None, 0)


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
def test_gzip_and_plain_layers_come_in_pieces_of_any_size(piece: int) -> None:
    found = tree(gzip.compress(layer(("liba", b"a" * 3000))), layer(("libb", b"b" * 3000)), piece=piece)

    assert (content(found, "/liba"), content(found, "/libb")) == (b"a" * 3000, b"b" * 3000)


@pytest.mark.skipif(shutil.which("zstd") is None, reason="the program zstd is not installed")
def test_zstd_layers_are_unpacked_by_the_program_and_a_cut_one_is_damaged() -> None:
    packed = subprocess.run(
        ["zstd", "-qc"], input=layer(("liba", bytes(range(256)) * 99)), stdout=subprocess.PIPE, check=True
    )

    assert content(tree(packed.stdout), "/liba") == bytes(range(256)) * 99
    with pytest.raises(FindingError, match="image_layer_damaged"):
        tree(packed.stdout[:-20])


def test_without_the_program_zstd_the_finding_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_layers, "PROGRAMS", "/nonexistent")

    with pytest.raises(FindingError) as refused:
        tree(b"\x28\xb5\x2f\xfd....")
    (finding,) = refused.value.findings
    assert (finding.code, finding.where) == ("image_zstd_missing", "gpu1")
    assert "apt-get install zstd" in finding.fix


@pytest.mark.parametrize(
    "blob",
    [b"", b"no tar at all" * 99, gzip.compress(layer(("liba", b"a" * 3000)))[:-20], b"\x1f\x8bjunk"],
    ids=["empty", "text", "cut gzip", "no gzip"],
)
def test_a_damaged_layer_is_one_line_that_counts_it(blob: bytes) -> None:
    with pytest.raises(FindingError) as refused:
        tree(layer(("liba", b"a")), blob)
    (finding,) = refused.value.findings
    assert (finding.code, finding.where) == ("image_layer_damaged", "gpu1")
    assert finding.message.startswith("layer 2 of the image cannot be read: ") and "\n" not in finding.message


@pytest.mark.parametrize("limit", ["MOST_KEPT", "MOST_LINKS"])
def test_an_image_that_would_fill_the_memory_is_refused(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_layers, limit, 0)

    with pytest.raises(FindingError, match="image_tree_too_large"):
        tree(layer(("liba", b"a"), ("libb", "liba")))
