# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from pathlib import Path

from ansible_collections.infera.baremetal.plugins.plugin_utils.image_archives import with_sizes


def test_archives_are_measured_and_missing_ones_told_from_none(tmp_path: Path) -> None:
    archive = tmp_path / "engine.tar"
    archive.write_bytes(b"x" * 1234)
    images = [
        {"name": "docker.io/lab/engine:v1@sha256:aa", "archive": str(archive), "hosts": "decode, gpu1"},
        {"name": "docker.io/lab/gone:v1@sha256:bb", "archive": str(tmp_path / "gone.tar")},
        {"name": "docker.io/lab/pulled:v1"},
        {"archive": "no-name.tar"},
        "not an image",
    ]

    found = with_sizes(images)

    assert [(entry["digest"], entry["size"], entry["hosts"]) for entry in found] == [
        ("sha256:aa", 1234, ["decode", "gpu1"]),
        ("sha256:bb", None, []),
        ("", 0, []),
    ]
