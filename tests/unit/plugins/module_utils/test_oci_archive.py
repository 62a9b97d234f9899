# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""OCI archives, built here byte by byte: good ones, and one for each way to be bad."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference
from ansible_collections.infera.baremetal.plugins.module_utils.oci_archive import BlobSink, OciArchive

OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_CONFIG = "application/vnd.oci.image.config.v1+json"
OCI_LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LAYER = "application/vnd.docker.image.rootfs.diff.tar.gzip"


class Layout:
    """An image layout under construction: blobs by digest, and what index.json lists."""

    def __init__(self):
        self.files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}'}
        self.top = []

    def blob(self, content, media_type, **more):
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        self.files[path_of(digest)] = content
        return {"mediaType": media_type, "digest": digest, "size": len(content), **more}

    def document(self, content, media_type, **more):
        return self.blob(
            json.dumps({"schemaVersion": 2, "mediaType": media_type, **content}).encode(), media_type, **more
        )

    def image(self, *layers, media_type=OCI_MANIFEST, layer_type=OCI_LAYER, **more):
        config = self.blob(b'{"architecture":"amd64","os":"linux"}', OCI_CONFIG)
        descriptors = [self.blob(layer, layer_type) for layer in layers]
        return self.document({"config": config, "layers": descriptors}, media_type, **more)

    def index(self, *manifests, media_type=OCI_INDEX, **more):
        return self.document({"manifests": list(manifests)}, media_type, **more)

    def write(self, path, members=(), last=b"\0" * 1024):
        self.files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": self.top}).encode()
        with open(path, "wb") as file:
            for name, content in self.files.items():
                file.write(header(name, len(content)) + content + b"\0" * (-len(content) % 512))
            for member in members:
                file.write(member)
            file.write(last)
        return str(path)


