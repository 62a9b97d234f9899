# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Does each rail of this host reach the rails of its peers, and if not, why?

First the kernel is asked which way it would send (from the rail's address: an unbound question is answered for another rail),
then echo requests go out bound to address and device. A default route makes everything look reachable, so an answer alone
proves nothing, and neither does a route alone. Nothing is changed; a reason names the commands that would mend it.
"""

from __future__ import annotations

import collections
import errno
import ipaddress
import socket
import time
from dataclasses import asdict, dataclass
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import echo, neighbours, policy, routes
from ansible_collections.infera.baremetal.plugins.module_utils.addresses import Address, Network, parse

VERDICTS = (
    "routable",
    "wrong_device",
    "wrong_source",
    "no_route",
    "gateway_unresolved",
    "no_reply",
    "mtu_too_small",
    "source_missing",
)


@dataclass(frozen=True)
class Rail:
    """One end. C(address) is canonical text, C(bits) the length of its prefix; C(missing) says why nothing can be sent from it."""

    index: int
    name: str
    netdev: str = ""
    address: str = ""
    bits: int = 0
    mtu: Optional[int] = None
    missing: str = ""

    @property
    def version(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4

    @property
    def prefix(self) -> Network:
        """The rail's network."""
        return ipaddress.ip_network(f"{self.address}/{self.bits}", strict=False)

    @property
    def ip(self) -> str:
        """The command for its family."""
        return "ip -6" if self.version == 6 else "ip"


@dataclass(frozen=True)
class Pair:
    """A rail of this host and one of a peer's."""

    rail: Rail
    peer: str
    peer_rail: Rail


@dataclass(frozen=True)
class Settings:
    """C(interval) and C(timeout) in seconds, C(rate) in packets per second from one rail."""

    count: int = 3
    timeout: float = 1.0
    jumbo: bool = False
    concurrency: int = 1024
    interval: float = 0.2
    rate: float = 1000.0


@dataclass
class Probe:
    """What was seen of one pair."""

    pair: Pair
    route: routes.Route = routes.Route("none")
    echo: Optional[echo.Echo] = None
    jumbo: Optional[echo.Echo] = None
    jumbo_size: int = 0
    source_problem: str = ""
    verdict: str = ""
    reason: str = ""

    def to_dict(self) -> Dict[str, Any]:
        """As the module returns it."""
        small = self.echo or echo.Echo()
        times = [round(value, 3) for value in small.rtts_ms]
        return {
            "rail": self.pair.rail.index,
            "netdev": self.pair.rail.netdev,
            "source": self.pair.rail.address,
            "peer": self.pair.peer,
            "peer_rail": self.pair.peer_rail.index,
            "destination": self.pair.peer_rail.address,
            "route": {
                "device": self.route.device,
                "prefsrc": self.route.prefsrc,
                "gateway": self.route.gateway,
                "kind": self.route.kind,
            },
            "echo": {
                "sent": small.sent,
                "received": small.received,
                "rtt_ms": {
                    "min": min(times, default=None),
                    "avg": round(sum(times) / len(times), 3) if times else None,
                    "max": max(times, default=None),
                },
            },
            "jumbo": {"size": self.jumbo_size, "received": self.jumbo.received} if self.jumbo else None,
            "verdict": self.verdict,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Unprobed:
    """A pair that cannot be made, and why."""

    peer: str
    rail: Optional[int]
    reason: str


def read_rail(given: Any, position: int) -> Rail:
    """A rail as rail_info returns it, or as somebody wrote it; what is wrong with it is said in C(missing)."""
    if not isinstance(given, dict):
        return Rail(position, f"rail {position}", missing=f"rail {position} is not a dictionary")
    index = _number(given.get("index"))
    index = position if index is None else index
    name = str(given.get("rdma_device") or given.get("netdev") or f"rail {index}")
    netdev = str(given.get("netdev") or "")
    mtu = _number(given.get("mtu"))
    try:
        address = parse(given["address"]) if given.get("address") else None
        # An IPv4-mapped GID stands for the IPv4 address of the network device.
        address = getattr(address, "ipv4_mapped", None) or address
        bits = _bits(address, given.get("prefix"))
    except ValueError as error:
        return Rail(index, name, netdev, mtu=mtu, missing=f"{name}: {error}")
    missing = _missing(name, netdev, address, given)
    text = "" if address is None or address.is_link_local else str(address)
    return Rail(index, name, netdev, text, bits, mtu, missing)


def _missing(name: str, netdev: str, address: Optional[Address], given: Dict[str, Any]) -> str:
    for key, good in (("state", "ACTIVE"), ("phys_state", "LinkUp")):
        if given.get(key) not in (None, "", good):
            return (
                f"{name} is down ({key} {given[key]}): ip link set {netdev or name} up, then look at cable and switch"
            )
    if not netdev:
        return f"{name} has no network device"
    if address is None:
        return f"{name} has no routable address: ip address show dev {netdev}"
    if address.is_link_local:
        return (
            f"{name} has only a link-local address ({address}), which no router forwards: give {netdev} one of its own"
        )
    return ""


def _bits(address: Optional[Address], given: Any) -> int:
    """Length of a prefix that is given as a number or with its network; unknown is /64 for IPv6, as routed fabrics have it."""
    if address is None:
        return 0
    if given in (None, ""):
        return 64 if address.version == 6 else 32
    bits = _number(str(given).rpartition("/")[2])
    if bits is None or not 0 <= bits <= address.max_prefixlen:
        raise ValueError(f"{given!r} is not a prefix of {address}")
    return bits


def _number(value: Any) -> Optional[int]:
    try:
        return int(value)
    except (TypeError, ValueError):
        return None


def pair_up(rails: Iterable[Any], peers: Iterable[Any], pairing: str, host: str) -> Tuple[List[Pair], List[Unprobed]]:
    """Who asks whom. C(pairing): same_index, or all (every rail to every rail of a peer). C(host) is left out of the peers."""
    own = [read_rail(given, position) for position, given in enumerate(rails)]
    pairs: List[Pair] = []
    unprobed: List[Unprobed] = []
    for number, entry in enumerate(peers):
        if not isinstance(entry, dict) or not entry.get("host"):
            unprobed.append(Unprobed(f"peer {number}", None, "it has no host name"))
            continue
        peer = str(entry["host"])
        if peer == host:
            continue
        given_rails = entry.get("rails")
        if not isinstance(given_rails, list) or not given_rails:
            unprobed.append(Unprobed(peer, None, f"{peer} has no rails"))
            continue
        theirs = [read_rail(given, position) for position, given in enumerate(given_rails)]
        for rail in own:
            matching = [other for other in theirs if pairing == "all" or other.index == rail.index]
            if not matching:
                unprobed.append(Unprobed(peer, rail.index, f"{peer} has no rail {rail.index}"))
            for other in matching:
                problem = _unfit(rail, other)
                if problem:
                    unprobed.append(Unprobed(peer, rail.index, f"{peer}: {problem}"))
                else:
                    pairs.append(Pair(rail, peer, other))
    return pairs, unprobed


def _unfit(rail: Rail, other: Rail) -> str:
    """Why the other end cannot be asked. A rail of it that is down may be: then the silence is the answer."""
    if not other.address:
        return other.missing or f"{other.name} has no address"
    if rail.address and rail.version != other.version:
        return f"{other.name} has {other.address}, which is not of the family of {rail.address}"
    return ""


def probe(pairs: Sequence[Pair], settings: Settings) -> List[Probe]:
    """Ask all at once; one Probe a pair, in their order. EchoError where raw sockets are refused, OSError where netlink is."""
    probes = [Probe(pair) for pair in pairs]
    problems: Dict[Rail, str] = {}
    for entry in probes:
        rail = entry.pair.rail
        if rail not in problems:
            problems[rail] = rail.missing or source_problem(rail)
        entry.source_problem = problems[rail]
    ready = [entry for entry in probes if not entry.source_problem]
    for entry, route in zip(ready, routes.lookup([_query(entry.pair) for entry in ready])):
        entry.route = route

    asked = [entry for entry in ready if entry.route.usable]
    for entry, answer in zip(asked, _ping([_target(entry.pair, 0) for entry in asked], settings, False)):
        entry.echo = answer
    if settings.jumbo:
        answering = [entry for entry in asked if entry.echo is not None and entry.echo.received]
        for entry in answering:
            entry.jumbo_size = _jumbo_size(entry.pair.rail)
        targets = [_target(entry.pair, entry.jumbo_size) for entry in answering]
        for entry, answer in zip(answering, _ping(targets, settings, True)):
            entry.jumbo = answer

    around = Surroundings(probes)
    for entry in probes:
        entry.verdict, entry.reason = judge(entry, around, settings.timeout)
    return probes


def source_problem(rail: Rail) -> str:
    """Why nothing can be sent from a rail, by trying to bind to it; empty where it can."""
    try:
        echo.open_source(rail.netdev, rail.address).close()
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            remedy = f"{rail.ip} address add {rail.address}/{rail.bits} dev {rail.netdev}"
            return f"this host has no usable address {rail.address} (a tentative one is not): {remedy}"
        return f"{rail.address} on {rail.netdev} cannot be used: {error.strerror or error}"
    return ""


def _query(pair: Pair) -> routes.Query:
    return routes.Query(pair.peer_rail.address, pair.rail.address)


def _target(pair: Pair, payload: int) -> echo.Target:
    return echo.Target(pair.rail.netdev, pair.rail.address, pair.peer_rail.address, payload)


def _ping(targets: Sequence[echo.Target], settings: Settings, once: bool) -> List[echo.Echo]:
    return echo.ping(
        targets, settings.count, settings.interval, settings.timeout, settings.rate, settings.concurrency, once
    )


def _jumbo_size(rail: Rail) -> int:
    mtu = rail.mtu or echo.device_mtu(rail.netdev) or 0
    return echo.payload_of_mtu(rail.address, mtu)


class Surroundings:
    """What a reason is derived from, read when the first one asks for it: after the echoes, which fill the neighbour table."""

    def __init__(self, probes: Sequence[Probe] = ()) -> None:
        failed = any(entry.echo is None or not entry.echo.received for entry in probes)
        self.neighbours: neighbours.States = neighbours.states() if failed else {}
        self._policies: Dict[int, policy.Policy] = {}

    def policy(self, version: int) -> policy.Policy:
        if version not in self._policies:
            self._policies[version] = policy.read(socket.AF_INET6 if version == 6 else socket.AF_INET)
        return self._policies[version]


def judge(entry: Probe, around: Surroundings, timeout: float) -> Tuple[str, str]:
    """(verdict, reason) of what was seen; the reason is one line, empty for a pair in order."""
    rail, other, route = entry.pair.rail, entry.pair.peer_rail, entry.route
    if entry.source_problem:
        return "source_missing", entry.source_problem
    way = f"from {rail.address} to {other.address}"
    if route.kind == "local":
        return (
            "wrong_device",
            f"{other.address} of {entry.pair.peer} is an address of this host too: two hosts share it",
        )
    if not route.usable or route.device != rail.netdev:
        remedy = policy.remedy(
            around.policy(rail.version), rail.index, rail.netdev, parse(rail.address), rail.prefix, parse(other.address)
        )
        if route.usable:
            return "wrong_device", f"packets {way} leave by {route.device}, not by {rail.netdev}: {remedy}"
        return "no_route", f"no way {way} ({route.error if route.kind == 'none' else route.kind}): {remedy}"
    if route.prefsrc != rail.address:
        remedy = policy.source_remedy(
            around.policy(rail.version), rail.netdev, parse(rail.address), parse(other.address)
        )
        preferred = route.prefsrc or "no source"
        return "wrong_source", f"the route to {other.address} prefers {preferred}, not {rail.address}: {remedy}"
    small = entry.echo or echo.Echo()
    if not small.received:
        return _silent(entry, small, around, timeout)
    if entry.jumbo is not None and not entry.jumbo.received:
        return "mtu_too_small", _too_small(entry, entry.jumbo)
    lost = small.sent - small.received
    return "routable", f"{lost} of {small.sent} echoes were lost" if lost else ""


def _silent(entry: Probe, small: echo.Echo, around: Surroundings, timeout: float) -> Tuple[str, str]:
    rail, other, route, peer = entry.pair.rail, entry.pair.peer_rail, entry.route, entry.pair.peer
    hop = route.gateway or other.address
    state = around.neighbours.get((rail.netdev, hop), "")
    if not small.refusal and not small.came_in_by and not neighbours.resolved(state):
        what = "the gateway" if route.gateway else f"{peer}, which is on the same link,"
        return (
            "gateway_unresolved",
            f"{what} {hop} does not resolve on {rail.netdev} ({state or 'no entry'}): wrong cable, VLAN or gateway address; "
            f"ip neighbour show dev {rail.netdev}",
        )
    check = f"on {peer}, {rail.ip} route get {rail.address} from {other.address} must answer dev {other.netdev or other.name}"
    rule = f"{rail.ip} rule add from {other.prefix} table TABLE_OF_{other.netdev or other.name}"
    if small.refusal:
        return "no_reply", f"nothing could be sent by {rail.netdev}: {small.refusal}"
    if small.came_in_by:
        return (
            "no_reply",
            f"replies of {other.address} come in by {small.came_in_by}, not by {rail.netdev}: they leave {peer} by another rail; "
            f"look at its rule for {other.prefix}: {check}, otherwise {rule}",
        )
    if small.unreachable:
        return "no_reply", small.unreachable
    down = f"{other.missing}; " if other.missing else ""
    return (
        "no_reply",
        f"{other.address} does not answer within {timeout:g} s: {down}it is down or filters, a hop has no way back to {rail.prefix}, "
        f"or its replies leave by another rail: {check}, otherwise {rule}",
    )


def _too_small(entry: Probe, large: echo.Echo) -> str:
    rail, other = entry.pair.rail, entry.pair.peer_rail
    size = f"echoes of {entry.jumbo_size} bytes"
    if large.refusal and large.mtu is not None:
        return (
            f"{rail.netdev} takes packets of {large.mtu} bytes only: ip link set {rail.netdev} mtu {rail.mtu or 9000}"
        )
    if large.refusal:
        return f"{size} could not be sent by {rail.netdev}: {large.refusal}"
    if large.mtu:
        return (
            f"{size} do not reach {other.address}: a hop has MTU {large.mtu}; set it to that of {rail.netdev} or more"
        )
    if other.mtu is not None and rail.mtu is not None and other.mtu < rail.mtu:
        peer_device = other.netdev or other.name
        return f"{entry.pair.peer} has MTU {other.mtu} on {peer_device}: ip link set {peer_device} mtu {rail.mtu}"
    return f"{size} vanish on the way to {other.address} while small ones are answered: look for a switch port with a smaller MTU"


def summarize(probes: Sequence[Probe], unprobed: Sequence[Unprobed], started: float) -> Dict[str, Any]:
    """Counts of a whole call; C(started) as time.monotonic() gave it."""
    counts = collections.Counter(entry.verdict for entry in probes)
    echoes = [answer for entry in probes for answer in (entry.echo, entry.jumbo) if answer is not None]
    return {
        "verdicts": {verdict: counts[verdict] for verdict in VERDICTS},
        "sent": sum(answer.sent for answer in echoes),
        "received": sum(answer.received for answer in echoes),
        "seconds": round(time.monotonic() - started, 3),
        "unprobed": [asdict(entry) for entry in unprobed],
    }
