# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.modules import port_probe

OPTIONS = {
    "host": "gpu1",
    "address": "127.0.0.1",
    "ports": ["16443/tcp"],
    "seconds": 5,
    "targets": [],
    "timeout": 1.0,
    "concurrency": 4,
}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"state": "listening", "seconds": 0}, "seconds is 0; it must be from 1 to 3600"),
        ({"state": "listening", "ports": ["6443"]}, "'6443' is not a port"),
        ({"state": "listening", "address": "gpu1"}, "'gpu1' is not an IP address"),
        ({"state": "probed", "timeout": 0.0}, "timeout is 0.0; it must be above 0"),
        ({"state": "probed", "targets": [{"host": "b", "address": "10.1.0.2", "ports": ["x"]}]}, "'x' is not a port"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        port_probe.run({**OPTIONS, **options})


def test_a_host_without_peers_has_nothing_to_ask() -> None:
    alone = [{"host": "gpu1", "address": "127.0.0.1", "ports": ["16443/tcp"], "answers": True}]

    assert port_probe.run({**OPTIONS, "state": "probed", "targets": alone}) == {"results": []}
