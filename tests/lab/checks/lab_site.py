# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lab's nodes as the checks see them: fresh or with a cluster, read over ssh, made anew by the lab."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import lab_state
from lab_places import ARTIFACTS, CHECKOUT, FACTS
from lab_processes import Sampler
from lab_runs import Run, Runs

sys.path.insert(0, str(CHECKOUT / "tests" / "lab"))

from infera_lab import ssh, state
from infera_lab.plan import Lab

# Where the collection, or anything that it starts, could write on a node.
WATCHED = "/etc /usr/local /usr/lib/systemd /opt /var/lib /var/spool /root /srv /run/systemd/system /mnt/data"
MARK = "/dev/shm/infera-check-mark"


class Node:
    """One node, over ssh."""

    def __init__(self, lab: Lab, name: str) -> None:
        self.name = name
        self._config = ssh.config(lab)

    def run(self, command: str, *, check: bool = True) -> str:
        """The standard output of a shell command."""
        done = subprocess.run(
            ["ssh", "-F", str(self._config), self.name, command],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=False,
        )
        assert done.returncode == 0 or not check, (
            f"{self.name}: {command}: exit {done.returncode}: {done.stdout}{done.stderr}"
        )
        return done.stdout

    def feed(self, command: str, text: str) -> str:
        """The output of a command that reads a text from its standard input."""
        done = subprocess.run(
            ["ssh", "-F", str(self._config), self.name, command],
            input=text,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=120,
            check=True,
        )
        return done.stdout

    def lines(self, command: str) -> list[str]:
        """The lines of a command's output."""
        return self.run(command).splitlines()

    def mark(self) -> None:
        """Remember this moment; `written` tells what came after it."""
        self.run(f"touch {MARK}")

    def written(self) -> list[str]:
        """Files and folders that are newer than the mark. Ansible's own scratch folder is not counted."""
        return self.lines(
            f"find {WATCHED} -xdev -newer {MARK} -not -path '/root/.ansible*' -not -path /root -not -path '/var/lib/systemd/*' 2>/dev/null; true"
        )

    def inventory_of_files(self) -> list[str]:
        """Every path where the collection, or what it starts, could have left something."""
        return self.lines(
            f"find {WATCHED} /var/log/pods /var/log/containers /run/k3s /run/flannel -xdev -not -path '/root/.ansible*'"
            " -not -path '/var/lib/systemd/*' -not -path '*/lost+found' -printf '%p %y\\n' 2>/dev/null | LC_ALL=C sort"
        )


@dataclass(frozen=True)
class Requirements:
    """Names and folders of one lab."""

    lab: Lab

    @property
    def names(self) -> list[str]:
        known = state.load(self.lab)
        assert known is not None and known.complete, "the lab is down: make lab brings it up"
        return [node.name for node in self.lab.nodes(known.nodes)]


