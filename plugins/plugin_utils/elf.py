# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a verbs provider and a libibverbs demand of others, read from their files without loading them.

A provider's range of kernel ABIs stands in its C(struct verbs_device_ops) (rdma-core, libibverbs/driver.h): a pointer to the
driver's name, two u32 (minimum and maximum), a pointer to the table of devices. Symbols are stripped, so the structure is found by its
first pointer: the relative relocation that points at the name.
"""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass
from typing import Any, Iterator

try:
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection
    from elftools.elf.relocation import RelocationSection, RelrRelocationSection
except ImportError:  # The action says so before anything is read.
    HAS_ELFTOOLS = False
    ELFError = ValueError
else:
    HAS_ELFTOOLS = True

# R_<machine>_RELATIVE: the addend is the address that is stored.
_RELATIVE = {"EM_X86_64": 8, "EM_AARCH64": 1027}
_POINTER = 8
# Further than any driver has come: what is above is not an ABI, and the bytes are not the structure. Some take any (INT_MAX).
_HIGHEST_ABI = 1000
ANY_ABI = 0x7FFFFFFF
_PRIVATE = re.compile(r"IBVERBS_PRIVATE_(\d+)")
_GLIBC = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.\d+)?")
_SUFFIX = re.compile(rb"-rdmav(\d+)\.so")


class LibraryError(Exception):
    """The file is not what it should be; the message is one line, without the file's name."""


@dataclass(frozen=True)
class Provider:
    """A provider library. C(private_abi): the version of libibverbs it needs, such as C(IBVERBS_PRIVATE_34)."""

    driver_name: str
    min_abi: int
    max_abi: int
    soname: str
    private_abi: str
    glibc_required: str
    machine: str


@dataclass(frozen=True)
class Libibverbs:
    """A libibverbs. C(suffix): the number in the names of the providers that it looks for, as in C(libionic-rdmav34.so)."""

    private_abis: tuple[str, ...]
    suffix: str
    glibc_required: str
    machine: str


def read_provider(data: bytes, driver: str) -> Provider:
    """A provider from the file's bytes. C(driver) is the name it registers, such as C(ionic). Raises LibraryError."""
    with _Reading(data) as elf:
        low, high = _range(elf, driver)
        needed = dict(_needed(elf))
        private = [name for names in needed.values() for name in names if _PRIVATE.fullmatch(name)]
        return Provider(
            driver, low, high, _soname(elf), max(private, default="", key=_number), _glibc(needed), _machine(elf)
        )


def read_libibverbs(data: bytes) -> Libibverbs:
    """A libibverbs from the file's bytes. Raises LibraryError."""
    with _Reading(data) as elf:
        defined = [name for name in _defined(elf) if _PRIVATE.fullmatch(name)]
        if not defined:
            raise LibraryError("defines no IBVERBS_PRIVATE version: it is no libibverbs")
        suffixes = {match.decode() for match in _SUFFIX.findall(data)}
        suffix = suffixes.pop() if len(suffixes) == 1 else ""
        return Libibverbs(tuple(sorted(defined, key=_number)), suffix, _glibc(dict(_needed(elf))), _machine(elf))


