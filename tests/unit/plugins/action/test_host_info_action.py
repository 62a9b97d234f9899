# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from ansible_collections.infera.baremetal.plugins.action.host_info import clock_bounds


def test_a_host_30_seconds_ahead_is_known_within_the_cost_of_the_connection() -> None:
    # The controller's clock: asked at 100, answered at 104. The host read its clock at 101 (131) and at 103.5 (133.5).
    assert clock_bounds(131.0, 133.5, before=100.0, after=104.0) == {"ahead_min": 29.5, "ahead_max": 31.0}
