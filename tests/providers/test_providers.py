# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The real provider libraries of Debian bookworm and sid: each gives a range, or says why not."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.verbs_abi import library, suffixes
from ansible_collections.infera.baremetal.plugins.plugin_utils.elf import (
    ANY_ABI,
    LibraryError,
    read_libibverbs,
    read_provider,
)
from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import report
from ansible_collections.infera.baremetal.tests.lab.infera_lab.build import Build, ensure
from ansible_collections.infera.baremetal.tests.lab.infera_lab.shell import LabError

FETCH = Path(__file__).with_name("fetch")
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "infera-lab"
FOLDER = "usr/lib/x86_64-linux-gnu"
# From rdma-core's sources: the VERBS_DRIVER's match_min_abi_version and match_max_abi_version.
RANGES = {
    "bnxt_re": (1, 1),
    "cxgb4": (0, ANY_ABI),
    "efa": (1, 1),
    "erdma": (0, 1),
    "hfi1verbs": (0, ANY_ABI),
    "hns": (0, ANY_ABI),
    "ionic": (1, 1),
    "ipathverbs": (0, ANY_ABI),
    "irdma": (0, 5),
    "mana": (1, 1),
    "mlx4": (2, 4),
    "mlx5": (1, 1),
    "mthca": (0, 1),
    "ocrdma": (2, 2),
    "qedr": (8, 8),
    "rxe": (1, 2),
    "siw": (1, 1),
}
COUNTS = {"bookworm": 17, "sid": 18}
SUFFIX = re.compile(r"lib(.+)-rdmav(\d+)\.so")


@pytest.fixture(name="packages", scope="module")
def fixture_packages() -> Path:
    key = hashlib.sha256(FETCH.read_bytes()).hexdigest()[:12]
    build = Build("Debian's RDMA libraries", "providers", key, "20 s", CACHE, ("timeout", "300", str(FETCH), "{out}"))
    try:
        ensure([build], print)
    except LabError as error:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"providers: {error}")
    return build.directory


def providers(packages: Path, suite: str) -> dict[str, Path]:
    files = {
        SUFFIX.fullmatch(path.name): path for path in (packages / suite / FOLDER / "libibverbs").glob("*-rdmav*.so")
    }
    return {match[1]: path for match, path in files.items() if match}


@pytest.mark.parametrize("suite", COUNTS)
def test_every_provider_gives_its_range(packages: Path, suite: str) -> None:
    found = providers(packages, suite)
    # It registers as pvrdma: its file's name is not its own.
    pvrdma = found.pop("vmw_pvrdma")

    ranges = {name: read_provider(path.read_bytes(), name) for name, path in found.items()}

    assert len(found) + 1 == COUNTS[suite]
    assert {name: (each.min_abi, each.max_abi) for name, each in ranges.items()} == {
        name: RANGES[name] for name in found
    }
    assert read_provider(pvrdma.read_bytes(), "pvrdma").min_abi >= 0
    with pytest.raises(LibraryError, match="does not have the name 'vmw_pvrdma'"):
        read_provider(pvrdma.read_bytes(), "vmw_pvrdma")


@pytest.mark.parametrize("suite", COUNTS)
def test_providers_and_libibverbs_of_one_release_agree(packages: Path, suite: str) -> None:
    loader = read_libibverbs((packages / suite / FOLDER / "libibverbs.so.1").read_bytes())

    for name, path in providers(packages, suite).items():
        if name != "vmw_pvrdma":
            assert read_provider(path.read_bytes(), name).private_abi in loader.private_abis
        assert f"-rdmav{loader.suffix}.so" in path.name


def told(packages: Path, abi: int, suite: str = "sid", loader: str = "sid") -> dict[str, Any]:
    root = str(packages / suite)
    return {
        "kernel": {"abi": abi, "devices": [{"name": "ionic_0", "uverbs": "uverbs0", "abi": abi}]},
        "provider": library("", root, "ionic"),
        "libibverbs": library("", str(packages / loader)),
        "suffixes": suffixes(root, "ionic"),
        "driver_files": ["/etc/libibverbs.d/ionic.driver"],
    }


def test_libionic_of_sid_meets_the_in_tree_kernel(packages: Path) -> None:
    result = report(told(packages, 1), "ionic")

    assert (result["compatible"], result["findings"]) == (True, [])
    assert result["provider"]["soname"] == "libionic.so.1"


def test_a_kernel_at_4_and_libionic_at_1_and_the_other_way_round(packages: Path) -> None:
    newer_kernel = report(told(packages, 4), "ionic")["findings"][0]["message"]
    # The same library with its range made 4 to 4, as AMD's of bundle 1.117.1: only these eight bytes differ.
    other = told(packages, 1)
    data = base64.b64decode(other["provider"]["content"])
    place = [match.start() for match in re.finditer(rb"\x01\0\0\0\x01\0\0\0", data)]
    patched = [data[:at] + b"\x04\0\0\0\x04\0\0\0" + data[at + 8 :] for at in place]
    fitting = [each for each in patched if read_provider(each, "ionic").max_abi == 4]
    other["provider"]["content"] = base64.b64encode(fitting[0]).decode()
    newer_library = report(other, "ionic")["findings"][0]["message"]

    assert "driver speaks ABI 4" in newer_kernel and "speaks 1 to 1" in newer_kernel
    assert "driver speaks ABI 1" in newer_library and "speaks 4 to 4" in newer_library


def test_a_provider_of_sid_is_not_loaded_by_the_libibverbs_of_bookworm(packages: Path) -> None:
    result = report(told(packages, 1, loader="bookworm"), "ionic")

    assert [finding["code"] for finding in result["findings"]] == ["verbs_private_abi", "verbs_suffix"]


def test_a_library_cut_anywhere_is_an_error_and_never_a_traceback(packages: Path) -> None:
    data = providers(packages, "sid")["ionic"].read_bytes()

    for length in range(0, len(data), 1009):
        with pytest.raises(LibraryError):
            read_provider(data[:length], "ionic")
