# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kernel, provider and libibverbs against each other, each side named."""

from __future__ import annotations

import base64
from typing import Any

import pytest

pytest.importorskip("elftools")

from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import report
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.tiny_elf import Tiny, libibverbs

PROVIDER, LIBIBVERBS = Tiny().build(), libibverbs()
PATH = "/usr/lib/x86_64-linux-gnu/libionic.so.1"


def sent(data: bytes, path: str = PATH) -> dict[str, Any]:
    return {"path": path, "real_path": path, "sha256": "0" * 64, "content": base64.b64encode(data).decode()}


def host(abi: Any = 1, provider: Any = PROVIDER, verbs: Any = LIBIBVERBS, **more: Any) -> dict[str, Any]:
    abis = abi if isinstance(abi, list) else [abi]
    devices = [
        {"name": f"ionic_{number}", "uverbs": f"uverbs{number}", "abi": each} for number, each in enumerate(abis)
    ]
    return {
        "kernel": {"abi": abi if not isinstance(abi, list) else None, "devices": devices if abi != [] else []},
        "provider": sent(provider) if isinstance(provider, bytes) else provider,
        "libibverbs": sent(verbs, "/usr/lib/libibverbs.so.1") if isinstance(verbs, bytes) else verbs,
        "suffixes": ["34"],
        "driver_files": ["/etc/libibverbs.d/ionic.driver"],
        **more,
    }


def codes(result: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["code"], finding["severity"]) for finding in result["findings"]]


def test_sides_that_meet_say_nothing_and_no_content_is_returned() -> None:
    result = report(host(), "ionic")

    assert (result["compatible"], result["findings"]) == (True, [])
    assert result["provider"]["min_abi"] == 1 and "content" not in result["provider"]
    assert result["libibverbs"]["suffix"] == "34"


@pytest.mark.parametrize(
    ("kernel", "library", "newer"),
    [(1, 4, "the library is the newer one"), (4, 1, "the kernel's driver is the newer one")],
)
def test_a_mismatch_names_each_sides_number_in_both_directions(kernel: int, library: int, newer: str) -> None:
    result = report(host(abi=kernel, provider=Tiny(abis=(library, library)).build()), "ionic")

    (finding,) = result["findings"]
    assert (result["compatible"], finding["code"]) == (False, "verbs_abi_mismatch")
    assert (
        finding["message"]
        == f"the kernel's ionic driver speaks ABI {kernel}, the library {PATH} speaks {library} to {library}"
    )
    assert newer in finding["why"] and "No RDMA devices found" in finding["why"]


def test_without_devices_nothing_has_to_match() -> None:
    result = report(host(abi=[], provider=Tiny(abis=(4, 4)).build()), "ionic")

    assert (result["compatible"], codes(result)) == (None, [("verbs_no_devices", "info")])


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (host(provider=None), [("verbs_provider_missing", "warning")]),
        (host(driver_files=[]), [("verbs_driver_file_missing", "warning")]),
        (host(verbs=None), [("verbs_libibverbs_missing", "info")]),
        (host(abi=[1, 4]), [("verbs_abi_mixed", "error"), ("verbs_abi_mismatch", "error")]),
        (host(abi=[1, None]), [("verbs_abi_unreadable", "warning")]),
        (host(provider=b"\x7fELF"), [("verbs_library_unreadable", "error")]),
        (host(verbs=b"junk"), [("verbs_library_unreadable", "error")]),
        (
            host(provider={"path": PATH, "real_path": PATH, "error": "Permission denied"}),
            [("verbs_library_unreadable", "error")],
        ),
        (
            host(verbs=libibverbs("65", "IBVERBS_PRIVATE_65")),
            [("verbs_private_abi", "error"), ("verbs_suffix", "error")],
        ),
        (host(verbs=libibverbs(machine=183)), [("verbs_architecture", "error")]),
        (host(suffixes=[]), [("verbs_suffix", "error")]),
    ],
)
def test_what_is_missing_or_does_not_load(told: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert codes(report(told, "ionic")) == expected


def test_a_library_that_takes_any_kernel_fits_every_one() -> None:
    assert report(host(abi=9, provider=Tiny(abis=(0, 0x7FFFFFFF)).build()), "ionic")["compatible"]
