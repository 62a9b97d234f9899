# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The generated files, as Ansible reads them."""

from __future__ import annotations

from pathlib import Path

import yaml
from ansible_collections.infera.baremetal.tests.lab.infera_lab import inventory
from ansible_collections.infera.baremetal.tests.lab.infera_lab.plan import Lab


def test_nested_mappings_are_read_back_by_yaml_as_they_were() -> None:
    content = {"plain": "v1.20.2", "tricky": 'yes: #"x"\\n', "one": {"two": {"number-like": "0755"}}}
    assert yaml.safe_load("\n".join(inventory.yaml_lines(content))) == content


def test_variables_name_images_by_digest_and_files_by_absolute_path(tmp_path: Path) -> None:
    lab = Lab(tmp_path, tmp_path / "cache")
    images = {"device-plugin": {"name": "docker.io/lab/device-plugin:v1@sha256:00", "archive": "device-plugin.tar"}}
    written = inventory.variables_of(
        lab, images, tmp_path / "images", "v1.20.2", "11", "k3s-airgap-images-amd64.tar", "22"
    )
    assert written["lab_images"] == {
        "device_plugin": {
            "name": "docker.io/lab/device-plugin:v1@sha256:00",
            "archive": str(tmp_path / "images/device-plugin.tar"),
        }
    }
    assert written["lab_k3s"] == {
        "version": "v1.20.2",
        "directory": str(tmp_path / ".lab/k3s"),
        "binary_sha256": "11",
        "airgap": "k3s-airgap-images-amd64.tar",
        "airgap_sha256": "22",
    }


def test_two_labs_do_not_share_ansibles_connections(tmp_path: Path) -> None:
    folders = {
        inventory.variables_of(Lab(tmp_path / name, tmp_path), {}, tmp_path, "", "", "", "")["ansible_control_path_dir"]
        for name in "ab"
    }
    assert len(folders) == 2


def test_further_nodes_are_agents(tmp_path: Path) -> None:
    assert inventory.hosts_of(Lab(tmp_path, tmp_path).nodes(3)[2:]) == {
        "k3s_agent": {"hosts": {"lab3": {"ansible_host": "10.77.0.13", "cluster_address": "10.77.0.13"}}}
    }
