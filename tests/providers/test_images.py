# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Debian's real libraries as the content of an image: what its workers would load, and whether a host's library could replace it."""

from __future__ import annotations

import gzip
import io
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.image_libraries import of_archive
from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import image_report, image_verdict, report
from ansible_collections.infera.baremetal.tests.providers import test_providers
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_oci_archive import Layout, pinned

# pytest finds it here, too.
fixture_packages = test_providers.fixture_packages
told = test_providers.told


def image(packages: Path, suite: str, path: Path, driver: str = "ionic", pack: Any = gzip.compress) -> dict[str, Any]:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        tar.add(packages / suite, "./")
    layout = Layout()
    layout.top = [layout.image(pack(content.getvalue()))]
    return image_report(of_archive(layout.write(path / "engine.tar"), pinned(layout.top[0]), driver))


def zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, stdout=subprocess.PIPE, check=True).stdout


PACKS = [
    gzip.compress,
    pytest.param(zstd, marks=pytest.mark.skipif(not shutil.which("zstd"), reason="the program zstd is not installed")),
]


@pytest.mark.parametrize("pack", PACKS)
def test_an_image_of_sid_has_its_own_that_fits_the_in_tree_kernel(packages: Path, tmp_path: Path, pack: Any) -> None:
    seen = image(packages, "sid", tmp_path, pack=pack)

    assert [each["path"].rpartition("/")[2] for each in seen["providers"]] == ["libionic.so.1", "libionic-rdmav65.so"]
    assert {(each["min_abi"], each["max_abi"], each["real_path"]) for each in seen["providers"]} == {
        (1, 1, "/usr/lib/x86_64-linux-gnu/libionic.so.1.0.65.0")
    }
    assert seen["driver_files"] == ["/etc/libibverbs.d/ionic.driver"]
    assert image_verdict(report(told(packages, 1), "ionic"), seen) == {"use": "image", "findings": []}


def test_a_kernel_at_4_is_served_by_neither(packages: Path, tmp_path: Path) -> None:
    result = image_verdict(report(told(packages, 4), "ionic"), image(packages, "sid", tmp_path))

    assert (result["use"], result["findings"][-1]["code"]) == ("neither", "image_provider_unfit")


def test_an_image_of_bookworm_has_no_libionic_and_cannot_load_that_of_sid(packages: Path, tmp_path: Path) -> None:
    seen = image(packages, "bookworm", tmp_path)
    result = image_verdict(report(told(packages, 1), "ionic"), seen)

    assert (seen["providers"], seen["libibverbs"]["suffix"]) == ([], "34")
    assert result["use"] == "neither"
    message = result["findings"][-1]["message"]
    assert "its libibverbs looks for libionic-rdmav34.so, which it does not have" in message
    assert "needs IBVERBS_PRIVATE_65" in message and "has IBVERBS_PRIVATE_34" in message


@pytest.mark.parametrize(("driver", "abis"), [("mlx5", (1, 1)), ("mlx4", (2, 4)), ("rxe", (1, 2))])
def test_other_drivers_of_the_same_image(packages: Path, tmp_path: Path, driver: str, abis: tuple[int, int]) -> None:
    seen = image(packages, "bookworm", tmp_path, driver)

    assert {(each["min_abi"], each["max_abi"]) for each in seen["providers"]} == {abis}
    assert seen["driver_files"] == [f"/etc/libibverbs.d/{driver}.driver"]
