# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a node holds after the whole run: where k3s keeps its files, who may read them, and what nobody may see."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

DATA_DIR = "/mnt/data/k3s"
ROOT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
SERVER = "lab1"


@pytest.fixture(name="name")
def _name(host):
    return host.check_output("hostname")


@pytest.fixture(name="unit")
def _unit(name):
    return "k3s" if name == SERVER else "k3s-agent"


@pytest.fixture(name="secrets")
def _secrets(host, name):
    """Values that only root may read on the server's or the agent's disk."""
    token = host.file(f"{DATA_DIR}/server/token" if name == SERVER else "/etc/rancher/k3s/token").content_string.strip()
    password = host.file("/etc/rancher/node/password").content_string.strip()
    assert len(token) > 20 and len(password) > 10
    # The whole token, and the password in it, which is the secret part.
    return [token, token.rsplit(":", 1)[-1], password]


def test_files_are_below_the_data_dir(host, name):
    for folder in ["agent/images", "agent/containerd", *(["server/db", "server/tls"] if name == SERVER else [])]:
        assert host.file(f"{DATA_DIR}/{folder}").is_directory
    assert not host.file("/var/lib/rancher").exists
    assert host.check_output(f"stat -c %m {DATA_DIR}") == "/mnt/data"


def test_the_running_process_uses_the_data_dir(host, unit):
    containerd = host.check_output("pgrep -a containerd | grep -v shim")
    assert DATA_DIR in containerd
    assert f"data-dir: {DATA_DIR}" in host.file("/etc/rancher/k3s/config.yaml").content_string
    assert host.service(unit).is_running


def test_secret_files_belong_to_root_alone(host, name):
    files = ["/etc/rancher/k3s/config.yaml", "/etc/rancher/node/password"]
    if name == SERVER:
        # node-token is a link to token.
        files += ["/etc/rancher/k3s/k3s.yaml", f"{DATA_DIR}/server/token"]
    else:
        files += ["/etc/rancher/k3s/token"]
    for path in files:
        file = host.file(path)
        assert (file.user, file.group, oct(file.mode)) == ("root", "root", "0o600"), path


def test_no_other_file_holds_a_secret_for_all_to_read(host, secrets):
    # Readable by others, on the whole node but for the kernel's own trees.
    found = host.run(
        "find / -xdev -type f -perm /044 -size -1M -not -path '/proc/*' -not -path '/sys/*' -print0 2>/dev/null"
        " | xargs -0 grep -lF -e '%s' -e '%s' 2>/dev/null",
        secrets[1],
        secrets[2],
    ).stdout.split()
    open_to_others = [path for path in found if not _in_private_folder(host, path)]
    assert open_to_others == []


def _in_private_folder(host, path):
    """Whether a folder above the path keeps others out."""
    return any(not host.file(str(parent)).mode & 0o005 for parent in Path(path).parents if str(parent) != "/")


def test_units_are_as_k3s_wants_them(host, unit):
    service = host.service(unit)
    assert service.is_running
    assert service.is_enabled
    expected = {"Type": "notify", "KillMode": "process", "Delegate": "yes", "TimeoutStartUSec": "infinity"}
    assert {key: service.systemd_properties[key] for key in expected} == expected


def test_nothing_secret_in_processes_units_or_journal(host, secrets):
    # /proc as a stranger sees it: every process's arguments. Nothing of this test may hold the secret itself, so it is compared here.
    arguments = host.check_output("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '; true")
    units = host.check_output("cat /etc/systemd/system/k3s*; systemctl show 'k3s*'")
    journal = host.check_output("journalctl --no-pager -o cat")
    assert len(journal) > 1000, "the journal was not read"
    for what, text in (("processes", arguments), ("units", units), ("journal", journal)):
        assert [secret[:4] + "..." for secret in secrets if secret in text] == [], what


def test_images_are_there_by_digest_and_pinned(host):
    lines = host.check_output("k3s ctr -n k8s.io images ls").splitlines()
    labels = {line.split()[0]: line for line in lines[1:]}
    for image in json.loads((ROOT / ".lab/images/images.json").read_text()).values():
        repository, digest = re.fullmatch(r"(.+):[^:@]+@(sha256:[0-9a-f]{64})", image["name"]).groups()
        if "k3s-airgap" in image["archive"]:
            continue  # k3s's own import; it is not the images stage's.
        name = f"{repository}@{digest}"
        assert name in labels
        assert "io.cri-containerd.pinned=pinned" in labels[name]
        assert digest in labels[name].split()[1:4]


def test_no_archive_is_left_behind(host):
    assert host.check_output(f"find {DATA_DIR} -name '.infera-staging*' -type f -o -path '*infera-staging/*'") == ""
    assert sorted(host.file(f"{DATA_DIR}/agent/images").listdir()) == ["k3s-airgap-images-amd64.tar"]
