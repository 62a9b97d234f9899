# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import json

import pytest
from ansible.errors import AnsibleError
from ansible_collections.infera.baremetal.plugins.action.cluster_record import ActionModule as ClusterRecord
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run


def test_the_record_is_written_and_counts_as_no_change(tmp_path):
    path = tmp_path / "artifacts" / "record.json"

    result = run(ClusterRecord, path=str(path), stage="images", result={"hosts": {"gpu1": 3}})

    assert result["changed"] is False
    assert json.loads(path.read_text())["images"]["hosts"] == {"gpu1": 3}


def test_check_mode_writes_no_record(tmp_path):
    run(ClusterRecord, check_mode=True, path=str(tmp_path / "record.json"), stage="images", result={})

    assert list(tmp_path.iterdir()) == []


def test_a_record_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(AnsibleError, match="cluster_dir"):
        run(ClusterRecord, path=str(tmp_path / "file" / "record.json"), stage="images", result={})
