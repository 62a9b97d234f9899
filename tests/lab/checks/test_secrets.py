# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""No secret is seen by who should not see it: not in outputs at -vvv with --diff, arguments, units, journals, records, facts."""

from __future__ import annotations

import stat
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from lab_places import ARTIFACTS, FACTS
from lab_processes import Sampler
from lab_secrets import known, shown
from lab_site import Site


@pytest.fixture(name="secrets", scope="module")
def _secrets(site: Site) -> dict[str, str]:
    site.standing()
    return known(site)


def test_the_sampler_sees_arguments() -> None:
    with Sampler() as sampler:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(0.6)", "lab-check-canary"], check=True)
    assert "lab-check-canary" in sampler.text


def test_output_at_vvv_with_diff(site: Site, secrets: dict[str, str]) -> None:
    run = site.standing()
    # It was loud, and it showed diffs: else nothing would be proven.
    assert "ESTABLISH SSH CONNECTION" in run.output and "+data-dir: /mnt/data/k3s" in run.output
    assert shown(secrets, run.output) == []


def test_arguments_of_processes_while_it_ran(site: Site, secrets: dict[str, str]) -> None:
    site.standing()
    # The machine sees the processes of its containers: controller and nodes at once.
    assert "/usr/local/bin/k3s server" in site.sampled and "ansible-playbook" in site.sampled
    assert shown(secrets, site.sampled) == []


def test_arguments_of_processes_that_stay(site: Site, secrets: dict[str, str]) -> None:
    site.standing()
    with Sampler() as sampler:
        time.sleep(1)
    assert "kubelet" in sampler.text
    assert shown(secrets, sampler.text) == []


def test_journals_and_logs_of_the_nodes(site: Site, secrets: dict[str, str]) -> None:
    site.standing()
    for node in site.nodes.values():
        journal = node.run("journalctl --no-pager; cat /var/log/*.log /var/log/pods/*/*/*.log 2>/dev/null; true")
        assert "k3s is up and running" in journal or "kubelet" in journal
        assert shown(secrets, journal) == [], node.name


def test_units(site: Site, secrets: dict[str, str]) -> None:
    site.standing()
    for node in site.nodes.values():
        units = node.run("cat /etc/systemd/system/k3s*.service; systemctl show 'k3s*'")
        assert "ExecStart" in units
        assert shown(secrets, units) == [], node.name


def test_files_on_the_nodes_that_hold_one_are_private(site: Site, secrets: dict[str, str]) -> None:
    site.standing()
    expected = {"/etc/rancher/k3s/token", "/etc/rancher/k3s/registries.yaml", "/etc/rancher/node/password"}
    for name, node in site.nodes.items():
        found = dict(_holders(node, secrets))
        assert expected <= set(found), f"{name}: the search did not find what is known to be there: {sorted(found)}"
        assert {path: oct(mode) for path, mode in found.items() if mode & 0o077} == {}, name


def _holders(node, secrets: dict[str, str]) -> Iterator[tuple[str, int]]:
    """(path, mode that others meet) of the files with a secret in them; the patterns go in by standard input, not by argument."""
    patterns = "\n".join(secrets.values())
    command = "grep -rlaF -f /dev/stdin /etc /root /home /usr/local /var/lib /var/tmp /tmp /run/k3s /mnt/data 2>/dev/null; true"
    for path in node.feed(command, patterns).splitlines():
        modes = [int(mode, 8) for mode in node.lines(f"stat -c %a {_parents(path)}")]
        # A file in a folder that is closed to others is closed itself.
        yield path, modes[0] if all(mode & 0o005 for mode in modes[1:]) else modes[0] & 0o700


def _parents(path: str) -> str:
    parts = path.split("/")[1:]
    return " ".join(f"'/{'/'.join(parts[:length])}'" for length in range(len(parts), 0, -1))


def test_controller_keeps_them_in_the_kubeconfig_alone(site: Site, secrets: dict[str, str]) -> None:
    site.standing()
    holders = {
        path.name
        for path in ARTIFACTS.rglob("*")
        if path.is_file() and shown(secrets, path.read_text(errors="replace"))
    }
    assert holders == {"kubeconfig"}
    for path in ARTIFACTS.rglob("*"):
        if path.is_file():
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert stat.S_IMODE(ARTIFACTS.stat().st_mode) & 0o022 == 0


def test_facts_that_a_cache_would_keep(site: Site, secrets: dict[str, str]) -> None:
    site.second()
    kept = "".join(path.read_text() for path in FACTS.rglob("*") if path.is_file())
    assert shown(secrets, kept) == []
