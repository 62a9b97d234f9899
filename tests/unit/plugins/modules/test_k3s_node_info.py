# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module's own part: what it returns, and when it fails. What it reads is tested with module_utils."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.k3s_node import Node
from ansible_collections.infera.baremetal.plugins.module_utils.systemd import Unit
from ansible_collections.infera.baremetal.plugins.modules import k3s_node_info

NODE = Node(
    Unit("k3s", True, "active", 0, 1000, enabled=True),
    "v1.36.2+k3s1",
    {"data-dir": "/data/k3s"},
    True,
    "v1.36.2+k3s1",
    "10.1.0.1",
)
OPTIONS = {"unit": "k3s", "name": "gpu1", "data_dir": "/data/k3s"}


def run(capsys, **options):
    with patch_module_args({**OPTIONS, **options}), pytest.raises(SystemExit) as ended:
        k3s_node_info.main()
    return ended.value.code, json.loads(capsys.readouterr().out)


def test_looks_once_and_never_fails(monkeypatch, capsys):
    monkeypatch.setattr(k3s_node_info, "read_node", lambda target: NODE)

    code, result = run(capsys)

    assert code == 0
    assert result["changed"] is False
    assert result["node"] == {
        "installed_version": "v1.36.2+k3s1",
        "loaded": True,
        "running": True,
        "enabled": True,
        "needs_reload": False,
        "unit_state": "active",
        "data_dir": "/data/k3s",
        "config": {"data-dir": "/data/k3s"},
        "ready": True,
        "version": "v1.36.2+k3s1",
        "address": "10.1.0.1",
        "selinux": False,
    }


def test_waits_and_fails_with_the_cause_in_one_message(monkeypatch, capsys):
    waited = []

    def wait(target, seconds):
        waited.append((target.name, seconds))
        return NODE, [Finding("k3s_disk_full", "error", "the disk is full", "Make room.", where="gpu1")]

    monkeypatch.setattr(k3s_node_info, "wait_until_settled", wait)

    code, result = run(capsys, wait="30")

    assert code == 1
    assert waited == [("gpu1", 30)]
    assert result["msg"] == "gpu1 is not Ready after 0 s.\n[error k3s_disk_full] gpu1: the disk is full Fix: Make room."
    assert [finding["code"] for finding in result["findings"]] == ["k3s_disk_full"]
