# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kernel, provider and libibverbs against each other, each side named."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

pytest.importorskip("elftools")

from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import (
    image_report,
    image_verdict,
    report,
)
from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import (
    verdict as judge,
)
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


# -- the same in an image -------------------------------------------------------------------------------------------

LINK = "/usr/lib/x86_64-linux-gnu/libibverbs/libionic-rdmav{}.so"
REAL = "/usr/lib/x86_64-linux-gnu/libionic.so.1.0.54"


def image(
    provider: bytes | None = PROVIDER,
    verbs: bytes | None = LIBIBVERBS,
    suffix: str = "34",
    link: str = REAL,
    **more: Any,
) -> dict[str, Any]:
    """An image as image_libraries_info finds it: the provider under its two names, which are one file unless C(link) is another."""
    names = [(PATH, REAL), (LINK.format(suffix), link)] if provider is not None else []
    told = {
        "digest": "sha256:" + "e" * 64,
        "driver": "ionic",
        "libibverbs": sent(verbs, "/usr/lib/libibverbs.so.1") if verbs is not None else None,
        "providers": [{**sent(provider or b"", path), "real_path": real} for path, real in names],
        "driver_files": ["/etc/libibverbs.d/ionic.driver"],
        "glibc": "2.39",
        **more,
    }
    return image_report(told)


def verdict(told: dict[str, Any], seen: dict[str, Any] | None) -> tuple[str, list[tuple[str, str]]]:
    result = image_verdict(report(told, "ionic"), seen)
    return result["use"], codes(result)


OTHER = Tiny(abis=(4, 4)).build()
NEEDS_65 = Tiny(needs={"libibverbs.so.1": ["IBVERBS_PRIVATE_65"]}).build()
VERBS_65 = libibverbs("65", "IBVERBS_PRIVATE_65")
UNFIT = ("image_provider_unfit", "error")


def test_an_image_is_told_without_the_files_content() -> None:
    seen = image()

    assert "content" not in seen["libibverbs"] and "content" not in seen["providers"][0]
    assert (seen["libibverbs"]["suffix"], seen["providers"][1]["min_abi"]) == ("34", 1)
    assert image(provider=b"junk")["providers"][0]["error"] == "is no ELF file"


@pytest.mark.parametrize(
    ("told", "seen", "use", "expected"),
    [
        # The image brings what fits; what the host has matters to its own tools only.
        (host(), image(), "image", []),
        (host(provider=OTHER), image(), "image", [("verbs_abi_mismatch", "warning")]),
        (host(provider=None), image(), "image", [("verbs_provider_missing", "warning")]),
        (host(provider=b"junk"), image(), "image", [("verbs_library_unreadable", "warning")]),
        # The image's own does not fit the kernel, and the host's does.
        (host(), image(provider=OTHER), "host", []),
        (host(abi=4, provider=OTHER), image(), "host", []),
        (host(), image(provider=b"junk"), "host", []),
        # The host's provider is for the image's libibverbs, not for the host's.
        (
            host(provider=NEEDS_65),
            image(provider=OTHER, verbs=VERBS_65, suffix="65"),
            "host",
            [("verbs_private_abi", "warning")],
        ),
        # Neither.
        (host(provider=OTHER), image(provider=OTHER), "neither", [("verbs_abi_mismatch", "error"), UNFIT]),
        (host(provider=None), image(provider=OTHER), "neither", [("verbs_provider_missing", "warning"), UNFIT]),
        (host(provider=NEEDS_65, verbs=VERBS_65, suffixes=["65"]), image(provider=OTHER), "neither", [UNFIT]),
        (host(), image(provider=None), "neither", [UNFIT]),
        (host(), image(verbs=VERBS_65), "neither", [UNFIT]),
        (host(), image(provider=OTHER, link="/elsewhere.so"), "neither", [UNFIT]),
        (host(), image(provider=OTHER, glibc="2.31"), "neither", [UNFIT]),
        (host(), image(driver_files=[]), "neither", [UNFIT]),
        (host(), image(verbs=b"junk"), "neither", [UNFIT]),
        # Nothing to decide, or nothing to decide by.
        (host(abi=[]), image(provider=OTHER), "", [("verbs_no_devices", "info")]),
        (host(), None, "host", []),
        (host(provider=OTHER), None, "", [("verbs_abi_mismatch", "error")]),
        (host(), image(verbs=None), "host", [("image_libibverbs_missing", "warning")]),
    ],
)
def test_which_library_a_worker_uses(told: Any, seen: Any, use: str, expected: list[tuple[str, str]]) -> None:
    assert verdict(told, seen) == (use, expected)


