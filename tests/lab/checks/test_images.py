# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The images stage against a real containerd: one of its own on a lab node, apart from that of k3s.

tests/lab/enter .venv/bin/pytest tests/lab/checks/test_images.py

LAB_SSH_CONFIG and LAB_CHECK_NODE name another place and node than the lab's own.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import signal
import socket
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[3]
_DIR = "/mnt/data/images-check"
_SOCKET = "/run/images-check/c.sock"
_UNIT = "images-check"
_USER = "images-check"
_STAGING = f"{_DIR}/staging"
_PINNED = "io.cri-containerd.pinned=pinned"


@dataclass(frozen=True)
class Node:
    """A lab node with a containerd that is this test's own."""

    name: str
    ssh_config: Path

    def run(self, command: str, check: bool = True) -> str:
        done = subprocess.run(
            ["ssh", "-F", str(self.ssh_config), self.name, command], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 or not check, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def ctr(self, arguments: str) -> str:
        return self.run(f"ctr -a {_SOCKET} -n k8s.io {arguments}")

    def names(self) -> dict[str, str]:
        """Name -> the line that ctr prints of it, without the names that CRI gives."""
        lines = self.ctr("images ls").splitlines()[1:]
        return {line.split()[0]: line for line in lines if not line.startswith("sha256:")}

    def clear(self) -> None:
        self.run(f"ctr -a {_SOCKET} -n k8s.io images ls -q | xargs -r ctr -a {_SOCKET} -n k8s.io images rm --sync")
        self.run(f"rm -rf {_STAGING}")

    def staged(self) -> str:
        return self.run(f"ls -A {_STAGING}", check=False)


@pytest.fixture(scope="module", name="node")
def private_containerd() -> Iterator[Node]:
    """The node, its containerd started; all of it is removed afterwards."""
    ssh_config = Path(os.environ.get("LAB_SSH_CONFIG") or _ROOT / ".lab" / "ssh_config")
    if not ssh_config.exists():
        pytest.skip(f"no lab: {ssh_config} does not exist (LAB_SSH_CONFIG)")
    # Outside of the lab's namespace its addresses would be sent to this machine's network.
    if "mgmt0" not in [name for _index, name in socket.if_nameindex()]:
        pytest.skip("no lab: not in its network namespace (tests/lab/enter)")
    node = Node(os.environ.get("LAB_CHECK_NODE") or "lab1", ssh_config)
    if "up" not in node.run("echo up", check=False):
        pytest.skip(f"no lab: {node.name} does not answer")
    remove = (
        f"systemctl stop {_UNIT} 2>/dev/null; systemctl reset-failed {_UNIT} 2>/dev/null; rm -rf {_DIR} /run/images-check; "
        f"rm -f /etc/sudoers.d/{_USER}; userdel -r {_USER} 2>/dev/null; true"
    )
    node.run(remove)
    start = f"containerd --root {_DIR}/root --state /run/images-check --address {_SOCKET}"
    node.run(f"mkdir -p {_DIR} && systemd-run -q --unit {_UNIT} {start}")
    node.run(f"for i in $(seq 100); do ctr -a {_SOCKET} version > /dev/null 2>&1 && exit 0; sleep 0.1; done; exit 1")
    yield node
    node.run(remove)


@pytest.fixture(autouse=True)
def fresh(node: Node) -> None:
    node.clear()


class Image:
    """An archive of one random layer, and the name that pins it."""

    def __init__(self, folder: Path, name: str, size: int = 200_000) -> None:
        self.path = folder / f"{name}.tar"
        layer = io.BytesIO()
        with tarfile.open(fileobj=layer, mode="w") as tar:
            info = tarfile.TarInfo(f"{name}.bin")
            info.size = size
            tar.addfile(info, io.BytesIO(os.urandom(size)))
        self.layer = layer.getvalue()
        diff = f"sha256:{hashlib.sha256(self.layer).hexdigest()}"
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {},
            "rootfs": {"type": "layers", "diff_ids": [diff]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": self._blob("application/vnd.oci.image.config.v1+json", json.dumps(config).encode()),
            "layers": [self._blob("application/vnd.oci.image.layer.v1.tar", self.layer)],
        }
        target = self._blob(manifest["mediaType"], json.dumps(manifest).encode())
        self.digest = target["digest"]
        self.repository = f"docker.io/check/{name}"
        self.tagged = f"{self.repository}:v1"
        self.lookup = f"{self.repository}@{self.digest}"
        # The layer in the middle, so that an error in it comes after good blobs and before the index.
        self.write(target)

    def _blob(self, media_type: str, content: bytes) -> dict[str, Any]:
        if not hasattr(self, "blobs"):
            self.blobs: dict[str, bytes] = {}
        digest = hashlib.sha256(content).hexdigest()
        self.blobs[f"blobs/sha256/{digest}"] = content
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def write(self, target: dict[str, Any]) -> None:
        files = {"oci-layout": b'{"imageLayoutVersion":"1.0.0"}', **self.blobs}
        files["index.json"] = json.dumps({"schemaVersion": 2, "manifests": [target]}).encode()
        with tarfile.open(self.path, "w") as tar:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))

    @property
    def entry(self) -> dict[str, str]:
        return {"name": f"{self.tagged}@{self.digest}", "archive": str(self.path)}


