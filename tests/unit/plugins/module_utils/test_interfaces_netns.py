# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Real interfaces, sysfs and routes, in network and mount namespaces without a name that end with the process that made them.

No namespace holds a NIC. So veths stand for them: the tree that is read is the namespace's own sysfs, link by link, with a
C(device) put under those."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.advertise import Wishes, choose
from ansible_collections.infera.baremetal.plugins.module_utils.interfaces import read_interfaces
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import read_text
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.interface_layouts import OPTIONS

CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SECONDS = 30


def command(line: str) -> None:
    subprocess.run(line.split(" "), check=True, capture_output=True, timeout=10)


def kernel(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def enter(root: Path) -> None:
    """New namespaces for this process, with their sysfs mounted below C(root)."""
    kernel("unshare", CLONE_NEWNET | CLONE_NEWNS)
    kernel("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    root.mkdir()
    kernel("mount", b"sysfs", str(root).encode(), b"sysfs", 0, None)


def inside(root: Path, work: Callable[[], Any]) -> Any:
    """What C(work) returns in namespaces of its own; within SECONDS."""
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)
            enter(root)
            answer = {"value": work()}
        except subprocess.CalledProcessError as error:
            told = f"{' '.join(error.cmd)}: {error.stderr.decode().strip()}"
            lacking = "Unknown device type" in told or "not supported" in told
            answer = {"skip" if lacking else "error": told}
        except BaseException:
            answer = {"error": traceback.format_exc()}
        os.write(writable, json.dumps(answer).encode())
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    answer = json.loads(text or '{"error": "no answer in time"}')
    if "skip" in answer:
        pytest.skip(f"this kernel lacks it: {answer['skip']}")
    assert "error" not in answer, answer["error"]
    return answer["value"]


@functools.cache
def obstacle() -> str:
    """Why there can be no namespaces here, empty where there can."""
    if not sys.platform.startswith("linux") or not shutil.which("ip"):
        return "needs Linux and iproute2"
    done = subprocess.run(
        [sys.executable, "-c", f"import ctypes; exit(ctypes.CDLL(None).unshare({CLONE_NEWNET | CLONE_NEWNS}) != 0)"],
        check=False,
        timeout=10,
    )
    return "namespaces cannot be made here (not root?)" if done.returncode else ""


@pytest.fixture(autouse=True)
def fixture_namespaces() -> None:
    if obstacle():
        pytest.skip(obstacle())


def with_devices(sysfs: Path, nics: Sequence[str], tree: Path) -> Path:
    """The namespace's sysfs as links, with a device under each of the C(nics)."""
    classes = tree / "class" / "net"
    classes.mkdir(parents=True)
    (tree / "device").mkdir()
    for real in (sysfs / "class" / "net").iterdir():
        # bonding_masters is a file among the interfaces.
        if not real.is_dir():
            continue
        home = classes / real.name
        home.mkdir()
        for entry in real.resolve().iterdir():
            (home / entry.name).symlink_to(entry)
        if real.name in nics:
            (home / "device").symlink_to(tree / "device")
    return tree


def settle(sysfs_root: Path, carrying: Sequence[str]) -> None:
    """Wait, 5 s at most, for the kernel's link watch: states follow what was set with a delay."""
    for _attempt in range(100):
        states = {
            name: (read_text(str(folder), "carrier"), read_text(str(folder), "operstate"))
            for name, folder in ((folder.name, folder) for folder in (sysfs_root / "class" / "net").iterdir())
        }
        late = [
            name for name, (carrier, state) in states.items() if carrier == "1" and state in ("down", "lowerlayerdown")
        ]
        if not late and all(states[name][0] == "1" for name in carrying):
            return
        time.sleep(0.05)


def decide(
    root: Path, lines: Sequence[str], nics: Sequence[str] = (), carrying: Sequence[str] = (), **options: Any
) -> list[str]:
    """What the module would say after the commands: the answer first, then each candidate with its reason."""

    def work() -> list[str]:
        for line in lines:
            command(line)
        settle(root / "sysfs", carrying)
        tree = with_devices(root / "sysfs", nics, root / "tree") if nics else root / "sysfs"
        result = choose(read_interfaces(str(tree)), Wishes.parse({**OPTIONS, **options})).to_dict()
        rows = [" ".join((row["interface"], row["address"], row["reason"])) for row in result["candidates"]]
        return [f"{result['interface']} {result['address']}", *rows]

    return inside(root / "sysfs", work)


NICS = [
    "ip link set dev lo up",
    "ip link add nic105 type veth peer name far105",
    "ip link add nic9 type veth peer name far9",
    *(f"ip link set dev {name} up" for name in ("nic105", "far105", "nic9", "far9")),
]
ADDRESSES = ["ip address add 10.1.0.1/24 dev nic105", "ip address add 10.9.0.1/24 dev nic9"]
BRIDGE = ["ip link add cni0 type bridge", "ip address add 10.42.0.1/24 dev cni0", "ip link set dev cni0 up"]
FAR = ["far9  virtual", "far105  virtual"]


def test_nothing_in_a_namespace_of_veths_and_bridges_is_a_nic(tmp_path: Path) -> None:
    assert decide(tmp_path, [*NICS, *ADDRESSES, *BRIDGE], interface="nic9") == [
        " ",
        "cni0 10.42.0.1 virtual",
        *FAR,
        "lo 127.0.0.1 loopback",
        "nic9 10.9.0.1 virtual",
        "nic105 10.1.0.1 virtual",
    ]


def test_the_route_to_the_peer_decides_against_the_order_of_names(tmp_path: Path) -> None:
    route = "ip route add 10.77.0.0/16 via 10.1.0.254"

    answer = decide(
        tmp_path, [*NICS, *ADDRESSES, *BRIDGE, route], ["nic9", "nic105"], peers=["10.1.0.2", "10.77.0.2", "10.9.0.1"]
    )

    assert answer == [
        "nic105 10.1.0.1",
        "cni0 10.42.0.1 virtual",
        *FAR,
        "lo 127.0.0.1 loopback",
        "nic9 10.9.0.1 no_route_to_peer",
        "nic105 10.1.0.1 chosen",
    ]


@pytest.mark.parametrize("kind", ["blackhole", "unreachable", "prohibit"])
def test_a_route_that_refuses_reaches_nobody(tmp_path: Path, kind: str) -> None:
    lines = [*NICS, *ADDRESSES, "ip route add default via 10.1.0.254", f"ip route add {kind} 10.66.0.0/16"]

    assert decide(tmp_path, lines, ["nic9", "nic105"], peers=["10.66.0.1"])[0] == " "


def test_policy_routing_by_source_lets_every_nic_reach_the_peer(tmp_path: Path) -> None:
    lines = [*NICS, *ADDRESSES, "ip route add default via 10.1.0.254"]
    lines += ["ip route add default via 10.9.0.254 table 109", "ip rule add from 10.9.0.0/24 table 109"]

    answer = decide(tmp_path, lines, ["nic9", "nic105"], peers=["10.77.0.2"])

    assert [answer[0], *answer[-2:]] == ["nic9 10.9.0.1", "nic9 10.9.0.1 chosen", "nic105 10.1.0.1 lower_preference"]


def test_secondary_and_deprecated_addresses_come_last(tmp_path: Path) -> None:
    lines = [
        *NICS,
        "ip address add 10.1.0.9/24 dev nic105 preferred_lft 0",
        "ip address add 10.1.0.5/24 dev nic105",
        "ip address add 10.3.0.1/24 dev nic105",
    ]

    # 10.1.0.5 is secondary to the deprecated 10.1.0.9; 10.3.0.1 is the first of its own subnet.
    assert decide(tmp_path, lines, ["nic105"])[0] == "nic105 10.3.0.1"


def test_ipv6_is_chosen_by_routes_too(tmp_path: Path) -> None:
    lines = [
        *NICS,
        "ip -6 address add fd00:1::1/64 dev nic105 nodad",
        "ip -6 address add fd00:9::1/64 dev nic9 nodad",
        "ip -6 route add default via fd00:9::fe",
    ]

    answer = decide(tmp_path, lines, ["nic9", "nic105"], family="ipv6", peers=["fd00:77::2"])

    assert answer[0] == "nic9 fd00:9::1"
    assert "nic105 fd00:1::1 no_route_to_peer" in answer


def test_a_nic_without_carrier_or_not_set_up_is_down(tmp_path: Path) -> None:
    lines = [*NICS, *ADDRESSES, "ip link set dev far9 down", "ip link set dev nic105 down"]

    assert decide(tmp_path, lines, ["nic9", "nic105"])[-2:] == ["nic9 10.9.0.1 down", "nic105 10.1.0.1 down"]


def test_a_bridge_over_a_nic_is_taken_only_when_named(tmp_path: Path) -> None:
    lines = [*NICS, "ip link set dev nic9 master br0", "ip address add 10.2.0.1/24 dev br0", "ip link set dev br0 up"]
    lines.insert(0, "ip link add br0 type bridge")
    (tmp_path / "unnamed").mkdir()
    (tmp_path / "named").mkdir()

    unnamed = decide(tmp_path / "unnamed", lines, ["nic9"], ["br0"])
    named = decide(tmp_path / "named", lines, ["nic9"], ["br0"], interface="br0", peers=["10.2.0.2"])

    assert (unnamed[0], unnamed[1]) == (" ", "br0 10.2.0.1 virtual")
    assert (named[0], named[1]) == ("br0 10.2.0.1", "br0 10.2.0.1 chosen")
    assert "nic9  enslaved" in named


@pytest.mark.parametrize("kind", ["macvlan", "ipvlan"])
def test_a_second_interface_on_a_nic_is_taken_only_when_named(tmp_path: Path, kind: str) -> None:
    lines = [*NICS, f"ip link add link nic9 name data0 type {kind}"]
    lines += ["ip address add 10.2.0.1/24 dev data0", "ip link set dev data0 up"]
    (tmp_path / "unnamed").mkdir()
    (tmp_path / "named").mkdir()

    assert decide(tmp_path / "unnamed", lines, ["nic9"])[0] == " "
    assert decide(tmp_path / "named", lines, ["nic9"], address="10.2.0.1")[0] == "data0 10.2.0.1"


def test_a_vlan_on_a_bond_of_nics_is_as_good_as_a_nic(tmp_path: Path) -> None:
    lines = [
        *NICS[:3],
        "ip link add bond0 type bond mode active-backup miimon 100",
        "ip link set dev nic9 master bond0",
        "ip link set dev nic105 master bond0",
        *(f"ip link set dev {name} up" for name in ("far9", "far105", "bond0")),
        "ip link add link bond0 name bond0.7 type vlan id 7",
        "ip link set dev bond0.7 up",
        "ip address add 10.7.0.1/24 dev bond0.7",
    ]

    assert decide(tmp_path, lines, ["nic9", "nic105"], ["bond0.7"], peers=["10.7.0.2"])[0] == "bond0.7 10.7.0.1"


def test_a_vlan_of_a_nic_is_as_good_as_a_nic(tmp_path: Path) -> None:
    lines = [*NICS, "ip link add link nic9 name nic9.7 type vlan id 7", "ip link set dev nic9.7 up"]

    assert decide(tmp_path, [*lines, "ip address add 10.7.0.1/24 dev nic9.7"], ["nic9"])[0] == "nic9.7 10.7.0.1"


def test_a_vxlan_on_a_nic_is_never_taken(tmp_path: Path) -> None:
    lines = [*NICS, "ip link add vx type vxlan id 1 dstport 8472 dev nic9", "ip link set dev vx up"]

    answer = decide(tmp_path, [*lines, "ip address add 10.8.0.1/24 dev vx"], ["nic9"], interface="vx")

    assert (answer[0], answer[-1]) == (" ", "vx 10.8.0.1 virtual")


def test_interfaces_that_moved_into_another_namespace_are_not_seen(tmp_path: Path) -> None:
    def work() -> list[str]:
        for line in [*NICS, *ADDRESSES]:
            command(line)
        other = subprocess.Popen(["unshare", "--net", "sleep", str(SECONDS)])
        try:
            # It has its namespace once that differs from this process's.
            for _attempt in range(100):
                if os.readlink(f"/proc/{other.pid}/ns/net") != os.readlink("/proc/self/ns/net"):
                    break
                time.sleep(0.05)
            command(f"ip link set dev nic9 netns {other.pid}")
            return list(read_interfaces(str(tmp_path / "sysfs")))
        finally:
            other.kill()
            other.wait()

    assert inside(tmp_path / "sysfs", work) == ["far9", "far105", "lo", "nic105"]


def test_sysfs_of_another_namespace_makes_nothing_a_nic(tmp_path: Path) -> None:
    """The machine's own /sys, read only, against the interfaces of a namespace."""

    def work() -> dict[str, bool]:
        for line in [*NICS[1:3], "ip link set dev nic9 name eth0"]:
            command(line)
        return {name: one.device for name, one in read_interfaces("/sys").items()}

    assert set(inside(tmp_path / "sysfs", work).values()) == {False}


@pytest.mark.parametrize("name", ["br-rail0", "eth0@if9", "a'b\"c\\d", "$(id)", "ünïc", "{{x}}n", "-"])
def test_odd_names_are_told_as_they_are(tmp_path: Path, name: str) -> None:
    lines = ["ip link add v0 type veth peer name v1", "ip link set dev v1 up", f"ip link set dev v0 name {name}"]
    lines += [f"ip link set dev {name} up", f"ip address add 10.1.0.1/24 dev {name}"]

    answer = decide(tmp_path, lines, [name], interface=name, peers=["10.1.0.2"])

    assert answer[0] == f"{name} 10.1.0.1"
