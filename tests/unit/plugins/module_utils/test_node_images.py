# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a node has, what it lacks, and the way from one to the other. The ctr program is scripted (see scripted_ctr)."""

from __future__ import annotations

import hashlib
import json
import tarfile

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Containerd
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference
from ansible_collections.infera.baremetal.plugins.module_utils.node_images import (
    NodeImages,
    WantedImage,
    intended_listing,
    listing,
    missing,
)
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.scripted_ctr import ScriptedCtr

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
ENGINE = ImageReference("docker.io/lab/engine", "v1", DIGEST)
LOOKUP = f"docker.io/lab/engine@{DIGEST}"
TAGGED = "docker.io/lab/engine:v1"
PIN = {"io.cri-containerd.pinned": "pinned"}
NOTED = {"io.cri-containerd.image": "managed"}


def node_images(ctr, pinned=True):
    return NodeImages(
        Containerd(["k3s", "ctr"], "k8s.io", "node1", ctr), pinned, "node1", sleep=lambda _s: ctr.notice()
    )


def archive(folder, payload=b"layer", name="a.tar"):
    """The smallest archive there is; returns its path and the manifest's digest."""
    blobs = {}

    def blob(content):
        digest = hashlib.sha256(content).hexdigest()
        blobs[f"blobs/sha256/{digest}"] = content
        return {"digest": f"sha256:{digest}", "size": len(content)}

    oci = "application/vnd.oci.image."
    config = {"mediaType": f"{oci}config.v1+json", **blob(b"{}")}
    layer = {"mediaType": f"{oci}layer.v1.tar", **blob(payload)}
    manifest = {"schemaVersion": 2, "config": config, "layers": [layer]}
    target = {"mediaType": f"{oci}manifest.v1+json", **blob(json.dumps(manifest).encode())}
    files = {"oci-layout": b"{}", **blobs, "index.json": json.dumps({"manifests": [target]}).encode()}
    path = folder / name
    with open(path, "wb") as file:
        for member, content in files.items():
            info = tarfile.TarInfo(member)
            info.size = len(content)
            file.write(info.tobuf() + content + b"\0" * (-len(content) % 512))
        file.write(b"\0" * 1024)
    return str(path), target["digest"]


def test_an_image_that_is_there_is_seen_with_two_calls():
    ctr = ScriptedCtr()
    ctr.put(LOOKUP, DIGEST, **PIN, **NOTED)
    ctr.put(TAGGED, DIGEST, **PIN, **NOTED)
    ctr.put("docker.io/other/image:v1", OTHER)

    (state,) = node_images(ctr).examine([ENGINE])

    assert ctr.verbs() == ["list", "check"]
    assert state.found
    assert state.settled(pinned=True)
    assert state.to_dict() == {
        "name": f"docker.io/lab/engine:v1@{DIGEST}",
        "digest": DIGEST,
        "size": 3040870,
        "present": True,
        "pinned": True,
        "names": [LOOKUP, TAGGED],
    }
    assert missing([state]) == []


@pytest.mark.parametrize(
    ("names", "source"),
    [
        ({}, ""),
        # the tag leads to another content
        ({TAGGED: OTHER}, ""),
        # somebody gave the exact name to another content: names are not checked against digests
        ({LOOKUP: OTHER}, ""),
        # the content is there under names that CRI does not look up
        ({TAGGED: DIGEST}, TAGGED),
        ({"docker.io/mirror/engine:v9": DIGEST}, "docker.io/mirror/engine:v9"),
    ],
)
def test_what_the_kubelet_would_not_find_is_missing(names, source):
    ctr = ScriptedCtr()
    for name, digest in names.items():
        ctr.put(name, digest)

    (state,) = node_images(ctr).examine([ENGINE])

    assert missing([state]) == [f"docker.io/lab/engine:v1@{DIGEST}"]
    assert state.source == source


def test_names_whose_content_is_lost_do_not_count():
    ctr = ScriptedCtr()
    ctr.put(LOOKUP, DIGEST, whole=False)
    ctr.put(TAGGED, DIGEST, whole=False)

    (state,) = node_images(ctr).examine([ENGINE])

    assert not state.found
    assert state.source == ""


def test_lacking_names_and_labels_are_given_without_an_archive():
    ctr = ScriptedCtr()
    ctr.put("docker.io/mirror/engine:v9", DIGEST, **NOTED)

    (state,) = node_images(ctr).settle([ENGINE])

    assert state.settled(pinned=True)
    assert "import" not in ctr.verbs()
    assert set(ctr.images) == {"docker.io/mirror/engine:v9", LOOKUP, TAGGED}
    assert ctr.images["docker.io/mirror/engine:v9"]["labels"] == NOTED


def test_a_tag_that_points_elsewhere_is_moved_and_the_old_content_keeps_its_digest_name():
    ctr = ScriptedCtr()
    old = f"docker.io/lab/engine@{OTHER}"
    ctr.put(old, OTHER, **NOTED)
    ctr.put(TAGGED, OTHER, **NOTED)
    ctr.put(LOOKUP, DIGEST, **NOTED)

    node_images(ctr).settle([ENGINE])

    assert ctr.images[TAGGED]["digest"] == DIGEST
    assert ctr.images[old]["digest"] == OTHER


def test_a_settled_image_is_left_alone():
    ctr = ScriptedCtr()
    for name in (LOOKUP, TAGGED):
        ctr.put(name, DIGEST, **PIN, **NOTED)

    node_images(ctr).settle([ENGINE])

    assert ctr.verbs() == ["list", "check"]


