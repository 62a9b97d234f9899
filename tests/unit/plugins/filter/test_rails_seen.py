# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the role registered on each host, as one mapping."""

from __future__ import annotations

from ansible_collections.infera.baremetal.plugins.filter.rails_seen import rails_seen

RAIL = {"index": 0}
PROBE = {"rail": 0, "peer": "b", "peer_rail": 0, "verdict": "no_reply"}
AGAIN = {**PROBE, "verdict": "routable"}
OTHER = {**PROBE, "peer_rail": 1}


def test_the_first_look_at_a_pair_of_rails_counts_and_a_second_adds_what_is_new():
    hostvars = {
        "a": {"read": {"rails": [RAIL], "findings": []}, "one": {"probes": [PROBE]}, "two": {"probes": [AGAIN, OTHER]}}
    }

    assert rails_seen(["a"], hostvars, "read", ["one", "two"]) == {
        "a": {"rails": [RAIL], "findings": [], "probes": [PROBE, OTHER], "unprobed": []}
    }


def test_a_host_that_could_not_be_read_or_tried_keeps_the_reason():
    hostvars = {
        "gone": {"read": {"unreachable": True, "msg": "no route to host"}, "one": {"skipped": True}},
        "denied": {"read": {"rails": [RAIL], "findings": []}, "one": {"failed": True, "msg": "needs root"}},
        "never": {},
    }

    seen = rails_seen(["gone", "denied", "never"], hostvars, "read", ["one"])

    assert seen["gone"] == {"rails": [], "findings": [], "probes": [], "unprobed": [], "error": "no route to host"}
    assert seen["denied"]["error"] == "needs root"
    assert seen["never"]["error"] == "its rails were not read"
