# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Writes small shared objects by hand, with only what a reader of providers looks at. They cannot be loaded.

Layouts: System V gABI, chapters 4 and 5; the version sections as in the Linux Standard Base.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

BASE = 0x1000  # Virtual address of the one segment; it begins with the file's offset 0x1000, too.
STRUCTURE = 0x1800  # Where verbs_device_ops stands.
TABLE = 0x1900  # Where its table of devices would stand.
SHT = {"strtab": 3, "rela": 4, "dynamic": 6, "relr": 19, "verdef": 0x6FFFFFFD, "verneed": 0x6FFFFFFE}


@dataclass
class Tiny:
    """C(name) is what the structure's first pointer points at; C(before) stands before it, without a NUL in between."""

    name: bytes = b"ionic"
    before: bytes = b"\0"
    abis: tuple[int, int] = (1, 1)
    relr: bool = False
    machine: int = 62
    structures: int = 1
    table: bool = True
    soname: str = "libionic.so.1"
    needs: dict[str, list[str]] = field(
        default_factory=lambda: {
            "libibverbs.so.1": ["IBVERBS_1.1", "IBVERBS_PRIVATE_34"],
            "libc.so.6": ["GLIBC_2.2.5", "GLIBC_2.34"],
        }
    )
    defines: tuple[str, ...] = ()
    text: bytes = b""

    def build(self) -> bytes:
        memory = bytearray(0x1000)
        name_at = BASE + 0x100 + len(self.before)
        memory[0x100 : 0x100 + len(self.before) + len(self.name) + 1] = self.before + self.name + b"\0"
        memory[0x200 : 0x200 + len(self.text)] = self.text
        places = {}
        for number in range(self.structures):
            at = STRUCTURE + number * 0x40
            places[at] = name_at
            if self.table:
                places[at + 16] = TABLE
            struct.pack_into("<II", memory, at - BASE + 8, self.abis[0] + number, self.abis[1] + number)
            if self.relr:
                struct.pack_into("<Q", memory, at - BASE, name_at)
                struct.pack_into("<Q", memory, at - BASE + 16, TABLE)
        strings = bytearray(b"\0")

        def string(text: str) -> int:
            strings.extend(text.encode() + b"\0")
            return len(strings) - len(text) - 1

        soname = string(self.soname)
        sections: list[tuple[str, int, bytes, int, int]] = []  # name, type, content, link, entry size
        if self.relr:
            # An address, which is even, and then a bitmap of the words after it: bit 2 stands for the one 16 bytes on.
            content = b"".join(
                struct.pack("<QQ", at, 1 | (1 << 2 if self.table else 0)) for at in places if at & 0x3F == 0
            )
            sections.append((".relr.dyn", SHT["relr"], content, 0, 8))
        else:
            relative = {62: 8, 183: 1027}.get(self.machine, 8)
            content = b"".join(struct.pack("<QQq", at, relative, target) for at, target in places.items())
            sections.append((".rela.dyn", SHT["rela"], content, 0, 24))
        sections.append((".gnu.version_r", SHT["verneed"], self._needs(string), 1, 0))
        if self.defines:
            sections.append((".gnu.version_d", SHT["verdef"], self._defines(string), 1, 0))
        sections.append((".dynamic", SHT["dynamic"], struct.pack("<qQqQ", 14, soname, 0, 0), 1, 16))
        counts = {".gnu.version_r": len(self.needs), ".gnu.version_d": len(self.defines)}
        return self._file(bytes(memory), [(".dynstr", SHT["strtab"], bytes(strings), 0, 0), *sections], counts)

    def _needs(self, string) -> bytes:
        content, listed = b"", list(self.needs.items())
        for position, (library, versions) in enumerate(listed):
            size = 16 + 16 * len(versions)
            following = size if position + 1 < len(listed) else 0
            content += struct.pack("<HHIII", 1, len(versions), string(library), 16, following)
            for number, version in enumerate(versions):
                content += struct.pack("<IHHII", 0, 0, 2, string(version), 16 if number + 1 < len(versions) else 0)
        return content

    def _defines(self, string) -> bytes:
        content = b""
        for number, version in enumerate(self.defines):
            following = 28 if number + 1 < len(self.defines) else 0
            content += struct.pack("<HHHHIII", 1, 0, number + 1, 1, 0, 20, following) + struct.pack(
                "<II", string(version), 0
            )
        return content

    def _file(self, memory: bytes, sections: list[tuple[str, int, bytes, int, int]], counts: dict[str, int]) -> bytes:
        names = b"\0" + b"".join(name.encode() + b"\0" for name, *_rest in sections) + b".shstrtab\0"
        body, headers = bytearray(0x1000) + memory, [bytes(64)]
        for name, kind, content, link, entry in [*sections, (".shstrtab", SHT["strtab"], names, 0, 0)]:
            body.extend(bytes(-len(body) % 8))
            headers.append(
                struct.pack(
                    "<IIQQQQIIQQ",
                    names.index(name.encode() + b"\0"),
                    kind,
                    0,
                    0,
                    len(body),
                    len(content),
                    link,
                    counts.get(name, 0),
                    8,
                    entry,
                )
            )
            body.extend(content)
        body.extend(bytes(-len(body) % 8))
        table_at = len(body)
        ident = b"\x7fELF\x02\x01\x01" + bytes(9)
        body[:64] = ident + struct.pack(
            "<HHIQQQIHHHHHH", 3, self.machine, 1, 0, 64, table_at, 0, 64, 56, 1, 64, len(headers), len(headers) - 1
        )
        body[64:120] = struct.pack("<IIQQQQQQ", 1, 6, BASE, BASE, BASE, len(memory), len(memory), 0x1000)
        return bytes(body) + b"".join(headers)


def libibverbs(suffix: str = "34", private: str = "IBVERBS_PRIVATE_34", machine: int = 62) -> bytes:
    """A libibverbs that looks for providers of that suffix."""
    return Tiny(
        name=b"verbs",
        soname="libibverbs.so.1",
        needs={"libc.so.6": ["GLIBC_2.34"]},
        defines=("libibverbs.so.1", "IBVERBS_1.0", private),
        text=f"%s-rdmav{suffix}.so".encode() + b"\0",
        machine=machine,
    ).build()
