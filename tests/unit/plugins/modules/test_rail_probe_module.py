# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.rail_probe import VERDICTS
from ansible_collections.infera.baremetal.plugins.modules import rail_probe

OPTIONS = {
    "rails": [],
    "peers": [],
    "host": "gpu1",
    "pairing": "same_index",
    "count": 3,
    "interval": 0.2,
    "timeout": 1.0,
    "jumbo": False,
    "concurrency": 1024,
    "rate": 1000.0,
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "count is 0; it must be from 1 to 100"),
        ({"timeout": 0.0}, "timeout is 0.0; it must be from 0.001 to 60"),
        ({"interval": 0.0}, "interval is 0.0; it must be from 0.01 to 60"),
        ({"rate": 1e6}, "rate is 1000000.0; it must be from 1 to 10000"),
        ({"concurrency": 0}, "concurrency is 0; it must be from 1 to 65536"),
    ],
)
def test_what_would_flood_or_never_end_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rail_probe.run({**OPTIONS, **options})


def test_a_host_without_rails_or_peers_has_nothing_to_ask() -> None:
    peers = [{"host": "gpu2", "rails": []}]

    result = rail_probe.run({**OPTIONS, "peers": peers})

    assert result["probes"] == []
    assert result["summary"]["verdicts"] == dict.fromkeys(VERDICTS, 0)
    assert result["summary"]["unprobed"] == [{"peer": "gpu2", "rail": None, "reason": "gpu2 has no rails"}]
