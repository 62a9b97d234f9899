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
from lab_secrets import known, shown
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


def survey_variables() -> dict[str, str]:
    """Every public variable whose plain default is no string, as the string that a survey hands over: "300", "true", "a,b", "{}"."""
    found: dict[str, str] = {}
    for role in ROLES:
        folder = CHECKOUT / "roles" / role
        defaults = yaml.safe_load((folder / "defaults/main.yml").read_text()) or {}
        options = yaml.safe_load((folder / "meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]
        for name, value in defaults.items():
            if not isinstance(value, str) and options[name].get("elements") != "dict":
                found[name] = survey_text(value)
    return found


def survey_text(value: Any) -> str:
    """A value as one types it into a survey."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return json.dumps(value)


def test_second_run_changes_nothing(site: Site) -> None:
    assert site.second().changed == 0


def test_prediction_on_a_standing_cluster_changes_nothing(site: Site) -> None:
    site.standing()
    run = site.play("site.yml", "--check", "--diff").unchanged()
    assert "->" in run.output.split("Show the answer")[1], "the model was not asked"


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
    job = _job(tmp_path, {**survey_variables(), **_own_variables(site)})
    inventory = str(CHECKOUT / "inventories/lab")
    command = ["ansible-runner", "run", str(job), "--playbook", "site.yml", "--inventory", inventory, "--ident", "1"]
    run = site.runs.command("ansible-runner, string extra vars", command, environment=environment_of(installed))
    run.unchanged()
    assert (job / "artifacts/1/rc").read_text() == "0"
    # What AWX keeps of a job, all of it; the collection came from the artifact.
    kept = "".join(path.read_text(errors="replace") for path in (job / "artifacts").rglob("*") if path.is_file())
    assert shown(known(site), kept) == []
    events = "".join(path.read_text() for path in (job / "artifacts/1/job_events").glob("*.json"))
    paths = set(re.findall(r'"task_path": "([^"]+)/roles/', events))
    assert paths == {f"{installed}/ansible_collections/infera/baremetal"}


def _own_variables(site: Site) -> dict[str, str]:
    """What this site sets, over the defaults; the inventory's own settings are not touched."""
    given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in site.variables.items()}
    waived = {"preflight_waive": "swap_on,inotify_low", "serving_engine": "sglang", "cluster_dir": str(ARTIFACTS)}
    return {**given, **waived}


def _job(folder: Path, variables: dict[str, str]) -> Path:
    """A private data directory as AWX makes it: a project with a playbook file, extra vars, a command line."""
    assert all(isinstance(value, str) for value in variables.values())
    inventory = yaml.safe_load((CHECKOUT / "inventories/lab/group_vars/all/main.yml").read_text())
    job = folder / "job"
    for name in ("project", "env"):
        (job / name).mkdir(parents=True)
    (job / "project/site.yml").write_text(
        "---\n- name: Site\n  ansible.builtin.import_playbook: infera.baremetal.site\n"
    )
    extra = {name: value for name, value in variables.items() if name not in inventory}
    (job / "env/extravars").write_text(json.dumps(extra))
    (job / "env/cmdline").write_text("--diff")
    return job
