# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import json
import os

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.record import RecordError, write_stage


def test_a_stage_replaces_its_own_result_and_leaves_the_others(tmp_path):
    path = str(tmp_path / "artifacts" / "east" / "record.json")
    write_stage(path, "preflight", {"findings": [1]})
    write_stage(path, "images", {"count": 3})
    write_stage(path, "preflight", {"findings": []})

    record = json.loads((tmp_path / "artifacts" / "east" / "record.json").read_text())

    assert record["preflight"]["findings"] == []
    assert record["images"]["count"] == 3
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


@pytest.mark.parametrize("text", ["{", "[]", "1"])
def test_a_broken_record_is_named_and_not_overwritten(tmp_path, text):
    path = tmp_path / "record.json"
    path.write_text(text)

    with pytest.raises(RecordError, match="record.json"):
        write_stage(str(path), "images", {})
    assert path.read_text() == text


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(RecordError, match="cluster_dir"):
        write_stage(str(tmp_path / "file" / "record.json"), "images", {})