def test_the_label_is_set_after_cri_has_replaced_all_labels():
    """containerd 1.6 overwrites the labels of a new name when its CRI plugin notices it, a moment later."""
    ctr = ScriptedCtr()
    ctr.put(LOOKUP, DIGEST)

    (state,) = node_images(ctr).settle([ENGINE])

    assert state.pinned
    assert ctr.images[LOOKUP]["labels"] == {**PIN, **NOTED}


def test_a_containerd_without_cri_is_not_waited_for_for_ever():
    ctr = ScriptedCtr(cri=False)
    ctr.put(LOOKUP, DIGEST)

    (state,) = node_images(ctr).settle([ENGINE])

    assert state.pinned


def test_the_label_is_taken_away_when_it_is_not_wanted():
    ctr = ScriptedCtr()
    for name in (LOOKUP, TAGGED):
        ctr.put(name, DIGEST, **PIN, **NOTED)

    (state,) = node_images(ctr, pinned=False).settle([ENGINE])

    assert not state.pinned
    assert ctr.images[TAGGED]["labels"] == NOTED


@pytest.mark.parametrize("digests_flag_works", [True, False])
def test_an_import_ends_with_both_names_and_the_label(digests_flag_works, tmp_path):
    """containerd 2.x may name only the tag where the archive has one."""
    path, digest = archive(tmp_path)
    reference = ImageReference("docker.io/lab/engine", "v1", digest)
    ctr = ScriptedCtr(digests_flag_works=digests_flag_works)
    node = node_images(ctr)

    node.load_all([WantedImage(reference, path)])
    (state,) = node.settle([reference])

    assert state.names == (f"docker.io/lab/engine@{digest}", TAGGED)
    assert state.pinned


def test_nothing_is_imported_when_one_of_several_archives_is_wrong(tmp_path):
    good, digest = archive(tmp_path)
    bad, _digest = archive(tmp_path, b"another", "b.tar")
    ctr = ScriptedCtr()

    with pytest.raises(FindingError) as refused:
        node_images(ctr).load_all(
            [
                WantedImage(ImageReference("docker.io/lab/a", "v1", digest), good),
                WantedImage(ImageReference("docker.io/lab/b", "v1", OTHER), bad),
                WantedImage(ImageReference("docker.io/lab/c", "v1", OTHER), str(tmp_path / "none.tar")),
                WantedImage(ImageReference("docker.io/lab/d", "v1", OTHER)),
            ]
        )

    assert [finding.code for finding in refused.value.findings] == [
        "image_digest_mismatch",
        "image_archive_missing",
        "image_archive_unset",
    ]
    assert ctr.calls == []


def test_a_blob_that_turns_out_bad_on_the_way_leaves_no_name(tmp_path):
    path, digest = archive(tmp_path, b"layer" * 1000)
    with open(path, "r+b") as file:
        content = file.read().replace(b"layerlayer", b"layerlAyer", 1)
        file.seek(0)
        file.write(content)
    ctr = ScriptedCtr()

    with pytest.raises(FindingError) as refused:
        node_images(ctr).load_all([WantedImage(ImageReference("docker.io/lab/a", "v1", digest), path)])

    assert refused.value.findings[0].code == "image_blob_corrupt"
    assert ctr.images == {}


def test_an_image_that_vanishes_after_its_import_is_told():
    ctr = ScriptedCtr()
    ctr.put(LOOKUP, DIGEST, whole=False)

    with pytest.raises(FindingError) as failed:
        node_images(ctr).settle([ENGINE])

    assert failed.value.findings[0].code == "image_not_settled"
    assert LOOKUP in failed.value.findings[0].message


def test_removal_takes_the_names_and_what_cri_calls_the_content():
    ctr = ScriptedCtr()
    for name in (LOOKUP, TAGGED, "sha256:" + "c" * 64):
        ctr.put(name, DIGEST)
    ctr.put("docker.io/other/image:v1", OTHER)

    removed = node_images(ctr).remove([ENGINE])

    assert set(removed) == {LOOKUP, TAGGED, "sha256:" + "c" * 64}
    assert set(ctr.images) == {"docker.io/other/image:v1"}


def test_removal_spares_a_tag_that_moved_on_and_content_that_others_name():
    ctr = ScriptedCtr()
    ctr.put(LOOKUP, DIGEST)
    ctr.put(TAGGED, OTHER)
    ctr.put("docker.io/mirror/engine:v9", DIGEST)
    ctr.put("sha256:" + "c" * 64, DIGEST)

    assert node_images(ctr).remove([ENGINE]) == [LOOKUP]


def test_removing_what_is_not_there_is_no_work():
    ctr = ScriptedCtr()

    assert node_images(ctr).remove([ENGINE]) == []
    assert ctr.verbs() == ["list"]


def test_a_diff_compares_names_digests_and_labels():
    ctr = ScriptedCtr()
    ctr.put(LOOKUP, DIGEST, **PIN)
    ctr.put("sha256:" + "c" * 64, DIGEST)

    assert listing(node_images(ctr).examine([ENGINE])) == f"{LOOKUP} {DIGEST} pinned\n"
    assert intended_listing([ENGINE], pinned=True) == f"{TAGGED} {DIGEST} pinned\n{LOOKUP} {DIGEST} pinned\n"
