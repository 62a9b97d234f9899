# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which way the kernel would send a packet: C(ip route get DESTINATION from SOURCE), asked over rtnetlink.

One socket answers thousands of questions in the time that a few calls of C(ip) take, an error belongs to its own question, and
iproute2 need not be there. As with C(ip), naming a device does not bind the answer to it: compare what comes back.
Layout: linux/rtnetlink.h (struct rtmsg).
"""

from __future__ import annotations

import errno
import functools
import os
import socket
import struct
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Sequence, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import netlink
from ansible_collections.infera.baremetal.plugins.module_utils.addresses import parse

_ROUTE = struct.Struct("=BBBBBBBBI")
_RTM_NEWROUTE, _RTM_GETROUTE = 24, 26
_RTA_DST, _RTA_SRC, _RTA_OIF, _RTA_GATEWAY, _RTA_PREFSRC, _RTA_VIA = 1, 2, 4, 5, 7, 18
_KINDS = {1: "unicast", 2: "local", 3: "broadcast", 5: "multicast", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
# What the kernel answers instead of a route of these kinds.
_ERRORS = {errno.EINVAL: "blackhole", errno.EHOSTUNREACH: "unreachable", errno.EACCES: "prohibit"}
_WINDOW = 64


@dataclass(frozen=True)
class Query:
    """A question. C(source) empty: the kernel chooses one, and says which."""

    destination: str
    source: str = ""


@dataclass(frozen=True)
class Route:
    """The answer. C(kind): unicast, local, ..., blackhole, unreachable, prohibit; none where there is no route or no answer."""

    kind: str
    device: str = ""
    prefsrc: str = ""
    gateway: str = ""
    error: str = ""

    @property
    def usable(self) -> bool:
        """Whether a packet would leave, or stay on this host."""
        return self.kind in ("unicast", "local")


def lookup(queries: Sequence[Query]) -> List[Route]:
    """One answer for each question, in their order. Never raises for a question; OSError where netlink itself is refused."""
    answers: Dict[int, Route] = {}
    name_of = functools.lru_cache(maxsize=None)(netlink.device_name)
    with netlink.channel() as channel:
        for start in range(0, len(queries), _WINDOW):
            _ask(channel, queries[start : start + _WINDOW], start, answers, name_of)
    return [answers.get(number, Route("none", error="no answer")) for number in range(len(queries))]


def _ask(
    channel: socket.socket,
    queries: Sequence[Query],
    start: int,
    answers: Dict[int, Route],
    name_of: Callable[[int], str],
) -> None:
    pending = set()
    for number, query in enumerate(queries, start):
        try:
            channel.send(request(number + 1, query))
            pending.add(number)
        except ValueError as error:
            answers[number] = Route("none", error=str(error))
    while pending:
        try:
            data = channel.recv(1 << 16)
        except OSError:  # A timeout, or an overrun: what is missing stays without an answer.
            return
        for sequence, route in answered(data, name_of):
            answers[sequence - 1] = route
            pending.discard(sequence - 1)


def request(sequence: int, query: Query) -> bytes:
    """The netlink message of one question. Raises ValueError where an address is none, or the families differ."""
    destination = parse(query.destination)
    attributes = netlink.pack(_RTA_DST, destination.packed)
    bits = destination.max_prefixlen
    source_bits = 0
    if query.source:
        source = parse(query.source)
        if source.version != destination.version:
            raise ValueError(f"{query.source} and {query.destination} are of different families")
        attributes += netlink.pack(_RTA_SRC, source.packed)
        source_bits = bits
    family = socket.AF_INET if destination.version == 4 else socket.AF_INET6
    body = _ROUTE.pack(family, bits, source_bits, 0, 0, 0, 0, 0, 0) + attributes
    return netlink.message(_RTM_GETROUTE, body, sequence)


def answered(data: bytes, name_of: Callable[[int], str] = netlink.device_name) -> Iterator[Tuple[int, Route]]:
    """Sequence number and route of each message in what one receive returned; C(name_of) names a device by its number."""
    for kind, sequence, body in netlink.messages(data):
        if kind == netlink.ERROR:
            yield sequence, _refused(netlink.error_number(body))
        elif kind == _RTM_NEWROUTE:
            yield sequence, _route(body, name_of)


def _refused(number: int) -> Route:
    return Route(_ERRORS.get(number, "none"), error=os.strerror(number))


def _route(body: bytes, name_of: Callable[[int], str]) -> Route:
    attributes = netlink.attributes(body[_ROUTE.size :])
    gateway = attributes.get(_RTA_GATEWAY)
    if gateway is None and _RTA_VIA in attributes:
        gateway = attributes[_RTA_VIA][2:]  # A gateway of the other family, after its family number.
    index = attributes.get(_RTA_OIF)
    return Route(
        _KINDS.get(_ROUTE.unpack_from(body)[7], "none"),
        device=name_of(struct.unpack("=I", index)[0]) if index else "",
        # For IPv4 the kernel repeats the source that was asked for, and names no preferred one.
        prefsrc=netlink.address_text(attributes.get(_RTA_PREFSRC) or attributes.get(_RTA_SRC)),
        gateway=netlink.address_text(gateway),
    )
