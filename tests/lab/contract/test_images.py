# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Images: the air-gap archive is imported at each start, and a digest is found under its exact name."""

from __future__ import annotations

import json
import tarfile

import pytest
from conftest import pod_manifest
from lab_node import eventually


def _names(archive):
    """The image names in an archive that Python can open; docker's and OCI's form."""
    with tarfile.open(archive) as tar:
        members = tar.getnames()
        if "manifest.json" in members:
            manifest = json.load(tar.extractfile("manifest.json"))
            return {tag for entry in manifest for tag in entry["RepoTags"] or []}
        index = json.load(tar.extractfile("index.json"))
    annotations = [entry.get("annotations", {}) for entry in index["manifests"]]
    return {a.get("io.containerd.image.name") or a["org.opencontainers.image.ref.name"] for a in annotations}


@pytest.fixture(name="airgap_names")
def fixture_airgap_names(artifacts):
    """The names in the archive under test."""
    if artifacts.airgap.suffix == ".zst":
        pytest.skip("Python cannot open a .zst archive")
    return _names(artifacts.airgap)


def test_the_air_gap_images_are_there(server, agent, airgap_names):
    assert airgap_names
    for k3s in (server, agent):
        assert airgap_names <= set(k3s.node.output("k3s ctr images ls -q").split())


def test_they_are_imported_at_every_start(agent, airgap_names):
    name = sorted(airgap_names)[0]
    agent.node.run(f"k3s ctr images rm {name}")

    agent.start()

    eventually(lambda: name in agent.node.output("k3s ctr images ls -q").split(), 60, f"{name} is imported again")


def test_a_pod_pinned_to_an_imported_digest_runs_without_a_pull(server, agent, pod):
    assert "@sha256:" in pod
    for k3s in (server, agent):
        status = server.get(f"pod {k3s.node_name}")["status"]
        assert status["phase"] == "Running"


def test_another_digest_of_the_same_tag_is_not_found(server, agent, pod):
    repository_and_tag = pod.split("@")[0]
    server.kubectl(
        "create -f -", pod_manifest("other-digest", agent.node_name, f"{repository_and_tag}@sha256:{'0' * 64}")
    )

    def reason():
        statuses = server.get("pod other-digest")["status"].get("containerStatuses", [])
        return statuses and statuses[0]["state"].get("waiting", {}).get("reason") == "ErrImageNeverPull"

    eventually(reason, 30, "ErrImageNeverPull")
