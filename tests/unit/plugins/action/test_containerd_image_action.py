# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side: what is checked before anything is sent, what is sent, and what is left behind (nothing).

The host is a double: it answers the module's calls from a scripted plan and keeps what is sent in a folder.
"""

from __future__ import annotations

import os
import shutil
from unittest.mock import MagicMock

import pytest
from ansible.errors import AnsibleError
from ansible_collections.infera.baremetal.plugins.action import containerd_image
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.test_node_images import archive

GB = 10**9


class Host:
    """What the module on the node would say. C(present) are the names it has; C(calls) the steps that were asked of it."""

    def __init__(self, folder, free_bytes=100 * GB):
        self.folder = folder
        self.free_bytes = free_bytes
        self.present = set()
        self.calls = []
        self.sent = []
        self.import_answers = []
        self.on_send = MagicMock()

    def execute(self, module_name, module_args, task_vars):
        assert module_name == "infera.baremetal.containerd_image"
        step = module_args.get("stage", {}).get("step", module_args["state"])
        self.calls.append((step, module_args))
        names = [str(parse(image["name"])) for image in module_args.get("images", [])]
        if step == "discard":
            shutil.rmtree(self.folder, ignore_errors=True)
            return {"changed": False}
        if step == "import":
            answer = self.import_answers.pop(0) if self.import_answers else None
            for image in module_args["images"]:
                if os.path.exists(image["archive"]):
                    os.unlink(image["archive"])
            if answer:
                return answer
            self.present.update(names)
        images = [{"name": name, "present": name in self.present} for name in names]
        missing = [image["name"] for image in images if not image["present"]]
        result = {"changed": False, "images": images, "missing": missing, "reachable": True, "needed": missing}
        result["diff"] = {"before": "", "after": "".join(f"{name}\n" for name in sorted(self.present))}
        if step == "plan" and missing and not task_vars.get("check"):
            self.folder.mkdir(exist_ok=True)
            files = {path.name: path.stat().st_size for path in self.folder.iterdir()}
            result["staging"] = {"path": str(self.folder), "free_bytes": self.free_bytes, "files": files}
        return result

    def send(self, local, remote):
        self.on_send()
        self.sent.append((local, remote))
        shutil.copy(local, remote)

    def steps(self):
        return [step for step, _arguments in self.calls]


@pytest.fixture(name="host")
def one_host(tmp_path):
    return Host(tmp_path / "staging")


@pytest.fixture(autouse=True)
def run_folder(tmp_path, monkeypatch):
    """The run's own temporary folder, in which its processes share what they found."""
    monkeypatch.setattr(containerd_image.C, "DEFAULT_LOCAL_TMP", str(tmp_path / "run"))


def run(host, check_mode=False, become=False, **arguments):
    task = MagicMock(async_val=0, check_mode=check_mode, args={"staging_dir": str(host.folder), **arguments})
    task.action = "infera.baremetal.containerd_image"
    action = containerd_image.ActionModule(
        task, MagicMock(), MagicMock(become=become, check_mode=check_mode), MagicMock(), MagicMock(), MagicMock()
    )
    action._execute_module = host.execute
    action._transfer_file = host.send
    action._get_remote_user = lambda: "admin"
    action.get_become_option = lambda option, default=None: "root"
    return action.run(task_vars={"inventory_hostname": "node1", "check": check_mode})


def image(folder, name="engine", payload=b"layer"):
    path, digest = archive(folder, payload, f"{name}.tar")
    return {"name": f"docker.io/lab/{name}:v1@{digest}", "archive": path}


def codes(result):
    assert result["failed"] is True
    return [finding["code"] for finding in result["findings"]]


def test_present_is_one_call_and_no_look_at_the_archive(host, tmp_path):
    wanted = {**image(tmp_path), "archive": "/no/such/archive.tar"}
    host.present.add(wanted["name"])

    result = run(host, images=[wanted])

    assert host.steps() == ["plan"]
    assert result["changed"] is False
    assert result["missing"] == []
    assert "needed" not in result


