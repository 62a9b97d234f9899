# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Echo requests to many targets at once, each from a given address and by a given device.

There is one raw socket a source, bound to the address and to the device, so that a reply which comes in by another device does
not count. A further socket of each family, bound to nothing, only notes which device such a reply came in by. Packets are paced
per source, those without an answer are bounded over all, and each target gets a fixed number: it cannot flood.

Layouts: RFC 792 and RFC 4443 (echo, errors); options: linux/in.h, linux/in6.h, linux/icmp.h, linux/icmpv6.h.
"""

from __future__ import annotations

import collections
import errno
import fcntl
import os
import selectors
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Deque, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from ansible_collections.infera.baremetal.plugins.module_utils import netlink

_HEADER = struct.Struct("!BBHHH")  # type, code, checksum, then identifier and sequence number, or what an error says
_MARK = struct.Struct("!8sIH")  # nonce of the run, number of the target, attempt
_REPLY_BYTES = 256  # What is read of a reply: headers and mark.
_BUFFER = 4 << 20
# How far a source may catch up after the process was kept from running: at most so many seconds' worth of packets at once.
_SLACK = 0.005
# A full send buffer is tried again after _PAUSE seconds, so often.
_PAUSE, _STALLS = 0.005, 200
_SIOCGIFMTU = 0x8921


class EchoError(Exception):
    """No echo can be sent from this host at all; the message says why and what to do."""


class _Family(NamedTuple):
    """What differs between ICMP and ICMPv6: constants that Python's socket module does not name, too."""

    address_family: int
    protocol: int
    request: int
    reply: int
    # ICMP types that a hop reports a packet's loss with.
    errors: Tuple[int, ...]
    # (level, option, value): never fragment, and ignore what an earlier packet taught of the path (IP[V6]_PMTUDISC_PROBE).
    whole: Tuple[int, int, int]
    # (level, option) of the filter of message types; its bits block.
    filter: Tuple[int, int]
    filter_bytes: int
    # (level, option, kind): tell the device that a packet came in by.
    packet_info: Tuple[int, int, int]
    headers: int


_V4 = _Family(socket.AF_INET, 1, 8, 0, (3, 11, 12), (0, 10, 3), (255, 1), 4, (0, 8, 8), 28)
_V6 = _Family(socket.AF_INET6, 58, 128, 129, (1, 2, 3, 4), (41, 23, 3), (58, 1), 32, (41, 49, 50), 48)


def _family(address: str) -> _Family:
    return _V6 if ":" in address else _V4


@dataclass(frozen=True)
class Target:
    """C(payload): bytes after the ICMP header, as C(ping -s) counts; at least what the mark needs."""

    device: str
    source: str
    destination: str
    payload: int = 0


@dataclass
class Echo:
    """What became of one target's requests."""

    sent: int = 0
    received: int = 0
    rtts_ms: List[float] = field(default_factory=list)
    refusal: str = ""  # Why this host did not send: the system's words.
    unreachable: str = ""  # What a hop, or this host's network layer, said instead of an answer.
    mtu: Optional[int] = None  # The limit that a hop, or this host, reported.
    came_in_by: str = ""  # The device of a reply that did not come in by the target's own.


def payload_of_mtu(address: str, mtu: int) -> int:
    """The payload that fills a packet of C(mtu) bytes: 8952 for IPv6 and 9000."""
    return max(0, mtu - _family(address).headers)


