# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module's steps and states, as a playbook or the action plugin calls it. The ctr program is scripted."""

from __future__ import annotations

import os

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.modules.containerd_image import ARGUMENT_SPEC, perform
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.scripted_ctr import ScriptedCtr
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_node_images import archive

DIGEST = "sha256:" + "a" * 64
NAME = f"docker.io/lab/engine:v1@{DIGEST}"
NAMES = [f"docker.io/lab/engine@{DIGEST}", "docker.io/lab/engine:v1"]
LABELS = {"io.cri-containerd.pinned": "pinned", "io.cri-containerd.image": "managed"}


def call(ctr, check_mode=False, **options):
    defaults = {key: spec.get("default") for key, spec in ARGUMENT_SPEC.items()}
    given = {**defaults, **options}
    if given["images"]:
        given["images"] = [{"archive": None, **image} for image in given["images"]]
    return perform(given, check_mode, ctr, lock="/no/such/folder/lock")


def store(*names, digest=DIGEST):
    ctr = ScriptedCtr()
    for name in names:
        ctr.put(name, digest, **LABELS)
    return ctr


def test_present_means_no_work():
    ctr = store(*NAMES)

    result = call(ctr, name=NAME, archive="/no/such/archive.tar", archive_on="node")

    assert result["changed"] is False
    assert result["image"] == {
        "name": NAME,
        "digest": DIGEST,
        "size": 3040870,
        "present": True,
        "pinned": True,
        "names": NAMES,
    }
    assert result["images"] == [result["image"]]
    assert ctr.verbs() == ["list", "check"]


def test_an_archive_on_the_node_is_imported(tmp_path):
    path, digest = archive(tmp_path)
    ctr = ScriptedCtr(prompt=True)

    result = call(ctr, images=[{"name": f"lab/engine:v1@{digest}", "archive": path}], archive_on="node")

    assert result["changed"] is True
    assert result["missing"] == []
    assert result["images"][0]["pinned"] is True
    assert "image" not in result
    assert result["diff"]["before"] == ""
    assert result["diff"]["after"].count("pinned\n") == 2


def test_query_tells_what_is_missing_and_changes_nothing():
    ctr = store("docker.io/lab/engine:v1")
    other = f"docker.io/lab/other:v1@{DIGEST}"

    result = call(ctr, images=[{"name": NAME}, {"name": other}], state="query")

    assert result["missing"] == [NAME, other]
    assert result["changed"] is False
    assert ctr.verbs() == ["list", "check"]


def test_absent_removes_once():
    ctr = store(*NAMES)

    first = call(ctr, name=NAME, state="absent")
    second = call(ctr, name=NAME, state="absent")

    assert (first["changed"], second["changed"]) == (True, False)
    assert ctr.images == {}
    assert first["diff"]["after"] == ""


@pytest.mark.parametrize(
    ("names", "state", "changed"),
    [
        ([], "present", True),
        (NAMES, "present", False),
        (NAMES[1:], "present", True),
        (NAMES, "absent", True),
        ([], "absent", False),
    ],
)
def test_check_mode_predicts_and_touches_nothing(names, state, changed):
    ctr = store(*names)

    result = call(ctr, check_mode=True, name=NAME, state=state, archive_on="node")

    assert result["changed"] is changed
    assert set(ctr.verbs()) <= {"list", "check"}
    assert set(ctr.images) == set(names)


@pytest.mark.parametrize("state", ["present", "absent", "query"])
def test_check_mode_on_a_fresh_host_finds_nothing_there(state):
    ctr = ScriptedCtr()
    ctr.answer("list", error=FileNotFoundError("k3s"))

    result = call(ctr, check_mode=True, name=NAME, state=state)

    assert result["reachable"] is False
    assert result["missing"] == [NAME]
    assert result["changed"] is (state == "present")