@pytest.mark.parametrize(
    ("kernel", "inside", "host_has"),
    [(1, 4, 4), (4, 1, 1)],
)
def test_neither_names_kernel_image_and_host_with_their_numbers(kernel: int, inside: int, host_has: int) -> None:
    told = host(abi=kernel, provider=sent(Tiny(abis=(host_has, host_has)).build(), "/opt/libionic.so.1"))
    result = image_verdict(report(told, "ionic"), image(provider=Tiny(abis=(inside, inside)).build()))

    finding = result["findings"][-1]
    assert finding["message"] == (
        "no ionic library serves the engine's image here. "
        f"Its own: the kernel's ionic driver speaks ABI {kernel}, {LINK.format(34)} speaks {inside} to {inside}. "
        f"The host's: the kernel's ionic driver speaks ABI {kernel}, /opt/libionic.so.1 speaks {host_has} to {host_has}"
    )
    assert finding["fix"].startswith("on the host, install AMD's libionic1")
    assert "(IBVERBS_PRIVATE_34, glibc 2.39)" in finding["fix"]


@pytest.mark.parametrize(
    ("told", "seen", "said"),
    [
        (host(), image(provider=None), f"the image has no {PATH}, over which its start-up copies the mounted library"),
        (host(), image(provider=None), "its libibverbs looks for libionic-rdmav34.so, which it does not have"),
        (host(), image(provider=OTHER, link="/x.so"), f"is not a link to the {PATH} that is replaced"),
        (host(), image(provider=OTHER, glibc="2.31"), f"{PATH} needs glibc 2.34, the image has 2.31"),
        (host(), image(driver_files=[]), "no file in the image's /etc/libibverbs.d has a line 'driver ionic'"),
        (host(provider=None), image(provider=OTHER), "The host's: there is none that can be read"),
        (host(), image(provider=b"junk", glibc="2.3"), f"{LINK.format(34)} is no ELF file"),
        (host(), image(verbs=b"junk", provider=None), "Its own: /usr/lib/libibverbs.so.1 is no ELF file"),
        (
            host(),
            image(verbs=VERBS_65, suffix="65"),
            f"{PATH} needs IBVERBS_PRIVATE_34, /usr/lib/libibverbs.so.1 has IBVERBS_PRIVATE_65",
        ),
    ],
)
def test_neither_says_what_is_in_the_way(told: Any, seen: Any, said: str) -> None:
    assert said in image_verdict(report(told, "ionic"), seen)["findings"][-1]["message"]


def test_a_libibverbs_that_does_not_tell_which_name_it_looks_for_loads_the_one_that_is_there() -> None:
    seen = image()
    seen["libibverbs"]["suffix"] = ""

    assert verdict(host(), seen) == ("image", [])


def test_a_verdict_is_the_same_after_json() -> None:
    verbs = json.loads(json.dumps(report(host(), "ionic")))

    assert image_verdict(verbs, json.loads(json.dumps(image())))["use"] == "image"


UNREADABLE = {"code": "image_zstd_missing", "severity": "error", "message": "m", "fix": "f", "where": "gpu1"}


@pytest.mark.parametrize(
    ("told", "looked", "use", "expected"),
    [
        (host(), {"image": image()}, "image", []),
        (host(), {}, "host", []),
        (host(), {"skipped": True, "changed": False}, "host", []),
        (host(abi=[]), {"image": None}, "", [("verbs_no_devices", "info")]),
        (host(), {"image": None}, "host", [("image_libraries_unknown", "info")]),
        (host(), {"msg": "no room"}, "host", [("image_libraries_unknown", "info")]),
        (host(), {"msg": "x", "findings": [UNREADABLE]}, "host", [("image_zstd_missing", "warning")]),
    ],
)
def test_an_image_that_cannot_be_looked_into_stops_nobody(
    told: Any, looked: Any, use: str, expected: list[tuple[str, str]]
) -> None:
    result = judge(report(told, "ionic"), looked)

    assert (result["use"], codes(result)) == (use, expected)
