# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The main job in check mode on fresh nodes: it ends well, says what it would do, and does nothing."""

from __future__ import annotations

from lab_places import ARTIFACTS
from lab_site import Site


def test_site_predicts_on_fresh_nodes_and_changes_nothing(site: Site) -> None:
    with site.untouched():
        run = site.play("site.yml", "--check", "--diff").succeeded()
    assert run.changed > 0, "nothing was predicted"
    assert "+data-dir: /mnt/data/k3s" in run.output, "no diff of k3s's configuration was shown"
    assert not (ARTIFACTS / "kubeconfig").exists()


def test_agent_alone_is_refused_while_there_is_no_server(site: Site) -> None:
    with site.untouched():
        message = site.play("site.yml", "--limit", "lab2").refused()
    assert [word for word in ("lab1", "lab2", "Fix:") if word not in message] == [], message
