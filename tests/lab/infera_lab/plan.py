# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Names and addresses of a lab. Pure: everything follows from the checkout's path and a node's number."""

from __future__ import annotations

import hashlib
import ipaddress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

RAILS = 8
GPUS = 8
MAX_NODES = 5
MANAGEMENT = ipaddress.IPv4Network("10.77.0.0/24")
# Looks public to every classifier of addresses, and exists in the lab's namespaces only.
DECOY = ipaddress.IPv4Network("203.0.114.0/24")
DOCKER = ipaddress.IPv4Interface("172.17.0.1/16")
RAIL_MTU = 9000
PENSANDO = "0x1dd8"
INTEL = "0x8086"


def mac(kind: int, node: int, index: int = 0) -> str:
    """A locally administered address that no two interfaces of a lab share."""
    return f"02:77:00:{kind:02x}:{index:02x}:{node:02x}"


@dataclass(frozen=True)
class Nic:
    """A network card of a node, as its sysfs shows it."""

    name: str
    mac: str
    mtu: int
    pci_address: str
    vendor: str
    device: str
    numa_node: int
    speed: int  # Mb/s


@dataclass(frozen=True)
class Rail:
    """One RDMA port of a node: its card, its /64 and its place in the fabric."""

    index: int
    node: int

    @property
    def netdev(self) -> str:
        return f"rail{self.index}"

    @property
    def rdma_device(self) -> str:
        return f"ionic_{self.index}"

    @property
    def uverbs(self) -> str:
        return f"uverbs{self.index}"

    @property
    def prefix(self) -> ipaddress.IPv6Network:
        return ipaddress.IPv6Network(f"fd00:77:{self.index}:{self.node}::/64")

    @property
    def gateway(self) -> ipaddress.IPv6Interface:
        return ipaddress.IPv6Interface(f"{self.prefix[1]}/64")

    @property
    def address(self) -> ipaddress.IPv6Interface:
        return ipaddress.IPv6Interface(f"{self.prefix[2]}/64")

    @property
    def table(self) -> int:
        return 100 + self.index

    @property
    def plane(self) -> int:
        """The fabric's routing table for what comes in by rails of this index: a plane knows no other plane."""
        return 200 + self.index

    @property
    def fabric_port(self) -> str:
        return f"n{self.node}r{self.index}"

    @property
    def fabric_mac(self) -> str:
        return mac(4, self.node, self.index)

    @property
    def nic(self) -> Nic:
        # Two sockets with four cards each, as on an eight-GPU server.
        return Nic(
            self.netdev,
            mac(3, self.node, self.index),
            RAIL_MTU,
            f"0000:{0x05 + 0x10 * self.index:02x}:00.0",
            PENSANDO,
            "0x1002",
            self.index // (RAILS // 2),
            400_000,
        )

    @property
    def link_local(self) -> ipaddress.IPv6Address:
        """What the kernel makes of the card's MAC (modified EUI-64, RFC 4291 appendix A)."""
        octets = bytes.fromhex(self.nic.mac.replace(":", ""))
        identifier = bytes([octets[0] ^ 0x02]) + octets[1:3] + b"\xff\xfe" + octets[3:]
        return ipaddress.IPv6Address(b"\xfe\x80" + bytes(6) + identifier)


@dataclass(frozen=True)
class Node:
    """One simulated host; `number` counts from 1."""

    number: int
    lab: str

    @property
    def name(self) -> str:
        return f"lab{self.number}"

    @property
    def container(self) -> str:
        return f"{self.lab}-{self.name}"

    @property
    def namespace(self) -> str:
        return self.container

    @property
    def machine_id(self) -> str:
        return hashlib.sha256(self.container.encode()).hexdigest()[:32]

    @property
    def management(self) -> ipaddress.IPv4Interface:
        return ipaddress.IPv4Interface(f"{MANAGEMENT[10 + self.number]}/{MANAGEMENT.prefixlen}")

    @property
    def decoy(self) -> ipaddress.IPv4Interface:
        return ipaddress.IPv4Interface(f"{DECOY[10 + self.number]}/{DECOY.prefixlen}")

    @property
    def management_port(self) -> str:
        return f"m{self.number}"

    @property
    def decoy_port(self) -> str:
        return f"p{self.number}"

    @property
    def eth0(self) -> Nic:
        return Nic("eth0", mac(1, self.number), 1500, "0000:c1:00.0", INTEL, "0x1592", 0, 25_000)

    @property
    def pub0(self) -> Nic:
        return Nic("pub0", mac(2, self.number), 1500, "0000:c1:00.1", INTEL, "0x1592", 0, 25_000)

    @cached_property
    def rails(self) -> tuple[Rail, ...]:
        return tuple(Rail(index, self.number) for index in range(RAILS))

    @property
    def nics(self) -> tuple[Nic, ...]:
        return (self.eth0, self.pub0, *(rail.nic for rail in self.rails))


@dataclass(frozen=True)
class Lab:
    """The lab of one checkout. Two checkouts have two ids and share nothing but the cache."""

    checkout: Path
    cache: Path

    @cached_property
    def id(self) -> str:
        return "il-" + hashlib.sha256(str(self.checkout.resolve()).encode()).hexdigest()[:6]

    @property
    def state(self) -> Path:
        return self.checkout / ".lab"

    @property
    def runtime(self) -> Path:
        """ssh's sockets: a Unix socket's path may have 107 characters, a checkout's may have more."""
        return Path("/run") / self.id

    @property
    def controller_namespace(self) -> str:
        return f"{self.id}-ctl"

    @property
    def fabric_namespace(self) -> str:
        return f"{self.id}-fab"

    @property
    def controller_address(self) -> ipaddress.IPv4Interface:
        return ipaddress.IPv4Interface(f"{MANAGEMENT[1]}/{MANAGEMENT.prefixlen}")

    @property
    def decoy_gateway(self) -> ipaddress.IPv4Interface:
        return ipaddress.IPv4Interface(f"{DECOY[1]}/{DECOY.prefixlen}")

    def nodes(self, count: int = MAX_NODES) -> tuple[Node, ...]:
        """The first `count` nodes."""
        if not 1 <= count <= MAX_NODES:
            raise ValueError(f"a lab has 1 to {MAX_NODES} nodes, not {count}")
        return tuple(Node(number, self.id) for number in range(1, count + 1))

    def node(self, name: str) -> Node:
        """The node of that name; ValueError when no lab has it."""
        for node in self.nodes():
            if node.name == name:
                return node
        raise ValueError(f"{name}: no such node (lab1 to lab{MAX_NODES})")
