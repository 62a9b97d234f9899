# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What goes wrong on a standing cluster is told in one message, in bounded time, and is healed by the next run."""

from __future__ import annotations

from lab_site import Site


def test_worker_that_cannot_start_is_told_with_its_reason(site: Site) -> None:
    site.standing()
    site.spoiled()
    run = site.play("serving.yml", variables={"serving_overrides": {"decode": {"args": ["--no-such-flag"]}}})

    message = run.refused()
    wanted = ("infera-decode-lab2", "CrashLoopBackOff", "exit code 2", "--no-such-flag", "Fix:")
    assert [word for word in wanted if word not in message] == [], message
    # Not the pods themselves, in full: the reader would look for the reason among their managed fields.
    assert "managedFields" not in run.output

    site.play("site.yml").succeeded()
    site.play("site.yml").unchanged()
    site.stands()


def test_host_that_vanishes_while_its_connection_is_open_is_told(site: Site) -> None:
    site.standing()
    preflight = ["timeout", "150", "ansible-playbook", "-i", "inventories/lab", "playbooks/preflight.yml"]
    site.runs.command("preflight.yml, to open connections", preflight).succeeded()
    site.cli("fault", "node-unreachable", "on", "--node", "lab2")
    try:
        run = site.runs.command("preflight.yml, lab2 silent", preflight)
    finally:
        site.cli("fault", "node-unreachable", "off", "--node", "lab2")

    assert run.status not in (0, 124), f"ended with {run.status} after {run.seconds:.0f} s; 124: it hung"
    assert "[error host_unreachable] lab2" in run.output, run.output[-3000:]
    site.runs.command("preflight.yml, lab2 is back", preflight).succeeded()