class _Reading:
    """Opens the file, and makes one kind of error of all that a damaged one can cause."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __enter__(self) -> ELFFile:
        if self._data[:4] != b"\x7fELF":
            raise LibraryError("is no ELF file" if self._data else "is empty")
        try:
            elf = ELFFile(io.BytesIO(self._data))
            machine = elf["e_machine"]
            list(elf.iter_sections())
        except _DAMAGE as error:
            raise LibraryError("is truncated or damaged") from error
        if elf.elfclass != 64 or machine not in _RELATIVE or not elf.little_endian:
            raise LibraryError(f"is for another architecture ({str(machine).removeprefix('EM_')}, {elf.elfclass} bit)")
        return elf

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, _DAMAGE):
            raise LibraryError("is truncated or damaged") from error


_DAMAGE = (
    ELFError,
    struct.error,
    UnicodeDecodeError,
    IndexError,
    KeyError,
    ValueError,
    AttributeError,
    TypeError,
    OverflowError,
)


def _range(elf: ELFFile, driver: str) -> tuple[int, int]:
    names = set(_addresses(elf, driver.encode() + b"\0"))
    if not names:
        raise LibraryError(f"does not have the name {driver!r}: it is the provider of another driver")
    pointers = dict(_pointers(elf))
    found = {
        abis
        for place, target in pointers.items()
        if target in names and place + 2 * _POINTER in pointers and (abis := _abis(elf, place + _POINTER))
    }
    if not found:
        raise LibraryError(f"has the name {driver!r}, but no verbs_device_ops that begins with it")
    if len(found) > 1:
        raise LibraryError(
            f"has {len(found)} structures that could be the verbs_device_ops of {driver!r}: {sorted(found)}"
        )
    return found.pop()


def _abis(elf: ELFFile, address: int) -> tuple[int, int] | None:
    data = _bytes_at(elf, address, 8)
    if len(data) < 8:
        return None
    low, high = struct.unpack("<II", data)
    return (low, high) if low <= high and low <= _HIGHEST_ABI and (high <= _HIGHEST_ABI or high == ANY_ABI) else None


def _addresses(elf: ELFFile, text: bytes) -> Iterator[int]:
    """Where a text stands in memory. Nothing is asked of the byte before it: the linker merges tails of strings."""
    for segment in _loaded(elf):
        data = segment.data()
        position = data.find(text)
        while position >= 0:
            yield segment["p_vaddr"] + position
            position = data.find(text, position + 1)


def _pointers(elf: ELFFile) -> Iterator[tuple[int, int]]:
    """(place, address that is stored there) of each relative relocation."""
    relative = _RELATIVE[elf["e_machine"]]
    for section in elf.iter_sections():
        if isinstance(section, RelrRelocationSection):
            for relocation in section.iter_relocations():
                place = relocation["r_offset"]
                stored = _bytes_at(elf, place, _POINTER)
                if len(stored) == _POINTER:
                    yield place, struct.unpack("<Q", stored)[0]
        elif isinstance(section, RelocationSection) and section.is_RELA():
            for relocation in section.iter_relocations():
                if relocation["r_info_type"] == relative:
                    yield relocation["r_offset"], relocation["r_addend"]


def _bytes_at(elf: ELFFile, address: int, size: int) -> bytes:
    for segment in _loaded(elf):
        offset = address - segment["p_vaddr"]
        if 0 <= offset <= segment["p_filesz"] - size:
            elf.stream.seek(segment["p_offset"] + offset)
            return elf.stream.read(size)
    return b""


def _loaded(elf: ELFFile) -> list[Any]:
    return [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]


def _needed(elf: ELFFile) -> Iterator[tuple[str, list[str]]]:
    """Library -> versions of it that are needed."""
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for library, versions in section.iter_versions():
                yield library.name, [version.name for version in versions]


def _defined(elf: ELFFile) -> Iterator[str]:
    for section in elf.iter_sections():
        if isinstance(section, GNUVerDefSection):
            for _definition, names in section.iter_versions():
                yield from [name.name for name in names][:1]


def _soname(elf: ELFFile) -> str:
    section = elf.get_section_by_name(".dynamic")
    tags = section.iter_tags("DT_SONAME") if section else ()
    return next((str(tag.soname) for tag in tags), "")


def _glibc(needed: dict[str, list[str]]) -> str:
    """The highest GLIBC version of all that are needed, such as C(2.34); empty where none is."""
    matches = [_GLIBC.fullmatch(name) for names in needed.values() for name in names]
    highest = max(((int(match[1]), int(match[2])) for match in matches if match), default=None)
    return f"{highest[0]}.{highest[1]}" if highest else ""


def _machine(elf: ELFFile) -> str:
    return {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}[elf["e_machine"]]


def _number(private: str) -> int:
    match = _PRIVATE.fullmatch(private)
    return int(match[1]) if match else -1
