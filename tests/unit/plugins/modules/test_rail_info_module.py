# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.modules import rail_info

OPTIONS = {"sysfs_root": "/nonexistent", "vendor_ids": [], "expected": 0}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"expected": -1}, "expected is -1; it must be 0 or more"),
        ({"vendor_ids": ["ionic"]}, "'ionic' is not a PCI vendor id; write it as '0x1dd8'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rail_info.run({**OPTIONS, **options})


@pytest.mark.parametrize("answer", [(127, ""), (0, "[]")])
def test_a_host_without_rdma_is_a_finding(
    answer: tuple[int, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rail_info, "run_command", lambda command: answer)

    result = rail_info.run({**OPTIONS, "sysfs_root": str(tmp_path)})

    assert result["rails"] == []
    assert [finding["code"] for finding in result["findings"]] == ["rails_none"]
