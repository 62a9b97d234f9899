# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs for one host of a standing cluster: a new agent joins with what its server says, and not without it."""

from __future__ import annotations

import lab_state
from lab_site import Site

RESET = {"reset_confirm": "lab"}


def test_agent_leaves_and_joins_again_alone(site: Site) -> None:
    site.standing()
    site.spoiled()
    site.play("reset.yml", "--limit", "lab2", variables=RESET).succeeded()

    site.cli("fault", "node-unreachable", "on", "--node", "lab1")
    try:
        site.nodes["lab2"].mark()
        message = site.play("site.yml", "--limit", "lab2").refused()
        assert [word for word in ("lab1", "10.77.0.11", "Fix:") if word not in message] == [], message
        assert site.nodes["lab2"].written() == []
    finally:
        site.cli("fault", "node-unreachable", "off", "--node", "lab1")

    run = site.play("site.yml", "--limit", "lab2").succeeded()
    assert set(run.hosts) == {"lab2"}, "only the new agent was to be worked on"
    assert run.hosts["lab2"]["changed"] > 0
    site.play("site.yml", "--diff").unchanged()
    assert lab_state.difference(site.first_state, lab_state.of(site)) == ""
    site.stands()
