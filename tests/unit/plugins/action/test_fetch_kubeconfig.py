# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A kubeconfig on its way to the controller: private, told truly, shown nowhere."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.infera.baremetal.plugins.action.fetch_kubeconfig import ActionModule
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run

K3S = """
clusters: [{name: default, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: default, user: {client-key-data: hunter2}}]
"""


class Fetching(ActionModule):
    """Answers in the place of slurp, and notes whether the connection was told to be silent meanwhile."""

    answer: dict[str, Any] = {"content": base64.b64encode(K3S.encode()).decode()}
    silent: list[bool] = []

    def _execute_module(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        type(self).silent.append(self._play_context.no_log)
        return self.answer


def fetch(path: Path, **options: Any) -> dict[str, Any]:
    return run(Fetching, dest=str(path), server="https://10.1.0.1:6443", name="east", **options)


def test_it_is_private_and_points_at_the_server_and_a_second_time_nothing_changes(tmp_path: Path) -> None:
    path = tmp_path / "artifacts/kubeconfig"

    first, second = fetch(path), fetch(path)

    assert (first["changed"], second["changed"]) == (True, False)
    assert path.stat().st_mode & 0o777 == 0o600
    assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == "https://10.1.0.1:6443"
    assert "hunter2" not in str(first)
    assert Fetching.silent[-1] is True


def test_check_mode_writes_nothing(tmp_path: Path) -> None:
    result = fetch(tmp_path / "kubeconfig", check_mode=True)

    assert result["changed"]
    assert not (tmp_path / "kubeconfig").exists()


def test_what_cannot_be_read_or_is_none_is_one_line_without_its_text(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(Fetching, "answer", {"failed": True, "msg": "file not found"})
    assert fetch(tmp_path / "a")["msg"] == "/etc/rancher/k3s/k3s.yaml cannot be read: file not found"
    monkeypatch.setattr(Fetching, "answer", {"content": base64.b64encode(b"users: hunter2").decode()})
    assert fetch(tmp_path / "a")["msg"] == "the server's kubeconfig is not one: KeyError"