def test_what_is_missing_is_sent_and_imported_one_after_the_other(host, tmp_path):
    first, second, third = (image(tmp_path, name, name.encode()) for name in ("one", "two", "three"))
    host.present.add(second["name"])

    result = run(host, images=[first, second, third])

    assert host.steps() == ["plan", "import", "import"]
    assert [local for local, _remote in host.sent] == [first["archive"], third["archive"]]
    assert all(remote.endswith(".staged") for _local, remote in host.sent)
    assert result["changed"] is True
    assert result["missing"] == []
    assert [entry["name"] for entry in result["images"]] == [first["name"], second["name"], third["name"]]
    assert all(entry["present"] for entry in result["images"])


def test_two_names_of_one_archive_are_one_shipment(host, tmp_path):
    first = image(tmp_path)
    second = {**first, "name": first["name"].replace("engine", "mirror")}

    result = run(host, images=[first, second])

    assert len(host.sent) == 1
    assert result["missing"] == []


def test_a_single_image_comes_back_as_image(host, tmp_path):
    wanted = image(tmp_path)

    host_answer = run(host, name=wanted["name"], archive=wanted["archive"])

    # the double answers for `images` only; what matters is that the import was asked for this name
    assert host.calls[0][1]["name"] == wanted["name"]
    assert "failed" not in host_answer


def test_a_wrong_digest_stops_before_anything_is_sent(host, tmp_path):
    good = image(tmp_path, "one", b"one")
    wrong = {**image(tmp_path, "two", b"two"), "name": "docker.io/lab/two:v1@sha256:" + "0" * 64}
    absent = {"name": "docker.io/lab/three:v1@sha256:" + "1" * 64, "archive": str(tmp_path / "none.tar")}
    unset = {"name": "docker.io/lab/four:v1@sha256:" + "2" * 64}

    result = run(host, images=[good, wrong, absent, unset])

    assert codes(result) == ["image_digest_mismatch", "image_archive_missing", "image_archive_unset"]
    assert f"controller:{wrong['archive']}" in result["msg"]
    assert host.sent == []
    assert host.steps() == ["plan", "discard"]
    assert not host.folder.exists()


def test_wrong_names_stop_before_the_host_is_asked(host):
    result = run(host, images=[{"name": "lab/a:v1"}, {"name": "LAB"}])

    assert codes(result) == ["image_not_pinned", "image_name_invalid"]
    assert host.calls == []


def test_no_images_are_no_call(host):
    assert run(host, images=[])["changed"] is False
    assert host.calls == []


def test_check_mode_checks_the_archive_and_sends_nothing(host, tmp_path):
    result = run(host, check_mode=True, images=[image(tmp_path)])
    wrong = run(host, check_mode=True, images=[{**image(tmp_path), "name": "lab/a:v1@sha256:" + "0" * 64}])

    assert "failed" not in result
    assert codes(wrong) == ["image_digest_mismatch"]
    assert host.sent == []
    assert not host.folder.exists()


@pytest.mark.parametrize("arguments", [{"archive_on": "node"}, {"state": "absent"}, {"state": "query"}])
def test_without_a_transfer_the_module_does_it_all(arguments, host, tmp_path):
    wanted = image(tmp_path)

    run(host, images=[wanted], **arguments)

    ((step, given),) = host.calls
    assert step == arguments.get("state", "present")
    assert "stage" not in given
    assert host.sent == []


def test_too_little_space_stops_before_anything_is_sent(tmp_path):
    host = Host(tmp_path / "staging", free_bytes=1000)

    result = run(host, images=[image(tmp_path)])

    assert codes(result) == ["image_no_space"]
    assert "images_staging_dir" in result["msg"]
    assert result["findings"][0]["where"] == "node1"
    assert host.sent == []
    assert not host.folder.exists()


