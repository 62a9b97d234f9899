# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The module's own part: modes, check mode, secrets, and what is told of the unit."""

from __future__ import annotations

import json

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.infera.baremetal.plugins.module_utils.systemd import Unit
from ansible_collections.infera.baremetal.plugins.modules import managed_files


def run(capsys, **options):
    with patch_module_args(options), pytest.raises(SystemExit) as ended:
        managed_files.main()
    return ended.value.code, capsys.readouterr().out


def test_modes_default_by_kind_and_a_secret_is_nowhere_in_the_result(tmp_path, capsys):
    files = [
        {"path": str(tmp_path / "unit"), "content": "x"},
        {"path": str(tmp_path / "token")},
        {"path": str(tmp_path / "config"), "content": "y", "mode": "0600"},
    ]

    code, out = run(capsys, files=files, secrets={str(tmp_path / "token"): "hunter2hunter2"})

    assert code == 0
    assert json.loads(out)["changed"] is True
    assert "hunter2" not in out
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("unit", "token", "config")] == [0o644, 0o600, 0o600]


def test_a_secret_of_several_lines_is_not_logged(tmp_path, capsys, monkeypatch):
    logged = []
    monkeypatch.setattr(
        AnsibleModule, "log", lambda _self, message, log_args=None: logged.append(f"{message} {log_args}")
    )
    path = str(tmp_path / "registries.yaml")

    run(capsys, files=[{"path": path}], secrets={path: "user: lab\npassword: hunter2\n"})

    assert "registries.yaml" in logged[0]
    assert "hunter2" not in " ".join(logged)


def test_a_secret_without_its_file_or_beside_another_text_is_refused(tmp_path, capsys):
    path = str(tmp_path / "token")

    for files, words in (([], "is not in files"), ([{"path": path, "content": "x"}], "in files and in secrets")):
        code, out = run(capsys, files=files, secrets={path: "hunter2hunter2"})
        assert code == 1
        assert words in json.loads(out)["msg"]
        assert "hunter2" not in out


def test_check_mode_predicts_and_writes_nothing(tmp_path, capsys):
    path = tmp_path / "unit"

    _code, out = run(capsys, files=[{"path": str(path), "content": "x"}], _ansible_check_mode=True)

    assert json.loads(out)["paths"] == [str(path)]
    assert not path.exists()


def test_a_file_newer_than_the_running_unit_is_a_change(tmp_path, capsys, monkeypatch):
    path = tmp_path / "config"
    path.write_text("x")
    path.chmod(0o644)
    started = int(path.stat().st_mtime) - 10
    monkeypatch.setattr(managed_files, "read_unit", lambda name: Unit(name, True, "active", 0, started))

    _code, out = run(capsys, unit="k3s", files=[{"path": str(path), "content": "x"}])

    result = json.loads(out)
    assert (result["changed"], result["paths"], result["unseen"]) == (True, [], [str(path)])


def test_a_mode_that_is_no_octal_number_is_one_line(tmp_path, capsys):
    code, out = run(capsys, files=[{"path": str(tmp_path / "a"), "content": "x", "mode": "u=rw"}])

    assert code == 1
    assert "octal" in json.loads(out)["msg"]
