# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Small images with what matters of RDMA in them, in an archive and in a containerd that is played here."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from pathlib import Path
from typing import Any, Iterator, Sequence

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Completed, Containerd
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_libraries import of_archive, of_containerd
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_image_layers import layer
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_oci_archive import Layout, pinned

DEBIAN = "usr/lib/x86_64-linux-gnu"
AMD64, ARM64 = ({"platform": {"os": "linux", "architecture": name}} for name in ("amd64", "arm64"))
BASE = layer(
    ("lib", "usr/lib"),
    (f"{DEBIAN}/libc.so.6", b"..GLIBC_2.4\0GLIBC_2.39\0GLIBC_2.9\0GLIBC_PRIVATE\0"),
    (f"{DEBIAN}/libibverbs.so.1", "libibverbs.so.1.14.44.0"),
    (f"{DEBIAN}/libibverbs.so.1.14.44.0", b"verbs"),
)
IONIC = layer(
    (f"{DEBIAN}/libionic.so.1", "libionic.so.1.0.54"),
    (f"{DEBIAN}/libionic.so.1.0.54", b"provider"),
    (f"{DEBIAN}/libibverbs/libionic-rdmav34.so", "../libionic.so.1"),
    (f"{DEBIAN}/libibverbs/libmlx5-rdmav34.so", b"another driver's"),
    ("etc/libibverbs.d/ionic.driver", b"driver ionic\n"),
    ("etc/libibverbs.d/mlx5.driver", b"driver mlx5\n"),
    ("etc/libibverbs.d/README", b"driver ionic\n"),
)


def found(path: str, real: str, content: bytes) -> dict[str, str]:
    return {
        "path": f"/{DEBIAN}/{path}",
        "real_path": f"/{DEBIAN}/{real}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "content": base64.b64encode(content).decode(),
    }


def write(layout: Layout, path: Path) -> str:
    return layout.write(path / "engine.tar")


def test_an_archive_says_what_a_container_would_load(tmp_path: Path) -> None:
    layout = Layout()
    layout.top = [layout.image(BASE, IONIC)]

    assert of_archive(write(layout, tmp_path), pinned(layout.top[0]), "ionic") == {
        "digest": layout.top[0]["digest"],
        "driver": "ionic",
        "libibverbs": found("libibverbs.so.1", "libibverbs.so.1.14.44.0", b"verbs"),
        "providers": [
            found("libionic.so.1", "libionic.so.1.0.54", b"provider"),
            found("libibverbs/libionic-rdmav34.so", "libionic.so.1.0.54", b"provider"),
        ],
        "driver_files": ["/etc/libibverbs.d/ionic.driver"],
        "glibc": "2.39",
    }


def test_an_image_without_rdma_has_nothing(tmp_path: Path) -> None:
    layout = Layout()
    layout.top = [layout.image(layer(("bin/sh", b"x")))]
    seen = of_archive(write(layout, tmp_path), pinned(layout.top[0]), "ionic")

    assert [seen[key] for key in ("libibverbs", "providers", "driver_files", "glibc")] == [None, [], [], ""]


@pytest.mark.parametrize(
    ("link", "error"),
    [
        ("libionic.so.1.gone", f"leads to /{DEBIAN}/libionic.so.1.gone, which the image does not have"),
        ("/opt/amd/strange.name", "leads to /opt/amd/strange.name, which the image does not have"),
    ],
)
def test_a_link_that_leads_to_no_such_library_is_told(link: str, error: str, tmp_path: Path) -> None:
    layout = Layout()
    layout.top = [layout.image(layer((f"{DEBIAN}/libionic.so.1", link)))]
    (provider,) = of_archive(write(layout, tmp_path), pinned(layout.top[0]), "ionic")["providers"]

    assert (provider["path"], provider["error"]) == (f"/{DEBIAN}/libionic.so.1", error)


def test_what_is_larger_than_a_library_is_told(tmp_path: Path) -> None:
    layout = Layout()
    layout.top = [layout.image(layer(("usr/lib64/libibverbs.so.1", bytes((4 << 20) + 1))))]
    verbs = of_archive(write(layout, tmp_path), pinned(layout.top[0]), "ionic")["libibverbs"]

    assert verbs["error"] == "is larger than 4 MiB, so it is no such library"


def test_of_several_platforms_the_nodes_own_is_read(tmp_path: Path) -> None:
    layout = Layout()
    layout.top = [layout.index(layout.image(layer(), **ARM64), layout.image(BASE, **AMD64))]
    path = write(layout, tmp_path)

    assert of_archive(path, pinned(layout.top[0]), "ionic")["glibc"] == "2.39"
    layout.top = [layout.index(layout.image(layer(), **ARM64))]
    with pytest.raises(FindingError, match="image_platform_missing"):
        of_archive(write(layout, tmp_path), pinned(layout.top[0]), "ionic")


# -- containerd -----------------------------------------------------------------------------------------------------


def store(layout: Layout, descriptor: dict[str, Any], without: str = "") -> Containerd:
    """A containerd that holds the layout's blobs, all but C(without)."""

    def run(command: Sequence[str], feed: Any = None) -> Completed:
        name = f"docker.io/lab/engine@{descriptor['digest']}"
        return Completed(0, f"REF\n{name}   application/x {descriptor['digest']} 2.9 MiB linux/amd64 -   \n")

    @contextlib.contextmanager
    def stream(command: Sequence[str]) -> Iterator[Iterator[bytes]]:
        assert list(command[:-1]) == ["k3s", "ctr", "--namespace", "k8s.io", "content", "get"]
        digest = command[-1]
        if digest == without:
            raise OSError("ctr: content digest sha256:...: not found")
        yield iter([layout.files["blobs/" + digest.replace(":", "/")]])

    return Containerd(["k3s", "ctr"], where="gpu1", runner=run, streamer=stream)


def test_containerd_and_archive_say_the_same(tmp_path: Path) -> None:
    layout = Layout()
    layout.top = [layout.image(BASE, IONIC)]
    reference = pinned(layout.top[0])

    assert of_containerd(store(layout, layout.top[0]), reference, "ionic") == of_archive(
        write(layout, tmp_path), reference, "ionic"
    )


def test_an_image_that_containerd_does_not_hold_is_no_error() -> None:
    layout = Layout()
    here, wanted = layout.image(BASE), layout.image(IONIC)

    assert of_containerd(store(layout, here), pinned(wanted), "ionic") is None


def test_lost_content_is_one_finding_whatever_it_was() -> None:
    layout = Layout()
    image = layout.image(BASE, IONIC)
    manifest = json.loads(layout.files["blobs/" + image["digest"].replace(":", "/")])

    for lost, code in (
        (image["digest"], "image_content_missing"),
        (manifest["layers"][1]["digest"], "image_layer_damaged"),
    ):
        with pytest.raises(FindingError) as refused:
            of_containerd(store(layout, image, without=lost), pinned(image), "ionic", "gpu1")
        (finding,) = refused.value.findings
        assert (finding.code, finding.where) == (code, "gpu1")
        assert "not found" in finding.message


@pytest.mark.parametrize("document", [b"[]", b"{", b'{"config": {}}', b'{"layers": [7]}', b" " * (9 << 20)])
def test_a_manifest_that_is_none_is_one_finding(document: bytes) -> None:
    layout = Layout()
    image = layout.blob(document, "application/vnd.oci.image.manifest.v1+json")

    with pytest.raises(FindingError, match="image_content_missing"):
        of_containerd(store(layout, image), pinned(image), "ionic")
