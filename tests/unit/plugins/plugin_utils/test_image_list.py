# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster's list of images."""

from __future__ import annotations

from ansible_collections.infera.baremetal.plugins.plugin_utils.image_list import for_host, list_findings

DIGEST = "sha256:" + "a" * 64
ENGINE = f"docker.io/lab/engine:v1@{DIGEST}"
OVERLAY = f"docker.io/lab/overlay:v1@{DIGEST}"
GROUPS = {"all": ["lab1", "lab2"], "prefill": ["lab1"], "decode": ["lab2"]}


def test_a_right_list_has_no_findings():
    images = [
        {"name": ENGINE, "hosts": ["prefill", "lab2"]},
        {"name": OVERLAY, "archive": "x.tar", "hosts": "prefill,decode"},
    ]

    assert list_findings(images, GROUPS) == []
    assert list_findings([], GROUPS) == []


def test_everything_wrong_is_told_at_once_with_the_place_in_the_list():
    images = [{"name": ENGINE}, {"name": "lab/engine:v1", "hosts": ["prefil"]}, {"archive": "x.tar"}]

    findings = list_findings(images, GROUPS)

    assert [(finding.code, finding.where) for finding in findings] == [
        ("image_not_pinned", "images_list[1].name"),
        ("image_name_invalid", "images_list[2].name"),
        ("image_hosts_unknown", "images_list[1].hosts"),
    ]
    assert "'prefill'" in findings[2].fix


def test_a_host_needs_what_is_for_all_for_its_groups_or_for_itself():
    images = [
        {"name": "all", "archive": "a.tar"},
        {"name": "prefill", "hosts": ["prefill"]},
        {"name": "decode", "hosts": ["decode"]},
        {"name": "both", "hosts": "prefill, decode"},
        {"name": "lab1", "hosts": ["lab1"]},
        {"name": "everyone", "hosts": ["all"]},
        {"name": "all", "archive": "a.tar"},
    ]

    needed = for_host(images, "lab1", ["prefill"])

    assert [image["name"] for image in needed] == ["all", "prefill", "both", "lab1", "everyone"]
    assert needed[0] == {"name": "all", "archive": "a.tar"}
    assert needed[1] == {"name": "prefill"}


def test_archives_on_the_controller_are_held_against_their_names(tmp_path):
    other = tmp_path / "docker-save.tar"
    other.write_bytes(b"no archive at all" * 100)
    images = [
        {"name": ENGINE, "archive": str(tmp_path / "absent.tar")},
        {"name": OVERLAY, "archive": str(other)},
        {"name": f"docker.io/lab/pulled:v1@{DIGEST}"},
    ]

    assert list_findings(images, GROUPS) == []
    findings = list_findings(images, GROUPS, archives=True)
    assert len(findings) == 2
    assert findings[0].where == f"images_list: {tmp_path / 'absent.tar'}"
    assert findings[1].where == f"images_list: {other}"


def test_what_is_no_list_of_mappings_is_named_by_its_place():
    assert [finding.where for finding in list_findings([{"name": ENGINE}, 5, None], GROUPS)] == [
        "images_list[1]",
        "images_list[2]",
    ]
    assert [finding.code for finding in list_findings("oops", GROUPS)] == ["image_entry_form"]
