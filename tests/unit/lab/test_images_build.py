# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The images' archives: reproducible, and what OCI says they are. Debian packages here are made by the test."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pathlib
import shutil
import subprocess
import tarfile
import typing as t

import pytest
from ansible_collections.infera.baremetal.tests.lab.images import build
from ansible_collections.infera.baremetal.tests.lab.images.build import BuildError, Entry, layer_tar, oci_archive

TREE = {
    "usr/bin/tool": Entry("f", 0o755, b"tool"),
    "bin": Entry("l", 0o777, b"usr/bin"),
    "tmp": Entry("d", 0o1777, b""),
}


def members(archive: bytes) -> dict[str, tarfile.TarInfo]:
    """By name."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return {member.name: member for member in opened}


def blob(archive: bytes, digest: str) -> bytes:
    """A blob, whose digest is checked."""
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        file = opened.extractfile(f"blobs/sha256/{digest.removeprefix('sha256:')}")
        assert file is not None
        content = file.read()
    assert f"sha256:{hashlib.sha256(content).hexdigest()}" == digest
    return content


def test_a_layer_has_parents_first_and_no_owner_or_time() -> None:
    found = members(layer_tar(TREE))

    assert list(found) == ["bin", "tmp", "usr", "usr/bin", "usr/bin/tool"]
    assert {(member.uid, member.gid, member.uname, member.mtime) for member in found.values()} == {(0, 0, "", 0)}
    assert found["usr/bin/tool"].mode == 0o755 and found["tmp"].mode == 0o1777
    assert found["bin"].issym() and found["bin"].linkname == "usr/bin"


def test_the_order_of_the_tree_does_not_matter() -> None:
    assert layer_tar(TREE) == layer_tar(dict(reversed(TREE.items())))


def test_an_archive_is_an_oci_layout_whose_digests_hold() -> None:
    layer = layer_tar(TREE)

    digest, archive = oci_archive("docker.io/lab/tool:v1", [layer], {"Cmd": ["tool"]})

    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        layout, index = (
            json.load(t.cast("t.IO[bytes]", opened.extractfile(name))) for name in ("oci-layout", "index.json")
        )
    assert layout == {"imageLayoutVersion": "1.0.0"}
    (descriptor,) = index["manifests"]
    assert descriptor["digest"] == digest
    assert descriptor["annotations"]["org.opencontainers.image.ref.name"] == "docker.io/lab/tool:v1"
    assert descriptor["annotations"]["io.containerd.image.name"] == "docker.io/lab/tool:v1"
    manifest = json.loads(blob(archive, digest))
    config = json.loads(blob(archive, manifest["config"]["digest"]))
    assert gzip.decompress(blob(archive, manifest["layers"][0]["digest"])) == layer
    assert config["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(layer).hexdigest()}"]
    assert config["config"] == {"Cmd": ["tool"]} and (config["os"], config["architecture"]) == ("linux", "amd64")
    assert oci_archive("docker.io/lab/tool:v1", [layer], {"Cmd": ["tool"]}) == (digest, archive)


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_skopeo_reads_it(tmp_path: pathlib.Path) -> None:
    digest, archive = oci_archive("docker.io/lab/tool:v1", [layer_tar(TREE)], {})
    (tmp_path / "tool.tar").write_bytes(archive)

    result = subprocess.run(
        ["skopeo", "inspect", f"oci-archive:{tmp_path}/tool.tar"], capture_output=True, text=True, check=True
    )

    assert json.loads(result.stdout)["Digest"] == digest


@pytest.fixture(name="package")
def debian_package(tmp_path: pathlib.Path) -> pathlib.Path:
    """A package as Debian 12 has them: files below /lib and /bin, links, documentation."""
    if shutil.which("dpkg-deb") is None:
        pytest.skip("dpkg-deb is not installed")
    root = tmp_path / "root"
    for name in (
        "DEBIAN/control",
        "lib/x/libtool.so.1.2",
        "bin/tool",
        "usr/share/doc/tool/copyright",
        "usr/lib/x/other",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name, encoding="ascii")
    (root / "DEBIAN/control").write_text(
        "Package: tool\nVersion: 1.2\nArchitecture: amd64\nMaintainer: none\nDescription: none\n", encoding="ascii"
    )
    (root / "lib/x/libtool.so.1").symlink_to("libtool.so.1.2")
    (root / "bin/again").hardlink_to(root / "bin/tool")
    (root / "bin/tool").chmod(0o4755)
    file = tmp_path / "cache/debs/tool_1.2_amd64.deb"
    file.parent.mkdir(parents=True)
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(file)], check=True, capture_output=True)
    return file


def test_a_packages_files_go_below_usr_without_documentation(package: pathlib.Path) -> None:
    tree = build.package_tree(package)

    files = {path: entry for path, entry in tree.items() if entry.kind != "d"}
    assert sorted(files) == [
        "usr/bin/again",
        "usr/bin/tool",
        "usr/lib/x/libtool.so.1",
        "usr/lib/x/libtool.so.1.2",
        "usr/lib/x/other",
    ]
    assert files["usr/lib/x/libtool.so.1"] == Entry("l", 0o777, b"libtool.so.1.2")
    assert files["usr/bin/tool"] == files["usr/bin/again"] == Entry("f", 0o4755, b"bin/tool")


def test_what_is_in_the_cache_is_not_fetched(package: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        build.subprocess, "run", lambda *_arguments, **_options: pytest.fail("nothing is to be fetched")
    )

    assert build.fetch(["tool"], package.parents[1]) == [package]


def test_a_damaged_package_leaves_the_cache(package: pathlib.Path) -> None:
    package.write_bytes(package.read_bytes()[:100])

    with pytest.raises(BuildError, match="tool_1.2_amd64.deb is damaged and was removed from the cache; run again"):
        build.package_tree(package)
    assert not package.exists()


def test_modules_whose_libraries_are_not_there_are_left_out() -> None:
    folder = "usr/lib/python3.11/lib-dynload"

    assert build.path_is_pruned(f"{folder}/_sqlite3.cpython-311-x86_64-linux-gnu.so")
    assert not build.path_is_pruned(f"{folder}/_ssl.cpython-311-x86_64-linux-gnu.so")
    assert build.path_is_pruned("usr/lib/python3.11/test")
    assert not build.path_is_pruned("usr/lib/python3.11/http/client.py")


def test_the_mode_of_the_checkouts_files_does_not_depend_on_the_umask(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a").mkdir(mode=0o700)
    (tmp_path / "a/script").write_bytes(b"x")
    (tmp_path / "a/script").chmod(0o700)
    (tmp_path / "text").write_bytes(b"y")
    (tmp_path / "text").chmod(0o600)
    (tmp_path / "__pycache__").mkdir()

    assert build.source_tree(tmp_path, "opt") == {
        "opt/a": Entry("d", 0o755, b""),
        "opt/a/script": Entry("f", 0o755, b"x"),
        "opt/text": Entry("f", 0o644, b"y"),
    }


def test_a_failed_write_leaves_the_old_archive(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.write(tmp_path / "a.tar", b"old")

    def killed(*_paths: object) -> None:
        raise OSError("killed")

    monkeypatch.setattr(build.os, "replace", killed)

    with pytest.raises(OSError, match="killed"):
        build.write(tmp_path / "a.tar", b"new")
    assert (tmp_path / "a.tar").read_bytes() == b"old"


def test_without_the_device_plugins_binary_it_says_how_to_get_it(tmp_path: pathlib.Path) -> None:
    with pytest.raises(BuildError, match=r"lab-device-plugin is missing: tests/lab/build/kubernetes .* builds it"):
        build.build(tmp_path, tmp_path, tmp_path)