def device_mtu(device: str) -> Optional[int]:
    """The MTU of an interface of this network namespace; None where it is gone."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            answer = fcntl.ioctl(sock, _SIOCGIFMTU, struct.pack("16s16x", device.encode()[:15]))
        except OSError:
            return None
    return struct.unpack_from("=i", answer, 16)[0]


def open_source(device: str, source: str) -> socket.socket:
    """The socket of one source.

    Raises EchoError where raw sockets are refused; OSError where the device or the address is not on this host.
    """
    family = _family(source)
    sock = _open(family)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode() + b"\0")
        sock.setsockopt(*family.whole)
        sock.bind((source, 0))
        _filter(sock, family, (family.reply, *family.errors))
    except OSError:
        sock.close()
        raise
    return sock


def _open(family: _Family) -> socket.socket:
    try:
        sock = socket.socket(family.address_family, socket.SOCK_RAW, family.protocol)
    except PermissionError as error:
        raise EchoError("raw sockets are refused; run as root (become: true), or grant CAP_NET_RAW") from error
    sock.setblocking(False)
    for option, forced in ((socket.SO_RCVBUF, 33), (socket.SO_SNDBUF, 32)):
        try:  # SO_RCVBUFFORCE and SO_SNDBUFFORCE go beyond net.core.{r,w}mem_max, and need CAP_NET_ADMIN.
            sock.setsockopt(socket.SOL_SOCKET, forced, _BUFFER)
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)
    return sock


def _filter(sock: socket.socket, family: _Family, types: Iterable[int]) -> None:
    """Let only these message types in. The words of the mask are in host byte order."""
    words = [0xFFFFFFFF] * (family.filter_bytes // 4)
    for kind in types:
        words[kind >> 5] &= ~(1 << (kind & 31)) & 0xFFFFFFFF
    sock.setsockopt(*family.filter, struct.pack(f"={len(words)}I", *words))


def request(family: _Family, identifier: int, sequence: int, payload: bytes) -> bytes:
    """One echo request. The kernel fills in the checksum of ICMPv6, which covers addresses too."""
    total = int.from_bytes(
        _HEADER.pack(family.request, 0, 0, identifier, sequence) + payload + bytes(len(payload) % 2), "big"
    )
    # The sum of 16-bit words with carries folded in is the remainder by 0xffff.
    checksum = 0xFFFF - total % 0xFFFF if family is _V4 else 0
    return _HEADER.pack(family.request, 0, checksum, identifier, sequence) + payload


class Message(NamedTuple):
    """A received ICMP message: from whom, and from its header on."""

    sender: str
    kind: int
    code: int
    identifier: int
    sequence: int
    body: bytes


def parse(family: _Family, data: bytes, sender: str) -> Optional[Message]:
    """What a raw socket returned; None where it is too short. IPv4 comes with its header, IPv6 without."""
    if family is _V4:
        data = data[(data[0] & 15) * 4 :] if data else data
    if len(data) < _HEADER.size:
        return None
    kind, code, _checksum, identifier, sequence = _HEADER.unpack_from(data)
    return Message(sender.partition("%")[0], kind, code, identifier, sequence, data[_HEADER.size :])


def quoted(family: _Family, message: Message) -> Optional[Tuple[str, int]]:
    """(destination, identifier) of the echo request that an error message quotes; None where it quotes something else."""
    inner = message.body
    size = (inner[0] & 15) * 4 if family is _V4 and inner else 40
    if len(inner) < size + _HEADER.size:
        return None
    address = inner[16:20] if family is _V4 else inner[24:40]
    kind, _code, _checksum, identifier, _sequence = _HEADER.unpack_from(inner, size)
    protocol = inner[9] if family is _V4 else inner[6]
    if protocol != family.protocol or kind != family.request:
        return None
    return netlink.address_text(address), identifier


def reported_mtu(family: _Family, message: Message) -> Optional[int]:
    """The next hop's MTU of a "packet too big" (ICMPv6) or "fragmentation needed" (ICMP); None for other errors.

    0 is what hops say that do not know (RFC 792 had no such field).
    """
    if family is _V6:
        return (message.identifier << 16 | message.sequence) if message.kind == 2 else None
    return message.sequence if (message.kind, message.code) == (3, 4) else None


_UNREACHABLE = {
    (_V6, 1, 0): "no route to the destination",
    (_V6, 1, 1): "administratively prohibited",
    (_V6, 1, 3): "the address does not resolve there",
    (_V6, 1, 5): "the source address is refused there",
    (_V6, 1, 6): "the route rejects the destination",
    (_V4, 3, 0): "no route to the network",
    (_V4, 3, 1): "the host does not resolve there",
    (_V4, 3, 13): "administratively prohibited",
}


def describe(family: _Family, message: Message) -> str:
    """An error message for people."""
    if message.kind == (3 if family is _V6 else 11):
        return "the hop limit was exceeded (a routing loop)"
    number = f"ICMP error type {message.kind} code {message.code}"
    return _UNREACHABLE.get((family, message.kind, message.code), number)


def ping(
    targets: Sequence[Target],
    count: int = 3,
    interval: float = 0.2,
    timeout: float = 1.0,
    rate: float = 1000.0,
    concurrency: int = 1024,
    once: bool = False,
) -> List[Echo]:
    """Ask every target C(count) times; one Echo each, in their order.

    C(interval): seconds between two requests to one target; C(timeout): how long each may take to be answered; C(rate): packets
    per second from one source at most; C(concurrency): unanswered packets under way at once; C(once): no further request to a
    target that has answered. Raises EchoError.
    """
    with _Run(targets, count, interval, timeout, rate, concurrency, once) as run:
        return run.finish()


def _device_index(device: str) -> int:
    try:
        return socket.if_nametoindex(device)
    except OSError:
        return 0


class _Source:
    """One socket with the requests that wait for their time: (not before, target's number, attempt), in order."""

    def __init__(self, family: _Family, device: str, sock: Union[socket.socket, OSError]) -> None:
        self.family = family
        self.device = device
        self.sock = sock
        self.index = _device_index(device)
        self.waiting: Deque[Tuple[float, int, int]] = collections.deque()
        self.numbers: Dict[str, List[int]] = {}
        self.next_at = 0.0
        self.stalls = 0

    @property
    def due(self) -> float:
        return max(self.next_at, self.waiting[0][0])


class _Run:
    def __init__(
        self,
        targets: Sequence[Target],
        count: int,
        interval: float,
        timeout: float,
        rate: float,
        concurrency: int,
        once: bool,
    ) -> None:
        self.targets, self.count, self.interval, self.timeout = targets, count, interval, timeout
        self.gap, self.concurrency, self.once = 1.0 / rate, concurrency, once
        self.echoes = [Echo() for _target in targets]
        self.nonce, self.identifier = os.urandom(8), int.from_bytes(os.urandom(2), "big")
        # Unanswered packets, the oldest first: (target's number, attempt) -> when it was sent.
        self.under_way: Dict[Tuple[int, int], float] = {}
        self.selector = selectors.DefaultSelector()
        self.sources: Dict[Tuple[str, str], _Source] = {}

    def __enter__(self) -> _Run:
        try:
            for number, target in enumerate(self.targets):
                source = self._source(target)
                source.numbers.setdefault(target.destination, []).append(number)
                source.waiting.append((0.0, number, 0))
            for family in {source.family for source in self.sources.values()}:
                self._watch(family)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: Any) -> None:
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        self.selector.close()

    def _source(self, target: Target) -> _Source:
        key = (target.device, target.source)
        if key not in self.sources:
            sock: Union[socket.socket, OSError]
            try:
                sock = open_source(*key)
            except OSError as error:
                sock = error
            self.sources[key] = _Source(_family(target.source), target.device, sock)
            if not isinstance(sock, OSError):
                self.selector.register(sock, selectors.EVENT_READ, self.sources[key])
        return self.sources[key]

    def _watch(self, family: _Family) -> None:
        """A socket that sees replies by whatever device they come in."""
        sock = _open(family)
        self.selector.register(sock, selectors.EVENT_READ, family)
        level, option, _kind = family.packet_info
        sock.setsockopt(level, option, 1)
        _filter(sock, family, [family.reply])

    def finish(self) -> List[Echo]:
        while True:
            now = time.monotonic()
            self._forget(now - self.timeout)
            wakes = [self._send(source) for source in self.sources.values() if source.waiting]
            if self.under_way:
                wakes.append(next(iter(self.under_way.values())) + self.timeout)
            elif not any(source.waiting for source in self.sources.values()):
                return self.echoes
            for key, _events in self.selector.select(max(0.0, min(wakes) - time.monotonic())):
                self._receive(key.fileobj, key.data)

    def _forget(self, before: float) -> None:
        """Give up what was sent too long ago."""
        while self.under_way:
            oldest = next(iter(self.under_way))
            if self.under_way[oldest] > before:
                return
            del self.under_way[oldest]

    def _send(self, source: _Source) -> float:
        """Send what is due; when to come back."""
        now = time.monotonic()
        while source.waiting and source.due <= now:
            if len(self.under_way) >= self.concurrency:
                return now + self.timeout
            source.next_at = max(source.next_at, now - _SLACK) + self.gap
            _not_before, number, attempt = source.waiting.popleft()
            echo = self.echoes[number]
            if self.once and echo.received:
                continue
            try:
                self._send_one(source, number, attempt)
            except OSError as error:
                if error.errno in (errno.EAGAIN, errno.ENOBUFS) and source.stalls < _STALLS:
                    source.stalls += 1
                    source.waiting.appendleft((now + _PAUSE, number, attempt))
                    return now + _PAUSE
                echo.refusal = os.strerror(error.errno or 0)
                if error.errno == errno.EMSGSIZE:
                    echo.mtu = device_mtu(source.device)
                continue
            if attempt + 1 < self.count:
                source.waiting.append((now + self.interval, number, attempt + 1))
        return source.due if source.waiting else now + self.timeout

    def _send_one(self, source: _Source, number: int, attempt: int) -> None:
        if isinstance(source.sock, OSError):
            raise source.sock
        target = self.targets[number]
        payload = _MARK.pack(self.nonce, number, attempt).ljust(target.payload, b"\0")
        packet = request(source.family, self.identifier, (number + attempt) & 0xFFFF, payload)
        started = time.monotonic()
        source.sock.sendto(packet, (target.destination, 0))
        self.echoes[number].sent += 1
        self.under_way[number, attempt] = started

    def _receive(self, sock: Any, owner: Union[_Source, _Family]) -> None:
        """Take all that a socket holds; C(owner) is a source, or the family of a socket that only watches."""
        family = owner.family if isinstance(owner, _Source) else owner
        while True:
            try:
                data, ancillary, _flags, address = sock.recvmsg(_REPLY_BYTES, 64)
            except BlockingIOError:
                return
            except OSError:  # The device went away; what is missing stays without an answer.
                self.selector.unregister(sock)
                sock.close()
                return
            now = time.monotonic()
            message = parse(family, data, address[0])
            if message is None:
                continue
            if message.kind != family.reply:
                if isinstance(owner, _Source):
                    self._take_error(owner, message)
                continue
            found = self._mine(message)
            if found is None:
                continue
            if isinstance(owner, _Source):
                self._take_reply(owner, *found, now)
            else:
                self._note_device(found[0], family, ancillary)

    def _mine(self, message: Message) -> Optional[Tuple[int, int]]:
        """(target's number, attempt) of a reply to this run that its own destination sent."""
        if message.identifier != self.identifier or len(message.body) < _MARK.size:
            return None
        nonce, number, attempt = _MARK.unpack_from(message.body)
        if nonce != self.nonce or number >= len(self.targets) or message.sequence != (number + attempt) & 0xFFFF:
            return None
        return (number, attempt) if self.targets[number].destination == message.sender else None

    def _take_reply(self, source: _Source, number: int, attempt: int, now: float) -> None:
        if number not in source.numbers.get(self.targets[number].destination, ()):
            return
        sent_at = self.under_way.pop((number, attempt), None)
        if sent_at is not None:  # Otherwise it came twice, or too late.
            self.echoes[number].received += 1
            self.echoes[number].rtts_ms.append((now - sent_at) * 1000)

    def _take_error(self, source: _Source, message: Message) -> None:
        quote = quoted(source.family, message)
        if quote is None or quote[1] != self.identifier:
            return
        for number in source.numbers.get(quote[0], ()):
            mtu = reported_mtu(source.family, message)
            if mtu is None:
                self.echoes[number].unreachable = f"{message.sender} says: {describe(source.family, message)}"
            else:
                self.echoes[number].mtu = mtu

    def _note_device(self, number: int, family: _Family, ancillary: Sequence[Tuple[int, int, bytes]]) -> None:
        for level, kind, value in ancillary:
            if (level, kind) == (family.packet_info[0], family.packet_info[2]):
                # struct in_pktinfo begins with the device's number, in6_pktinfo ends with it.
                (index,) = struct.unpack_from("=i", value, 16 if family is _V6 else 0)
                if index != self._source(self.targets[number]).index:
                    self.echoes[number].came_in_by = netlink.device_name(index)
