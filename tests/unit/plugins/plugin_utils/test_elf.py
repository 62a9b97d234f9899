# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Providers and libibverbs, read from files that are written here by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("elftools")

from ansible_collections.infera.baremetal.plugins.plugin_utils.elf import (
    ANY_ABI,
    LibraryError,
    read_libibverbs,
    read_provider,
)
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.tiny_elf import Tiny, libibverbs

GOOD = Tiny().build()


def test_the_range_the_needs_and_the_name_of_a_provider() -> None:
    provider = read_provider(GOOD, "ionic")

    assert (provider.min_abi, provider.max_abi, provider.driver_name) == (1, 1, "ionic")
    assert (provider.private_abi, provider.glibc_required) == ("IBVERBS_PRIVATE_34", "2.34")
    assert (provider.soname, provider.machine) == ("libionic.so.1", "x86_64")


@pytest.mark.parametrize(
    ("tiny", "expected"),
    [
        (Tiny(abis=(4, 4)), (4, 4)),
        (Tiny(abis=(2, 4), relr=True), (2, 4)),
        # The linker lets a name be the tail of a longer string.
        (Tiny(before=b"lib"), (1, 1)),
        (Tiny(abis=(0, ANY_ABI)), (0, ANY_ABI)),
        (Tiny(machine=183), (1, 1)),
    ],
    ids=["rela", "relr", "tail", "any", "aarch64"],
)
def test_the_range_is_found_however_the_linker_laid_it_out(tiny: Tiny, expected: tuple[int, int]) -> None:
    provider = read_provider(tiny.build(), "ionic")

    assert (provider.min_abi, provider.max_abi) == expected


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "is empty"),
        (b"#!/bin/sh\n", "is no ELF file"),
        (GOOD[:40], "is truncated or damaged"),
        (GOOD[: len(GOOD) // 2], "is truncated or damaged"),
        (Tiny(machine=243).build(), "is for another architecture (RISCV, 64 bit)"),
        (Tiny(name=b"mlx5").build(), "does not have the name 'ionic': it is the provider of another driver"),
        (Tiny(table=False).build(), "has the name 'ionic', but no verbs_device_ops that begins with it"),
        (Tiny(abis=(9, 3)).build(), "has the name 'ionic', but no verbs_device_ops that begins with it"),
        (
            Tiny(structures=2).build(),
            "has 2 structures that could be the verbs_device_ops of 'ionic': [(1, 1), (2, 2)]",
        ),
    ],
)
def test_what_is_no_such_library_is_one_line(data: bytes, said: str) -> None:
    with pytest.raises(LibraryError) as caught:
        read_provider(data, "ionic")
    assert str(caught.value) == said


@pytest.mark.parametrize("length", range(64, len(GOOD), 97))
def test_a_file_that_ends_anywhere_is_an_error_or_a_provider_and_never_a_traceback(length: int) -> None:
    try:
        read_provider(GOOD[:length], "ionic")
    except LibraryError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("place", range(0, 300, 7))
def test_a_damaged_header_is_an_error_or_a_provider_and_never_a_traceback(place: int) -> None:
    data = bytearray(GOOD)
    data[place : place + 4] = b"\xff\xff\xff\xff"
    try:
        read_provider(bytes(data), "ionic")
    except LibraryError as error:
        assert "\n" not in str(error)


def test_what_a_libibverbs_offers() -> None:
    found = read_libibverbs(libibverbs("65", "IBVERBS_PRIVATE_65"))

    assert (found.private_abis, found.suffix, found.glibc_required) == (("IBVERBS_PRIVATE_65",), "65", "2.34")


def test_another_library_is_no_libibverbs() -> None:
    with pytest.raises(LibraryError, match="it is no libibverbs"):
        read_libibverbs(GOOD)
