# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A routed fabric of two hosts and a router, each a network namespace: real sockets, routes and rules, nothing of the machine's.

Rail I of host H is C(railI), with fd00:a:I:H::2/64 and 10.I.H.2/24, an MTU of 9000, a table 100+I with a default route through the
router (the ::1 and .1 of its network), and a rule from its network to that table. Both hosts have all of it; a test takes something away.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import os
import shutil
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

Answer = TypeVar("Answer")
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS, IFF_UP, IFF_RUNNING = 0x8913, 0x1, 0x40
_libc = ctypes.CDLL(None, use_errno=True)


@functools.cache
def why_not() -> str:
    """Why no namespace can be made here; empty where one can."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("ip") is None:
        return "needs iproute2"
    name = f"il-t-try-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"no network namespaces: {made.stderr.strip()}"
    link = ["ip", "-n", name, "link", "add", "left", "type", "veth", "peer", "name", "right"]
    linked = subprocess.run(link, capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "del", name], check=False)
    return f"no veth: {linked.stderr.strip()}" if linked.returncode else ""


def batch(namespace: str, *lines: str) -> None:
    """Commands of C(ip), in one process."""
    text = "\n".join(lines) + "\n"
    subprocess.run(["ip", "-n", namespace, "-batch", "-"], input=text, text=True, check=True, capture_output=True)


@contextmanager
def inside(namespace: str) -> Iterator[None]:
    """This thread is in the namespace meanwhile."""
    with open("/proc/thread-self/ns/net", encoding="utf-8") as home:
        with open(f"/run/netns/{namespace}", encoding="utf-8") as there:
            _setns(there.fileno())
        try:
            yield
        finally:
            _setns(home.fileno())


def wait_until_running(seconds: float = 5.0) -> None:
    """Until every link passes packets: a new one drops them until the kernel has got round to it, later on a busy machine."""
    deadline = time.monotonic() + seconds
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _number, name in socket.if_nameindex():
            while _flags(sock, name) & (IFF_UP | IFF_RUNNING) == IFF_UP:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{name} does not come up")
                time.sleep(0.01)


def _flags(sock: socket.socket, name: str) -> int:
    answer = fcntl.ioctl(sock, SIOCGIFFLAGS, struct.pack("16s16x", name.encode()))
    return struct.unpack_from("=H", answer, 16)[0]


def _setns(descriptor: int) -> None:
    if _libc.setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


class RoutedNamespaces:
    """C(hosts[0]) and C(hosts[1]) are the names of the two hosts' namespaces."""

    def __init__(self, rails: int = 2) -> None:
        self.rails = rails
        self.hosts = [f"il-t-{os.getpid()}-h1", f"il-t-{os.getpid()}-h2"]
        self.router = f"il-t-{os.getpid()}-r"

    def __enter__(self) -> RoutedNamespaces:
        try:
            for name in (*self.hosts, self.router):
                subprocess.run(["ip", "netns", "add", name], check=True)
                with inside(name):
                    self._set("net/ipv6/conf/default/accept_dad", "0")
            with inside(self.router):
                self._set("net/ipv6/conf/all/forwarding", "1")
                self._set("net/ipv4/ip_forward", "1")
            for number in (1, 2):
                self._connect(number)
            for name in (*self.hosts, self.router):
                with inside(name):
                    wait_until_running()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: Any) -> None:
        for name in (*self.hosts, self.router):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    @staticmethod
    def _set(key: str, value: str) -> None:
        Path("/proc/sys", key).write_text(value, encoding="utf-8")

    def _connect(self, host: int) -> None:
        lines, router_lines = ["link set lo up"], []
        for rail in range(self.rails):
            v6, v4 = f"fd00:a:{rail}:{host}::", f"10.{rail}.{host}."
            port = f"h{host}r{rail}"
            lines += [
                f"link add rail{rail} mtu 9000 type veth peer name {port} mtu 9000 netns {self.router}",
                f"link set rail{rail} up",
                f"addr add {v6}2/64 dev rail{rail} nodad",
                f"addr add {v4}2/24 dev rail{rail}",
                f"-6 route add default via {v6}1 dev rail{rail} table {100 + rail}",
                f"-4 route add default via {v4}1 dev rail{rail} table {100 + rail}",
                f"-6 rule add from {v6}/64 table {100 + rail}",
                f"-4 rule add from {v4}0/24 table {100 + rail}",
            ]
            router_lines += [
                f"link set {port} up",
                f"addr add {v6}1/64 dev {port} nodad",
                f"addr add {v4}1/24 dev {port}",
            ]
        # Older iproute2 wants the family on the command line, not in a batch.
        for family in ("-6", "-4"):
            own = [line[3:] for line in lines if line.startswith(family)]
            if family == "-6":
                batch(self.hosts[host - 1], *[line for line in lines if line[0] != "-"])
            subprocess.run(
                ["ip", family, "-n", self.hosts[host - 1], "-batch", "-"],
                input="\n".join(own) + "\n",
                text=True,
                check=True,
            )
        batch(self.router, *router_lines)

    def run(self, host: int, command: str) -> None:
        """One command of C(ip) in host 1 or 2, or in the router (0)."""
        name = self.hosts[host - 1] if host else self.router
        subprocess.run(["ip", "-n", name, *command.split()], check=True, capture_output=True)

    def call(self, host: int, function: Callable[[], Answer]) -> Answer:
        """What a function sees in host 1 or 2, or in the router (0)."""
        with inside(self.hosts[host - 1] if host else self.router):
            return function()

    def rails_of(self, host: int, version: int = 6) -> list[dict[str, Any]]:
        """As rail_info would return them."""
        return [
            {
                "index": rail,
                "rdma_device": f"ionic_{rail}",
                "netdev": f"rail{rail}",
                "state": "ACTIVE",
                "phys_state": "LinkUp",
                "mtu": 9000,
                "address": f"fd00:a:{rail}:{host}::2" if version == 6 else f"10.{rail}.{host}.2",
                "prefix": 64 if version == 6 else 24,
            }
            for rail in range(self.rails)
        ]
