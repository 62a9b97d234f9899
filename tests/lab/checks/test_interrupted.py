# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A run that is killed and started again ends where an undisturbed one ends.

SIGKILL to the whole process group, five times, each time further on: what a kill leaves half done is what the next run finds.
What goes on over ssh on a node at that moment is not killed; it ends when it ends, as it does when a controller dies.
"""

from __future__ import annotations

import lab_state
from lab_site import Site

# (lines of the output, one after the other; seconds after the last), in the order of the run.
AGENTS = r"^PLAY \[Join the k3s agents\]"
KILLS = (
    ((r"^TASK .*Copy the archive beside the folder",), 0.3),
    ((r"^TASK .*Wait until the node is Ready",), 2.0),
    ((AGENTS, r"^TASK .*Write what k3s reads"), 0.5),
    ((r"^TASK .*images : Import what is missing",), 1.5),
    ((r"^TASK .*serving : Apply router and workers, and wait",), 0.7),
)


def test_killed_five_times(site: Site) -> None:
    if site.first_state is None:
        site.standing()
    expected = site.first_state
    site.fresh()
    site.spoiled()
    for lines, seconds in KILLS:
        run = site.play("site.yml", kill_at=lines, kill_after=seconds)
        assert run.killed, f"the run was over before it could be killed at {lines[-1]}: {run.output[-2000:]}"
    site.play("site.yml").succeeded()
    site.play("site.yml", "--diff").unchanged()
    assert lab_state.difference(expected, lab_state.of(site)) == ""
    site.stands()
