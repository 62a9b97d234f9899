# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The ways to start the main job agree: against the cluster that the checkout's playbook made, each changes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_places import ARTIFACTS, CHECKOUT
from lab_site import Site

ROLES = ("cluster", "preflight", "k3s", "images", "gpu_plugin", "serving", "verify")


@pytest.fixture(name="installed", scope="module")
def _installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built collection, installed into an empty folder, with a configuration that says nothing."""
    folder = tmp_path_factory.mktemp("installed")
    (folder / "ansible.cfg").touch()
    galaxy = [str(CHECKOUT / ".venv/bin/ansible-galaxy"), "collection"]
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    subprocess.run(
        [*galaxy, "build", "--output-path", folder, CHECKOUT], check=True, capture_output=True, env=environment
    )
    (artifact,) = folder.glob("infera-baremetal-*.tar.gz")
    subprocess.run(
        [*galaxy, "install", "--offline", "--no-deps", "-p", folder, artifact],
        check=True,
        capture_output=True,
        env=environment,
    )
    return folder


def environment_of(installed: Path) -> dict[str, str]:
    """Nothing of the checkout but the lab's inventory and its recipe."""
    return {
        "ANSIBLE_COLLECTIONS_PATH": str(installed),
        "ANSIBLE_CONFIG": str(installed / "ansible.cfg"),
        "PYTHONPATH": "",
        "ANSIBLE_DIFF_ALWAYS": "true",
    }


def string_variables() -> dict[str, str]:
    """Every public variable that is a number or a truth, with its default, as the string that a survey hands over."""
    found: dict[str, str] = {}
    for role in ROLES:
        folder = CHECKOUT / "roles" / role
        defaults = yaml.safe_load((folder / "defaults/main.yml").read_text()) or {}
        options = yaml.safe_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
        for name, option in options.items():
            default = defaults.get(name)
            if option["type"] in ("bool", "int", "float") and default is not None and "{{" not in str(default):
                found[name] = str(default).lower()
    return found


def test_second_run_changes_nothing(site: Site) -> None:
    site.standing()
    site.play("site.yml", "--diff").unchanged()


def test_artifact_in_an_empty_folder(site: Site, installed: Path, tmp_path: Path) -> None:
    site.standing()
    variables = tmp_path / "variables.json"
    variables.write_text(json.dumps({**site.variables, "cluster_dir": str(ARTIFACTS)}))
    command = [
        "ansible-playbook",
        "-i",
        str(CHECKOUT / "inventories/lab"),
        "infera.baremetal.site",
        "-e",
        f"@{variables}",
    ]
    run = site.runs.command(
        "infera.baremetal.site, built and installed", command, cwd=tmp_path, environment=environment_of(installed)
    )
    run.unchanged()


def test_job_as_awx_starts_it(site: Site, installed: Path, tmp_path: Path) -> None:
    site.standing()
    job = _job(
        tmp_path, site, {**string_variables(), "serving_engine": "sglang", "preflight_waive": "swap_on,inotify_low"}
    )
    inventory = str(CHECKOUT / "inventories/lab")
    command = ["ansible-runner", "run", str(job), "--playbook", "site.yml", "--inventory", inventory, "--ident", "1"]
    run = site.runs.command("ansible-runner, string extra vars", command, environment=environment_of(installed))
    run.unchanged()
    assert (job / "artifacts/1/rc").read_text() == "0"
    # The collection came from the artifact.
    events = "".join(path.read_text() for path in (job / "artifacts/1/job_events").glob("*.json"))
    paths = set(re.findall(r'"task_path": "([^"]+)/roles/', events))
    assert paths == {f"{installed}/ansible_collections/infera/baremetal"}


def _job(folder: Path, site: Site, variables: dict[str, str]) -> Path:
    """A private data directory as AWX makes it: a project with a playbook file, extra vars, a command line."""
    assert all(isinstance(value, str) for value in variables.values())
    job = folder / "job"
    for name in ("project", "env"):
        (job / name).mkdir(parents=True)
    (job / "project/site.yml").write_text(
        "---\n- name: Site\n  ansible.builtin.import_playbook: infera.baremetal.site\n"
    )
    # Extra vars of a job template: all strings. The credentials of the site come as AWX injects them: structured.
    extra: dict[str, Any] = {**site.variables, **variables, "cluster_dir": str(ARTIFACTS)}
    (job / "env/extravars").write_text(json.dumps(extra))
    (job / "env/cmdline").write_text("--diff")
    return job
