# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""layouts/advertise/ holds one file a host: C(about) says what it stands for, C(ip) is what C(ip -j -d address show) prints (keys
that are not read left out), C(sysfs) what C(/sys/class/net) holds, C(options) the module's, C(routes) what the kernel answers to
C("SOURCE DESTINATION") (no entry: no route), C(expect) the answer, worked out by hand.

An entry of C(sysfs) is virtual without C(device) (the path below C(/sys/devices)); C(bus) is the device's subsystem, C(lower) what
it is stacked on, C(physfn) makes it a virtual function, C(ifindex) replaces the index that C(ip) shows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.infera.baremetal.plugins.module_utils.routes import Query, Route

FOLDER = Path(__file__).parent / "layouts" / "advertise"
OPTIONS = {
    "family": "ipv4",
    "interface": "",
    "address": "",
    "prefer_cidrs": [],
    "exclude_cidrs": [],
    "allow_public": False,
    "allow_cgnat": False,
    "peers": [],
}


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.iterdir())


def load(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yml").read_text(encoding="utf-8"))


def lay_out(layout: dict[str, Any], root: Path) -> Path:
    """The layout's sysfs below a folder, linked as the kernel links it."""
    classes = root / "class" / "net"
    classes.mkdir(parents=True)
    indices = {entry["ifname"]: entry["ifindex"] for entry in layout["ip"] if entry}
    for name, entry in layout["sysfs"].items():
        parent = root / "devices" / entry.get("device", "virtual")
        home = parent / "net" / name
        home.mkdir(parents=True)
        (home / "ifindex").write_text(f"{entry.get('ifindex', indices[name])}\n")
        (classes / name).symlink_to(home)
        if "device" in entry:
            (home / "device").symlink_to(parent)
            bus = root / "bus" / entry.get("bus", "pci")
            bus.mkdir(parents=True, exist_ok=True)
            (parent / "subsystem").symlink_to(bus)
        if entry.get("physfn"):
            (parent / "physfn").symlink_to(root)
    for name, entry in layout["sysfs"].items():
        for lower in entry.get("lower", []):
            # Of what is gone meanwhile the link dangles.
            (classes / name / f"lower_{lower}").symlink_to(classes / lower)
    return root


def run(layout: dict[str, Any]) -> Callable[[Sequence[str]], tuple[int, str]]:
    """A host on which C(ip) lists the layout's interfaces."""

    def answer(command: Sequence[str]) -> tuple[int, str]:
        assert list(command) == ["ip", "-j", "-d", "address", "show"]
        return 0, json.dumps(layout["ip"])

    return answer


def routes(layout: dict[str, Any]) -> Callable[[Sequence[Query]], list[Route]]:
    """A kernel that answers as the layout says."""
    known = {question: Route(**answer) for question, answer in layout.get("routes", {}).items()}

    def answer(queries: Sequence[Query]) -> list[Route]:
        return [known.get(f"{query.source} {query.destination}", Route("none")) for query in queries]

    return answer