@pytest.mark.parametrize("state", ["present", "absent", "query"])
def test_without_containerd_it_fails_for_real(state):
    ctr = ScriptedCtr()
    ctr.answer("list", error=FileNotFoundError("k3s"))

    with pytest.raises(FindingError) as failed:
        call(ctr, name=NAME, state=state)

    assert failed.value.findings[0].code == "containerd_ctr_missing"


def test_all_wrong_names_are_told_before_containerd_is_asked():
    ctr = ScriptedCtr()

    with pytest.raises(FindingError) as refused:
        call(ctr, images=[{"name": "lab/a:v1"}, {"name": NAME}, {"name": "LAB/b"}])

    assert [finding.where for finding in refused.value.findings] == ["images[0].name", "images[2].name"]
    assert ctr.calls == []


# -- the action plugin's steps ------------------------------------------------------------------------------------


def stage(step, **more):
    return {"step": step, "owner": "", "keep": [], **more}


def test_the_plan_names_what_needs_an_archive_and_makes_a_place_for_it(tmp_path):
    staging = tmp_path / "staging"
    ctr = store(*NAMES)
    other = f"docker.io/lab/other:v1@sha256:{'b' * 64}"

    result = call(
        ctr, images=[{"name": NAME}, {"name": other}, {"name": other}], staging_dir=str(staging), stage=stage("plan")
    )

    assert result["needed"] == [other]
    assert result["changed"] is False
    assert result["staging"]["path"] == str(staging)
    assert result["staging"]["free_bytes"] > 0
    assert staging.is_dir()


def test_the_plan_gives_names_for_which_no_archive_is_needed(tmp_path):
    staging = tmp_path / "staging"
    ctr = store("docker.io/lab/engine:v1")

    result = call(ctr, images=[{"name": NAME}], staging_dir=str(staging), stage=stage("plan"))

    assert result["needed"] == []
    assert result["changed"] is True
    assert result["images"][0]["names"] == NAMES
    assert not staging.exists()


def test_leftovers_of_a_killed_run_go_when_nothing_is_missing(tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    (staging / "a.staged").write_bytes(b"80 GB")
    ctr = store(*NAMES)

    result = call(ctr, images=[{"name": NAME}], staging_dir=str(staging), stage=stage("plan"))

    assert result["changed"] is False
    assert not staging.exists()


def test_the_plan_in_check_mode_makes_nothing(tmp_path):
    staging = tmp_path / "staging"

    result = call(
        ScriptedCtr(), check_mode=True, images=[{"name": NAME}], staging_dir=str(staging), stage=stage("plan")
    )

    assert result["needed"] == [NAME]
    assert not staging.exists()


def test_the_import_removes_what_was_staged_and_spares_what_is_to_come(tmp_path):
    path, digest = archive(tmp_path, name="a.staged")
    (tmp_path / "b.staged").write_bytes(b"later")
    ctr = ScriptedCtr(prompt=True)
    images = [{"name": f"lab/engine:v1@{digest}", "archive": path}]

    result = call(ctr, images=images, staging_dir=str(tmp_path), stage=stage("import", keep=["b.staged"]))

    assert result["changed"] is True
    assert os.listdir(tmp_path) == ["b.staged"]


def test_a_failed_import_removes_what_was_staged_too(tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    path, _digest = archive(staging, name="a.staged")

    with pytest.raises(FindingError) as failed:
        call(
            ScriptedCtr(),
            images=[{"name": NAME, "archive": path}],
            staging_dir=str(staging),
            stage=stage("import"),
        )

    assert failed.value.findings[0].code == "image_digest_mismatch"
    assert not staging.exists()


def test_discard_needs_no_containerd(tmp_path):
    staging = tmp_path / "staging"
    staging.mkdir()
    (staging / "a.staged").write_bytes(b"x")
    ctr = ScriptedCtr()

    call(ctr, images=[], staging_dir=str(staging), stage=stage("discard"))

    assert not staging.exists()
    assert ctr.calls == []