def header(name, size=0, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, target
    return info.tobuf(tarfile.GNU_FORMAT)


def path_of(digest):
    return "blobs/" + digest.replace(":", "/")


def pinned(descriptor):
    return ImageReference("docker.io/lab/engine", "v1", descriptor["digest"])


def verify(path, descriptor):
    archive = OciArchive(path, where="controller:engine.tar")
    try:
        image = archive.image(pinned(descriptor))
        archive.verify(image)
        return image
    finally:
        archive.close()


def refusal(path, descriptor):
    with pytest.raises(FindingError) as refused:
        verify(path, descriptor)
    (finding,) = refused.value.findings
    assert finding.where == "controller:engine.tar"
    assert finding.severity == "error"
    assert finding.fix
    return finding


@pytest.fixture(name="layout")
def one_image():
    layout = Layout()
    layout.top = [layout.image(b"layer one" * 1000, b"layer two")]
    return layout


# -- good ones ------------------------------------------------------------------------------------------------------


def test_an_image_is_found_with_all_its_blobs(layout, tmp_path):
    image = verify(layout.write(tmp_path / "a.tar"), layout.top[0])

    assert image.target.digest == layout.top[0]["digest"]
    # manifest, config, two layers; the sum of what was put in
    assert len(image.blobs) == 4
    assert image.size == 9000 + 9 + len(b'{"architecture":"amd64","os":"linux"}') + layout.top[0]["size"]


def test_docker_media_types_in_an_oci_layout_are_fine(tmp_path):
    layout = Layout()
    platform = {"os": "linux", "architecture": "amd64"}
    manifest = layout.image(b"x", media_type=DOCKER_MANIFEST, layer_type=DOCKER_LAYER, platform=platform)
    layout.top = [layout.index(manifest, media_type=DOCKER_LIST)]
    path = layout.write(tmp_path / "a.tar")

    assert len(verify(path, layout.top[0]).blobs) == 4
    assert len(verify(path, manifest).blobs) == 3


def test_a_digest_is_found_at_the_top_in_an_index_and_in_an_index_of_an_index(tmp_path):
    layout = Layout()
    amd = layout.image(b"amd64", platform={"os": "linux", "architecture": "amd64"})
    arm = layout.image(b"arm64", platform={"os": "linux", "architecture": "arm64"})
    inner = layout.index(amd, arm)
    layout.top = [layout.index(inner)]
    path = layout.write(tmp_path / "a.tar")

    # outer + inner + two manifests + one config that both share + two layers
    assert len(verify(path, layout.top[0]).blobs) == 7
    assert len(verify(path, inner).blobs) == 6
    assert len(verify(path, amd).blobs) == 3


def test_other_images_and_unknown_files_in_the_archive_do_not_matter(layout, tmp_path):
    wanted = layout.top[0]
    other = layout.image(b"another")
    layout.top.append(other)
    layout.files[path_of(other["digest"])] = b"broken"
    layout.files["notes.txt"] = b"hello"

    assert len(verify(layout.write(tmp_path / "a.tar"), wanted).blobs) == 4


def test_attestations_are_no_images_but_are_checked(layout, tmp_path):
    statement = layout.blob(b"{}", "application/vnd.in-toto+json")
    config = layout.blob(b"{} ", OCI_CONFIG)
    attestation = layout.document(
        {"config": config, "layers": [statement]}, OCI_MANIFEST, platform={"os": "unknown", "architecture": "unknown"}
    )
    layout.top = [layout.index(layout.top[0], attestation)]

    assert len(verify(layout.write(tmp_path / "a.tar"), layout.top[0]).blobs) == 8


def test_members_may_begin_with_a_dot_and_folders_may_be_there(layout, tmp_path):
    layout.files = {f"./{name}": content for name, content in layout.files.items()}
    path = layout.write(tmp_path / "a.tar", members=[header("./blobs/", kind=tarfile.DIRTYPE)])

    assert len(verify(path, layout.top[0]).blobs) == 4


# -- bad ones -------------------------------------------------------------------------------------------------------


def flipped(content):
    """One bit of the last byte: the size stays."""
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize("kind", ["layer", "config", "manifest", "inner index"])
def test_one_flipped_bit_in_any_kind_of_blob_is_found(kind, tmp_path):
    layout = Layout()
    manifest = layout.image(b"layer")
    index = layout.index(manifest)
    layout.top = [layout.index(index)]
    document = json.loads(layout.files[path_of(manifest["digest"])])
    digest = {
        "layer": document["layers"][0]["digest"],
        "config": document["config"]["digest"],
        "manifest": manifest["digest"],
        "inner index": index["digest"],
    }[kind]
    layout.files[path_of(digest)] = flipped(layout.files[path_of(digest)])

    finding = refusal(layout.write(tmp_path / "a.tar"), layout.top[0])

    assert finding.code == "image_blob_corrupt"
    assert digest in finding.message


def test_a_flipped_bit_in_the_pinned_document_itself_is_found(layout, tmp_path):
    path = path_of(layout.top[0]["digest"])
    layout.files[path] = flipped(layout.files[path])

    assert refusal(layout.write(tmp_path / "a.tar"), layout.top[0]).code == "image_blob_corrupt"


@pytest.mark.parametrize("lie", [1, -1])
def test_a_size_that_differs_from_the_descriptor_is_found(lie, layout, tmp_path):
    layout.top[0]["size"] += lie

    assert refusal(layout.write(tmp_path / "a.tar"), layout.top[0]).code == "image_blob_corrupt"


@pytest.mark.parametrize("part", ["config", "layers"])
def test_a_missing_blob_is_named(part, layout, tmp_path):
    document = json.loads(layout.files[path_of(layout.top[0]["digest"])])
    digest = (document["config"] if part == "config" else document["layers"][1])["digest"]
    del layout.files[path_of(digest)]

    finding = refusal(layout.write(tmp_path / "a.tar"), layout.top[0])

    assert finding.code == "image_blob_missing"
    assert digest in finding.message


def test_a_platform_that_was_left_out_of_an_index_is_named(tmp_path):
    layout = Layout()
    amd = layout.image(b"amd64", platform={"os": "linux", "architecture": "amd64"})
    arm = layout.image(b"arm64", platform={"os": "linux", "architecture": "arm64", "variant": "v8"})
    layout.top = [layout.index(amd, arm)]
    del layout.files[path_of(arm["digest"])]
    path = layout.write(tmp_path / "a.tar")

    finding = refusal(path, layout.top[0])

    assert finding.code == "image_blob_missing"
    assert "linux/arm64/v8" in finding.message
    assert "--all" in finding.fix
    assert len(verify(path, amd).blobs) == 3


def test_another_digest_is_told_with_what_the_archive_holds(layout, tmp_path):
    path = layout.write(tmp_path / "a.tar")
    wanted = {"digest": "sha256:" + "0" * 64}

    finding = refusal(path, wanted)

    assert finding.code == "image_digest_mismatch"
    assert wanted["digest"] in finding.message
    assert layout.top[0]["digest"] in finding.message
    assert f"skopeo copy --all --preserve-digests docker://docker.io/lab/engine@{wanted['digest']}" in finding.fix


def test_the_digest_of_the_outer_index_is_not_the_registrys(layout, tmp_path):
    """What `--index-name` would name: index.json describes the archive, no registry knows it."""
    path = layout.write(tmp_path / "a.tar")
    outer = {"digest": "sha256:" + hashlib.sha256(layout.files["index.json"]).hexdigest()}

    assert refusal(path, outer).code == "image_digest_mismatch"


def test_a_layer_is_not_an_image(layout, tmp_path):
    document = json.loads(layout.files[path_of(layout.top[0]["digest"])])

    assert refusal(layout.write(tmp_path / "a.tar"), document["layers"][0]).code == "image_digest_mismatch"


@pytest.mark.parametrize("length", [512, 700, 5000, -512, -1024, -1025])
def test_a_truncated_archive_is_told_wherever_it_ends(length, layout, tmp_path):
    path = layout.write(tmp_path / "a.tar")
    with open(path, "rb") as file:
        content = file.read()
    with open(path, "wb") as file:
        file.write(content[:length])

    if length == -512:  # one of the two closing blocks is left: nothing of the image is lost
        assert len(verify(path, layout.top[0]).blobs) == 4
    else:
        assert refusal(path, layout.top[0]).code == "image_archive_truncated"


def test_an_archive_whose_end_is_overwritten_is_told(layout, tmp_path):
    assert refusal(layout.write(tmp_path / "a.tar", last=b"x" * 512), layout.top[0]).code == "image_archive_truncated"


@pytest.mark.parametrize(
    ("member", "says"),
    [
        (header("../../etc/cron.d/x"), "outside"),
        (header("blobs/../../x"), "outside"),
        (header("/etc/passwd"), "outside"),
        (header("blobs/sha256/x", kind=tarfile.SYMTYPE, target="/etc/shadow"), "link to '/etc/shadow'"),
        (header("index.json", kind=tarfile.SYMTYPE, target="/etc/shadow"), "link to '/etc/shadow'"),
        (header("blobs/sha256/y", kind=tarfile.LNKTYPE, target="index.json"), "link to 'index.json'"),
        (header("blobs/dev", kind=tarfile.CHRTYPE), "not a plain file"),
        (header("blobs/fifo", kind=tarfile.FIFOTYPE), "not a plain file"),
        (header("oci-layout"), "two members"),
        (header("./oci-layout"), "two members"),
    ],
)
def test_members_that_have_no_place_in_a_layout_are_refused(member, says, layout, tmp_path):
    finding = refusal(layout.write(tmp_path / "a.tar", members=[member]), layout.top[0])

    assert finding.code == "image_archive_unsafe"
    assert says in finding.message


def test_docker_save_is_explained_with_the_command_that_does_it_right(tmp_path):
    layout = Layout()
    del layout.files["oci-layout"]
    layout.files["manifest.json"] = b'[{"Config":"c.json","RepoTags":["lab/engine:v1"],"Layers":["l/layer.tar"]}]'
    path = layout.write(tmp_path / "a.tar", members=[header("l/layer.tar", kind=tarfile.SYMTYPE, target="../l.tar")])

    finding = refusal(path, {"digest": "sha256:" + "0" * 64})

    assert finding.code == "image_archive_docker"
    assert "docker save" in finding.message
    assert "skopeo copy --all --preserve-digests" in finding.fix


def test_a_newer_docker_save_is_explained_too(layout, tmp_path):
    """Docker 25 and later write a layout beside manifest.json, with a manifest of their own making."""
    layout.files["manifest.json"] = b"[]"

    finding = refusal(layout.write(tmp_path / "a.tar"), {"digest": "sha256:" + "0" * 64})

    assert finding.code == "image_digest_mismatch"
    assert "docker save" in finding.why


@pytest.mark.parametrize(
    ("head", "program"),
    [(b"\x1f\x8b\x08", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh9", "bzip2"), (b"\xfd7zXZ\0", "xz")],
)
def test_a_compressed_archive_is_told_how_to_unpack_it(head, program, tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(head + b"rest" * 400)

    finding = refusal(str(path), {"digest": "sha256:" + "0" * 64})

    assert finding.code == "image_archive_compressed"
    assert program in finding.fix


@pytest.mark.parametrize("content", [b"", b"hello\n", b"x" * 10240, b"\0" * 10240])
def test_a_file_that_is_no_tar_is_told(content, tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(content)

    assert refusal(str(path), {"digest": "sha256:" + "0" * 64}).code == "image_archive_not_oci"


def test_a_tar_of_something_else_is_told(tmp_path):
    path = tmp_path / "a.tar"
    with tarfile.open(path, "w") as tar:
        tar.addfile(tarfile.TarInfo("etc/passwd"), io.BytesIO())

    finding = refusal(str(path), {"digest": "sha256:" + "0" * 64})

    assert finding.code == "image_archive_not_oci"
    assert "index.json" in finding.message


def test_a_missing_file_and_a_folder_are_told(tmp_path):
    nothing = {"digest": "sha256:" + "0" * 64}

    assert refusal(str(tmp_path / "none.tar"), nothing).code == "image_archive_missing"
    assert refusal(str(tmp_path), nothing).code == "image_archive_not_oci"


@pytest.mark.parametrize(
    "index",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"manifests":{}}',
        b'{"manifests":["x"]}',
        b'{"manifests":[{"digest":"sha256:x","size":1}]}',
        b'{"manifests":[{"digest":"sha512:' + b"0" * 128 + b'","size":1}]}',
        b'{"manifests":[{"digest":"sha256:' + b"0" * 64 + b'","size":-1}]}',
        b'{"manifests":[{"digest":"sha256:' + b"0" * 64 + b'","size":true}]}',
        b"[" * 100000,
        b"\xff\xfe",
    ],
)
def test_an_index_that_makes_no_sense_is_told(index, layout, tmp_path):
    path = layout.write(tmp_path / "a.tar")
    del layout.files["index.json"]
    with open(path, "wb") as file:
        for name, content in {**layout.files, "index.json": index}.items():
            file.write(header(name, len(content)) + content + b"\0" * (-len(content) % 512))
        file.write(b"\0" * 1024)

    assert refusal(path, layout.top[0]).code == "image_archive_not_oci"


@pytest.mark.parametrize(
    "media_type", ["", "application/json", "application/vnd.docker.distribution.manifest.v1+prettyjws"]
)
def test_an_image_of_an_unknown_type_is_refused(media_type, layout, tmp_path):
    layout.top[0]["mediaType"] = media_type

    finding = refusal(layout.write(tmp_path / "a.tar"), layout.top[0])

    assert finding.code == "image_media_type"
    assert repr(media_type or "(none)") in finding.message


def test_a_layer_of_an_unknown_type_is_refused(tmp_path):
    layout = Layout()
    layout.top = [layout.image(b"{}", layer_type="application/vnd.cncf.helm.chart.content.v1.tar+gzip")]

    assert refusal(layout.write(tmp_path / "a.tar"), layout.top[0]).code == "image_media_type"


def test_a_manifest_that_its_descriptor_calls_an_index_is_refused(layout, tmp_path):
    layout.top[0]["mediaType"] = OCI_INDEX

    assert refusal(layout.write(tmp_path / "a.tar"), layout.top[0]).code == "image_media_type"


def test_a_document_that_is_manifest_and_index_at_once_is_refused(layout, tmp_path):
    """CVE-2021-41190: two programs would read two images."""
    document = json.loads(layout.files[path_of(layout.top[0]["digest"])])
    layout.top = [layout.document({**document, "manifests": []}, OCI_MANIFEST)]

    assert refusal(layout.write(tmp_path / "a.tar"), layout.top[0]).code == "image_media_type"


def test_a_long_chain_of_indexes_is_no_trap(tmp_path):
    layout = Layout()
    descriptor = layout.image(b"deep")
    for _level in range(1500):
        descriptor = layout.index(descriptor)
    layout.top = [descriptor]

    path = layout.write(tmp_path / "a.tar")

    assert len(verify(path, descriptor).blobs) == 1503
    assert refusal(path, {"digest": "sha256:" + "0" * 64}).code == "image_digest_mismatch"


# -- handing on -----------------------------------------------------------------------------------------------------


def handed_on(path, descriptor, tag="v1"):
    stream = io.BytesIO()
    reference = ImageReference("docker.io/lab/engine", tag, descriptor["digest"])
    archive = OciArchive(path)
    image = archive.image(reference)
    sink = BlobSink(stream, reference)
    try:
        archive.verify(image, sink)
        sink.finish(image.target)
    finally:
        archive.close()
        stream.seek(0)
    return stream


def test_what_is_handed_on_is_an_archive_of_that_image_alone(layout, tmp_path):
    wanted = layout.top[0]
    layout.top.append(layout.image(b"another"))
    layout.files["notes.txt"] = b"hello"

    stream = handed_on(layout.write(tmp_path / "a.tar"), wanted)

    with tarfile.open(fileobj=stream) as tar:
        names = tar.getnames()
        index = json.loads(tar.extractfile("index.json").read())
    # oci-layout first, so that the format is known; four blobs; the index last, so that nothing is named before
    assert names[0] == "oci-layout"
    assert names[-1] == "index.json"
    assert len(names) == 6
    (descriptor,) = index["manifests"]
    assert descriptor["digest"] == wanted["digest"]
    assert descriptor["annotations"]["io.containerd.image.name"] == "docker.io/lab/engine:v1"
    copy = tmp_path / "copy.tar"
    copy.write_bytes(stream.getvalue())
    assert len(verify(str(copy), wanted).blobs) == 4


def test_an_image_without_a_tag_is_handed_on_without_a_name(layout, tmp_path):
    stream = handed_on(layout.write(tmp_path / "a.tar"), layout.top[0], tag="")

    with tarfile.open(fileobj=stream) as tar:
        index = json.loads(tar.extractfile("index.json").read())
    assert "annotations" not in index["manifests"][0]


def test_a_bad_blob_means_that_no_index_is_handed_on(layout, tmp_path):
    document = json.loads(layout.files[path_of(layout.top[0]["digest"])])
    path = path_of(document["layers"][1]["digest"])
    layout.files[path] = flipped(layout.files[path])
    stream = io.BytesIO()
    reference = pinned(layout.top[0])
    archive = OciArchive(layout.write(tmp_path / "a.tar"))
    image = archive.image(reference)

    with pytest.raises(FindingError):
        archive.verify(image, BlobSink(stream, reference))
    archive.close()

    assert b"index.json" not in stream.getvalue()


def test_tar_itself_reads_what_is_handed_on(layout, tmp_path):
    copy = tmp_path / "copy.tar"
    copy.write_bytes(handed_on(layout.write(tmp_path / "a.tar"), layout.top[0]).getvalue())

    listed = subprocess.run(["tar", "-tf", str(copy)], capture_output=True, text=True, check=True)

    assert listed.stdout.splitlines()[-1] == "index.json"
    assert listed.stderr == ""