class Play:
    """ansible-playbook with one task against the node."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.folder = folder
        inventory = {
            "all": {
                "hosts": {node.name: {}},
                "vars": {
                    "ansible_ssh_common_args": f"-F {node.ssh_config}",
                    "ansible_python_interpreter": "/usr/bin/python3",
                },
            }
        }
        (folder / "hosts.yml").write_text(json.dumps(inventory), encoding="utf-8")

    def command(self, options: dict[str, Any], *arguments: str, **play: Any) -> list[str]:
        task = {"ctr": ["ctr", "-a", _SOCKET], "staging_dir": _STAGING, **options}
        plays = [
            {"hosts": "all", "gather_facts": False, **play, "tasks": [{"infera.baremetal.containerd_image": task}]}
        ]
        (self.folder / "play.yml").write_text(json.dumps(plays), encoding="utf-8")
        return ["ansible-playbook", "-i", str(self.folder / "hosts.yml"), str(self.folder / "play.yml"), *arguments]

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "ANSIBLE_COLLECTIONS_PATH": str(_ROOT / ".collections"),
            "ANSIBLE_PIPELINING": "true",
            "ANSIBLE_NOCOLOR": "true",
            "ANSIBLE_CALLBACK_RESULT_FORMAT": "json",
            "ANSIBLE_CALLBACK_FORMAT_PRETTY": "false",
            "PATH": f"{_ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
        }

    def run(self, options: dict[str, Any], *arguments: str, **play: Any) -> str:
        done = subprocess.run(
            self.command(options, *arguments, **play),
            capture_output=True,
            text=True,
            check=False,
            env=self.environment(),
            cwd=_ROOT,
        )
        return done.stdout + done.stderr

    def kill_when(self, node: Node, condition: str, options: dict[str, Any]) -> None:
        """Starts the run and kills all of it, without a chance to tidy up, once a condition holds on the node."""
        # The watch comes first: on a busy machine a connection can take longer than the state that is waited for.
        watch = f"echo watching; for i in $(seq 3000); do {condition} && exit 0; sleep 0.02; done; exit 1"
        with subprocess.Popen(
            ["ssh", "-F", str(node.ssh_config), node.name, watch], stdout=subprocess.PIPE, text=True
        ) as watcher:
            assert watcher.stdout is not None and watcher.stdout.readline() == "watching\n"
            with subprocess.Popen(
                self.command(options),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env=self.environment(),
                cwd=_ROOT,
                start_new_session=True,
            ) as process:
                held = watcher.wait() == 0
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                assert held, f"never: {condition}\n{process.communicate()[0]}"


@pytest.fixture(name="play")
def one_play(node: Node, tmp_path: Path) -> Play:
    return Play(node, tmp_path)


def assert_settled(node: Node, *images: Image) -> None:
    names = node.names()
    for image in images:
        for name in (image.lookup, image.tagged):
            assert image.digest in names[name]
            assert _PINNED in names[name]
    checked = node.ctr("images check").splitlines()[1:]
    assert all(" complete " in line and line.rstrip().endswith("true") for line in checked), "whole and unpacked"
    assert node.staged() == ""


def test_images_get_both_names_and_the_label_and_a_second_run_is_one_call(node, play, tmp_path):
    one, two = Image(tmp_path, "one"), Image(tmp_path, "two")
    options = {"images": [one.entry, two.entry]}

    predicted = play.run(options, "--check", "--diff")
    assert "changed=1" in predicted
    assert f"+{one.tagged} {one.digest} pinned" in predicted
    assert node.names() == {}

    first = play.run(options)
    assert "changed=1" in first
    assert_settled(node, one, two)

    second = play.run(options, "-vvv")
    assert "changed=0" in second
    assert second.count("SSH: EXEC") == 1

    one.path.unlink()
    assert "changed=0" in play.run(options), "an image that is there does not need its archive"


def test_query_and_absent(node, play, tmp_path):
    one = Image(tmp_path, "one")

    assert f'"missing": ["{one.entry["name"]}"]' in play.run({**one.entry, "state": "query"}, "-v")
    play.run(one.entry)
    assert '"missing": []' in play.run({**one.entry, "state": "query"}, "-v")
    assert "changed=1" in play.run({**one.entry, "state": "absent"})
    assert "changed=0" in play.run({**one.entry, "state": "absent"})
    assert node.ctr("images ls -q") == ""
    assert node.ctr("content ls -q") == "", "the content is released"


def test_a_wrong_digest_sends_and_imports_nothing(node, play, tmp_path):
    one, two = Image(tmp_path, "one"), Image(tmp_path, "two")
    wrong = {"name": two.entry["name"], "archive": one.entry["archive"]}

    output = play.run({"images": [one.entry, wrong]}, "-vvv")

    assert "image_digest_mismatch" in output
    assert two.digest in output
    assert "SSH: EXEC sftp" not in output
    assert "PUT " not in output.replace("PUT /dev", "")
    assert node.names() == {}
    assert node.ctr("content ls -q") == ""


@pytest.mark.parametrize("where", ["controller", "node"])
def test_a_bad_layer_leaves_neither_a_name_nor_content(where, node, play, tmp_path):
    one = Image(tmp_path, "one", 3_000_000)
    content = one.path.read_bytes()
    at = content.index(one.layer[2_000_000:2_000_064])
    one.path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    archive = str(one.path)
    if where == "node":
        archive = f"{_DIR}/bad.tar"
        subprocess.run(["scp", "-q", "-F", str(node.ssh_config), str(one.path), f"{node.name}:{archive}"], check=True)

    output = play.run({"name": one.entry["name"], "archive": archive, "archive_on": where})

    assert "image_blob_corrupt" in output
    assert "Traceback" not in output
    assert node.ctr("images ls -q") == ""
    # ctr gave up its lease when the stream ended; the collector has nothing to hold on to
    node.run("sleep 1")
    assert node.ctr("leases ls -q") == ""


def test_content_that_was_lost_is_brought_again(node, play, tmp_path):
    one = Image(tmp_path, "one")
    play.run(one.entry)
    node.ctr(f"content rm sha256:{hashlib.sha256(one.layer).hexdigest()}")

    assert one.entry["name"] in play.run({**one.entry, "state": "query"}, "-v").partition('"missing"')[2]
    assert "changed=1" in play.run(one.entry)
    assert_settled(node, one)


def test_names_and_labels_that_were_lost_come_back_without_a_transfer(node, play, tmp_path):
    one = Image(tmp_path, "one")
    play.run(one.entry)
    node.ctr(f"images rm {one.lookup}")
    node.ctr(f"images label {one.tagged} io.cri-containerd.pinned=")
    one.path.unlink()

    assert "changed=1" in play.run(one.entry)
    assert_settled(node, one)


def test_a_tag_moves_to_the_new_content_and_the_old_content_stays(node, play, tmp_path):
    old, new = Image(tmp_path, "one"), Image(tmp_path, "one")
    old_entry = {**old.entry, "archive": str(tmp_path / "old.tar")}
    play.run(new.entry)  # both wrote one.tar; the newer is there
    assert old_entry["name"] != new.entry["name"]
    newest = Image(tmp_path, "one")

    assert "changed=1" in play.run(newest.entry)

    assert_settled(node, newest)
    assert new.lookup in node.names()


def test_an_index_of_platforms_is_pinned_as_a_whole(node, play, tmp_path):
    one = Image(tmp_path, "one")
    manifest = {"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": one.digest}
    manifest["size"] = len(one.blobs[f"blobs/sha256/{one.digest[7:]}"])
    manifest["platform"] = {"os": "linux", "architecture": "amd64"}
    index_type = "application/vnd.oci.image.index.v1+json"
    index = {"schemaVersion": 2, "mediaType": index_type, "manifests": [manifest]}
    target = one._blob(index_type, json.dumps(index).encode())
    one.write(target)
    inner = one.lookup
    one.digest, one.lookup = target["digest"], f"{one.repository}@{target['digest']}"

    assert "changed=1" in play.run(one.entry)

    assert_settled(node, one)
    assert inner not in node.names()


_LISTED = f"ctr -a {_SOCKET} -n k8s.io images ls"


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param(f"[ -d {_STAGING} ]", id="a place is made"),
        pytest.param(f"find {_STAGING} -size +4M 2>/dev/null | grep -q .", id="the first archive is half there"),
        pytest.param("pgrep -f '[i]mages import' > /dev/null", id="the first import runs"),
        pytest.param(f"{_LISTED} -q | grep -q check/one", id="the first image has a name"),
        pytest.param(f"{_LISTED} | grep -q {_PINNED}", id="the first image is pinned"),
        pytest.param(
            f"{_LISTED} -q | grep -q check/one && find {_STAGING} -size +4M 2>/dev/null | grep -q .",
            id="the second archive is half there",
        ),
        pytest.param(f"{_LISTED} -q | grep -q check/two", id="the second image has a name"),
    ],
)
def test_a_killed_run_is_healed_by_the_next(condition, node, play, tmp_path):
    one, two = Image(tmp_path, "one", 30_000_000), Image(tmp_path, "two", 30_000_000)
    options = {"images": [one.entry, two.entry]}

    play.kill_when(node, condition, options)
    output = play.run(options)

    assert "failed=0" in output, output
    assert_settled(node, one, two)


def test_what_a_killed_run_left_is_used_or_removed(node, play, tmp_path):
    one = Image(tmp_path, "one", 1_000_000)
    name = f"{one.digest[7:]}-{one.path.stat().st_size}.staged"
    node.run(f"mkdir -p {_STAGING} && echo junk > {_STAGING}/old-1.staged")
    subprocess.run(
        ["scp", "-q", "-F", str(node.ssh_config), str(one.path), f"{node.name}:{_STAGING}/{name}"], check=True
    )

    output = play.run(one.entry, "-vvv")

    assert "changed=1" in output
    assert str(one.path) not in "".join(line for line in output.splitlines() if "PUT" in line)
    assert_settled(node, one)


def test_a_disk_without_space_is_told_before_the_transfer(node, play, tmp_path):
    one = Image(tmp_path, "one", 3_000_000)
    node.run(f"mkdir -p {_DIR}/small && mount -t tmpfs -o size=2m none {_DIR}/small")
    try:
        output = play.run({**one.entry, "staging_dir": f"{_DIR}/small/staging"})
    finally:
        node.run(f"umount {_DIR}/small")

    assert "image_no_space" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("ctr", "code"),
    [(["no-such-ctr"], "containerd_ctr_missing"), (["ctr", "-a", "/run/none.sock"], "containerd_unreachable")],
)
def test_a_containerd_that_is_not_there_is_told(ctr, code, node, play, tmp_path):
    one = Image(tmp_path, "one")

    for_real = play.run({**one.entry, "ctr": ctr})
    predicted = play.run({**one.entry, "ctr": ctr}, "--check")

    assert code in for_real
    assert "Traceback" not in for_real
    assert "failed=0" in predicted
    assert "changed=1" in predicted


def test_an_account_without_rights_sends_and_sudo_imports(node, play, tmp_path):
    one = Image(tmp_path, "one")
    if "sudo" not in node.run("command -v sudo", check=False):
        pytest.skip(f"{node.name} has no sudo")
    node.run(
        f"useradd -m -p '*' {_USER} && mkdir -p ~{_USER}/.ssh && cp ~/.ssh/authorized_keys ~{_USER}/.ssh/ && "
        f"chown -R {_USER}: ~{_USER} && echo '{_USER} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/{_USER}"
    )

    output = play.run(one.entry, remote_user=_USER, become=True)

    assert "changed=1" in output, output
    assert_settled(node, one)
