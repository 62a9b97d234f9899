# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Image names: what CRI makes of them. Expected values are distribution/reference's rules, worked out by hand."""

from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse, parse_all

DIGEST = "sha256:" + "0123456789abcdef" * 4
OTHER = "sha256:" + "f" * 64


@pytest.mark.parametrize(
    ("name", "lookup", "tagged"),
    [
        ("nginx:1.25", "docker.io/library/nginx", "docker.io/library/nginx:1.25"),
        ("library/nginx:1.25", "docker.io/library/nginx", "docker.io/library/nginx:1.25"),
        ("lab/engine:v1", "docker.io/lab/engine", "docker.io/lab/engine:v1"),
        ("docker.io/nginx:1.25", "docker.io/library/nginx", "docker.io/library/nginx:1.25"),
        ("index.docker.io/lab/engine:v1", "docker.io/lab/engine", "docker.io/lab/engine:v1"),
        ("docker.io/lab/engine", "docker.io/lab/engine", ""),
        ("localhost/engine:v1", "localhost/engine", "localhost/engine:v1"),
        ("localhost:5000/a/b/c:v1", "localhost:5000/a/b/c", "localhost:5000/a/b/c:v1"),
        ("registry:5000/engine", "registry:5000/engine", ""),
        ("[fd00::1]:5000/engine:v1", "[fd00::1]:5000/engine", "[fd00::1]:5000/engine:v1"),
        (
            "ghcr.io/org/sub_dir/a--b.c__d:V1.0-rc_1",
            "ghcr.io/org/sub_dir/a--b.c__d",
            "ghcr.io/org/sub_dir/a--b.c__d:V1.0-rc_1",
        ),
    ],
)
def test_names_are_qualified_as_cri_does(name, lookup, tagged):
    reference = parse(f"{name}@{DIGEST}")

    assert reference.lookup_name == f"{lookup}@{DIGEST}"
    assert reference.tagged_name == tagged
    assert reference.names == ((f"{lookup}@{DIGEST}", tagged) if tagged else (f"{lookup}@{DIGEST}",))


def test_a_qualified_name_reads_back_as_itself():
    text = f"docker.io/lab/engine:v1@{DIGEST}"

    assert str(parse(text)) == text


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("lab/engine:v1", "image_not_pinned"),
        ("nginx", "image_not_pinned"),
        ("", "image_name_invalid"),
        (f"@{DIGEST}", "image_name_invalid"),
        (f"lab/Engine:v1@{DIGEST}", "image_name_invalid"),
        (f"lab/engine:@{DIGEST}", "image_name_invalid"),
        (f"lab/engine:v1 @{DIGEST}", "image_name_invalid"),
        (f"-a.io/engine@{DIGEST}", "image_name_invalid"),
        (f"lab//engine@{DIGEST}", "image_name_invalid"),
        (f"https://docker.io/lab/engine:v1@{DIGEST}", "image_name_invalid"),
        (f"docker.io/{'a' * 250}@{DIGEST}", "image_name_invalid"),
        (f"docker.io/../etc@{DIGEST}", "image_name_invalid"),
        ("lab/engine:v1@sha256:abc", "image_digest_invalid"),
        (f"lab/engine:v1@{DIGEST.upper()}", "image_digest_invalid"),
        (f"lab/engine:v1@{DIGEST}\n", "image_digest_invalid"),
        ("lab/engine:v1@sha512:" + "0" * 128, "image_digest_invalid"),
        (f"lab/engine:v1@{DIGEST}@{DIGEST}", "image_digest_invalid"),
    ],
)
def test_what_cannot_be_pinned_is_refused(name, code):
    with pytest.raises(FindingError) as refused:
        parse(name, where="images_list[3].name")

    (finding,) = refused.value.findings
    assert finding.code == code
    assert finding.where == "images_list[3].name"
    assert repr(name) in finding.message


def test_a_hostile_name_is_refused_at_once():
    with pytest.raises(FindingError):
        parse("a" * 5000 + "!/b@" + DIGEST)


def test_all_wrong_names_are_told_at_once():
    with pytest.raises(FindingError) as refused:
        parse_all([("lab/a:v1", "images[0]"), (f"lab/b:v1@{DIGEST}", "images[1]"), ("LAB", "images[2]")])

    assert [(finding.code, finding.where) for finding in refused.value.findings] == [
        ("image_not_pinned", "images[0]"),
        ("image_name_invalid", "images[2]"),
    ]


def test_one_tag_cannot_stand_for_two_contents():
    with pytest.raises(FindingError) as refused:
        parse_all([(f"lab/a:v1@{DIGEST}", "images[0]"), (f"docker.io/lab/a:v1@{OTHER}", "images[1]")])

    (finding,) = refused.value.findings
    assert finding.code == "image_name_conflict"
    assert DIGEST in finding.message
    assert OTHER in finding.message
    assert finding.where == "images[1]"


def test_one_image_may_be_named_twice_and_two_tags_may_differ():
    names = [(f"lab/a:v1@{DIGEST}", ""), (f"docker.io/lab/a:v1@{DIGEST}", ""), (f"lab/a:v2@{OTHER}", "")]

    assert [reference.digest for reference in parse_all(names)] == [DIGEST, DIGEST, OTHER]