class Site:
    """The nodes and what stands on them. A check says what it needs; nothing is built that stands already."""

    def __init__(self, runs: Runs, say: Callable[[str], None]) -> None:
        self.lab = Lab(CHECKOUT, Path.home() / ".cache" / "infera-lab")
        self.runs = runs
        self._say = say
        self._state = "unknown"
        self.first: Run | None = None
        # What the first, undisturbed run left, and what every process's arguments were meanwhile.
        self.first_state: dict[str, list[str]] | None = None
        self.sampled = ""
        self._second: Run | None = None
        self._installation_failed = False
        self.fresh_files: dict[str, list[str]] = {}
        # Values whose whereabouts the checks look for; they travel in a file, never on a command line.
        self.variables: dict[str, Any] = {
            "k3s_token": "lab-check-token-0fb7a1c96d",
            "k3s_registries": {
                "configs": {"registry.lab": {"auth": {"username": "lab", "password": "lab-check-registry-5d27e0"}}}
            },
            "k3s_environment": {"LAB_CHECK": "lab-check-environment-93ab41"},
        }

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Name -> node."""
        return {name: Node(self.lab, name) for name in Requirements(self.lab).names}

    def play(self, playbook: str, *arguments: str, variables: dict[str, Any] | None = None, **options: Any) -> Run:
        """A playbook with the site's variables, and some of the check's own."""
        return self.runs.play(playbook, *arguments, variables={**self.variables, **(variables or {})}, **options)

    def fresh(self) -> None:
        """Nodes on which nothing was ever installed."""
        if self._state != "fresh":
            self.renew(*self.nodes)
            shutil.rmtree(ARTIFACTS, ignore_errors=True)
            self.fresh_files = {name: node.inventory_of_files() for name, node in self.nodes.items()}
        self._state = "fresh"

    def standing(self) -> Run:
        """A cluster that answers, made by one undisturbed run; that run, with all that it can print."""
        if self._state != "standing" or self.first is None:
            assert not self._installation_failed, (
                "the installation failed before, and is not tried again for each check"
            )
            self.fresh()
            self._state = "unknown"
            self._installation_failed = True
            with Sampler() as sampler:
                self.first = self.play("site.yml", "--diff", "-vvv").succeeded()
            self._installation_failed = False
            self.sampled = sampler.text
            self.first_state = lab_state.of(self)
        self._state = "standing"
        return self.first

    def stands(self) -> None:
        """The check that took the cluster apart has seen that it is whole again."""
        self._state = "standing"

    def was_reset(self) -> None:
        """The check has seen that the nodes are fresh, though not new."""
        shutil.rmtree(ARTIFACTS, ignore_errors=True)
        self._state = "fresh"

    def second(self) -> Run:
        """A second run on what stands, with a cache of facts; it changed nothing."""
        self.standing()
        if self._second is None:
            shutil.rmtree(FACTS, ignore_errors=True)
            cache = {"ANSIBLE_CACHE_PLUGIN": "ansible.builtin.jsonfile", "ANSIBLE_CACHE_PLUGIN_CONNECTION": str(FACTS)}
            self._second = self.play("site.yml", "--diff", environment=cache).unchanged()
        return self._second

    def reuse(self) -> None:
        """Take what stands for the work of an undisturbed run: for working on one check that does not read that run's output."""
        self.first = Run("reused", 0, "", 0.0)
        self.first_state = lab_state.of(self)
        self._state = "standing"

    def spoiled(self) -> None:
        """What stands is not what the checks expect any more."""
        self._state = "unknown"

    def renew(self, *names: str) -> None:
        """Make nodes anew, with empty disks: `lab up` does, where a container is gone."""
        self._say(f"making anew: {', '.join(names)}")
        containers = [self.lab.node(name).container for name in names]
        subprocess.run(
            ["podman", "rm", "--force", "--ignore", "--time", "2", *containers], check=True, capture_output=True
        )
        self.cli("up")

    def cli(self, *arguments: str) -> None:
        """The lab's own command line."""
        done = subprocess.run(
            [CHECKOUT / "tests" / "lab" / "lab", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"lab {' '.join(arguments)}: {done.stdout}{done.stderr}"

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Fresh nodes, on which nothing is written meanwhile, and no service of k3s appears."""
        self.fresh()
        # Until it is certain that they still are.
        self._state = "unknown"
        for node in self.nodes.values():
            node.mark()
        yield
        for node in self.nodes.values():
            written = node.written()
            assert written == [], f"{node.name} was changed: {written[:20]}"
            units = (
                "systemctl list-unit-files --no-legend 'k3s*'; ls -d /etc/rancher /usr/local/bin/k3s 2>/dev/null; true"
            )
            assert node.lines(units) == []
        self._state = "fresh"

    def record(self) -> dict[str, Any]:
        """The cluster record."""
        return json.loads((ARTIFACTS / "record.json").read_text())

    def kubectl(self, *arguments: str) -> Any:
        """What kubectl says, as data."""
        environment = {**os.environ, "KUBECONFIG": str(ARTIFACTS / "kubeconfig")}
        done = subprocess.run(
            ["kubectl", *arguments, "-o", "json"], capture_output=True, text=True, env=environment, check=False
        )
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return json.loads(done.stdout) if done.stdout.strip() else None

    def objects(self, kinds: Iterable[str], namespace: str) -> list[dict[str, Any]]:
        """Objects of some kinds in a namespace."""
        return self.kubectl("get", ",".join(kinds), "--namespace", namespace)["items"]