def test_a_transfer_that_breaks_leaves_nothing_behind(host, tmp_path):
    host.on_send.side_effect = AnsibleError("failed to transfer file: No space left on device")

    result = run(host, images=[image(tmp_path)])

    assert codes(result) == ["image_transfer_failed"]
    assert "No space left on device" in result["msg"]
    assert host.steps() == ["plan", "discard"]
    assert not host.folder.exists()


def test_an_interrupted_transfer_leaves_nothing_behind(host, tmp_path):
    host.on_send.side_effect = KeyboardInterrupt()

    with pytest.raises(KeyboardInterrupt):
        run(host, images=[image(tmp_path)])

    assert not host.folder.exists()


def test_a_failed_import_stops_the_rest_and_leaves_nothing_behind(host, tmp_path):
    host.import_answers = [{"failed": True, "msg": "no space", "findings": [{"code": "image_no_space"}]}]

    result = run(host, images=[image(tmp_path, "one", b"1"), image(tmp_path, "two", b"2")])

    assert codes(result) == ["image_no_space"]
    assert len(host.sent) == 1
    assert host.steps() == ["plan", "import", "discard"]


def staged_name(wanted):
    digest = wanted["name"].rpartition(":")[2]
    return f"{digest}-{os.path.getsize(wanted['archive'])}.staged"


def test_what_a_killed_run_sent_is_used(host, tmp_path):
    wanted = image(tmp_path)
    host.folder.mkdir()
    shutil.copy(wanted["archive"], host.folder / staged_name(wanted))

    result = run(host, images=[wanted])

    assert host.calls[0][1]["stage"]["keep"] == [staged_name(wanted)]
    assert host.sent == []
    assert result["missing"] == []


def test_what_a_killed_run_sent_in_part_is_sent_again(host, tmp_path):
    wanted = image(tmp_path)
    host.folder.mkdir()
    (host.folder / staged_name(wanted)).write_bytes(b"half")

    run(host, images=[wanted])

    assert len(host.sent) == 1


def test_what_a_killed_run_damaged_is_sent_again(host, tmp_path):
    wanted = image(tmp_path)
    host.folder.mkdir()
    (host.folder / staged_name(wanted)).write_bytes(b"x" * os.path.getsize(wanted["archive"]))
    host.import_answers = [{"failed": True, "msg": "bad", "findings": [{"code": "image_archive_not_oci"}]}]

    result = run(host, images=[wanted])

    assert host.steps() == ["plan", "import", "plan", "import"]
    assert len(host.sent) == 1
    assert result["missing"] == []


def test_the_sending_account_owns_the_staging_folder(host, tmp_path):
    run(host, become=True, images=[image(tmp_path)])

    assert host.calls[0][1]["stage"]["owner"] == "admin"


def test_an_archive_is_read_once_for_all_hosts(tmp_path, monkeypatch):
    wanted = image(tmp_path)
    hosts = [Host(tmp_path / f"staging{number}") for number in range(3)]
    run(hosts[0], images=[wanted])
    monkeypatch.setattr(
        containerd_image.check.__globals__["OciArchive"], "verify", MagicMock(side_effect=AssertionError)
    )

    results = [run(host, images=[wanted]) for host in hosts[1:]]

    assert [result["missing"] for result in results] == [[], []]


def test_an_archive_that_changes_during_the_run_is_read_again(tmp_path):
    wanted = image(tmp_path)
    run(Host(tmp_path / "one"), images=[wanted])
    with open(wanted["archive"], "ab") as file:
        file.truncate(600)

    assert codes(run(Host(tmp_path / "two"), images=[wanted])) == ["image_archive_truncated"]


def test_a_bad_archive_is_bad_for_all_hosts(tmp_path):
    wanted = {**image(tmp_path), "name": "lab/a:v1@sha256:" + "0" * 64}

    first, second = (run(Host(tmp_path / name), images=[wanted]) for name in ("one", "two"))

    assert codes(first) == codes(second) == ["image_digest_mismatch"]
    assert first["msg"] == second["msg"]
