# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The way of the KV cache: prefill offers it on every rail, decode pulls it over one of them.

Where the real engine posts RDMA writes between queue pairs, this opens a TCP connection that is bound, on both ends, to
the rail's address and network device. So it needs what RDMA needs: that rail, its address, and a route from it.

On the wire: decode sends the room (8 bytes); prefill sends the length (8 bytes, 0 for a room it does not have) and the bytes.
All numbers are big-endian.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import errno
import hashlib
import ipaddress
import json
import logging
import socket
import struct
import threading
import time
import typing as t

from .answer import KvCache
from .rails import Rail
from .web import HttpError, Request, endpoint, error_message, read, send

log = logging.getLogger("infera.transfer")

NUMBER = struct.Struct(">Q")
MAX_ROOM = 2**63 - 1


class KvStore:
    """KV caches by room, for a while: the oldest go first when there are too many, and each after `lifetime` seconds."""

    def __init__(self, max_rooms: int = 64, max_bytes: int = 16 * 1024 * 1024, lifetime: float = 120) -> None:
        self._max_rooms, self._max_bytes, self._lifetime = max_rooms, max_bytes, lifetime
        self._rooms: collections.OrderedDict[int, tuple[float, KvCache]] = collections.OrderedDict()
        self._changed = threading.Condition()

    def put(self, room: int, kv: KvCache) -> None:
        """Keeps a room's KV cache."""
        with self._changed:
            self._rooms.pop(room, None)
            self._rooms[room] = (time.monotonic(), kv)
            while len(self._rooms) > 1 and self._is_too_much():
                dropped, _kv = self._rooms.popitem(last=False)
                log.warning("room %d dropped: nobody fetched its KV cache", dropped)
            self._changed.notify_all()

    def get(self, room: int, wait: float = 0) -> KvCache | None:
        """A room's KV cache; waits up to `wait` seconds for it. None if there is none."""
        with self._changed:
            self._changed.wait_for(lambda: room in self._rooms, wait)
            created, kv = self._rooms.get(room, (0.0, b""))
            return kv if kv and time.monotonic() - created <= self._lifetime else None

    def drop(self, room: int) -> None:
        """Forgets a room."""
        with self._changed:
            self._rooms.pop(room, None)

    def _is_too_much(self) -> bool:
        oldest, _kv = next(iter(self._rooms.values()))
        return (
            len(self._rooms) > self._max_rooms
            or sum(len(kv) for _created, kv in self._rooms.values()) > self._max_bytes
            or time.monotonic() - oldest > self._lifetime
        )


class Counters:
    """Bytes by rail, for /metrics."""

    def __init__(self) -> None:
        self._bytes: collections.Counter[Rail] = collections.Counter()
        self._lock = threading.Lock()

    def add(self, rail: Rail, size: int) -> None:
        """Counts what went over a rail."""
        with self._lock:
            self._bytes[rail] += size

    def lines(self, direction: str, rails: t.Sequence[Rail]) -> list[str]:
        """The metric in Prometheus's text form, a line for each rail, used or not."""
        name = f"infera_kv_{direction}_bytes_total"
        labels = '{{rail="{0.index}",device="{0.device}",netdev="{0.netdev}"}}'
        with self._lock:
            return [f"# TYPE {name} counter", *(name + labels.format(rail) + f" {self._bytes[rail]}" for rail in rails)]


def bound_socket(rail: Rail, patience: float = 0) -> socket.socket:
    """A TCP socket that can only use this rail. OSError if the rail is not there.

    `patience`: seconds to wait for an address that the kernel does not let us use yet (duplicate address detection).
    """
    if rail.address is None:
        raise OSError(errno.EADDRNOTAVAIL, f"GID is NULL on {rail.device}")
    family = socket.AF_INET6 if ":" in rail.address else socket.AF_INET
    deadline = time.monotonic() + patience
    while True:
        bound = socket.socket(family, socket.SOCK_STREAM)
        try:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, rail.netdev.encode())
            bound.bind((rail.address, 0))
            return bound
        except OSError as error:
            bound.close()
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() >= deadline:
                raise
            time.sleep(0.2)


class RailServers:
    """Prefill's end: a listening socket on every rail that is there, each bound to its own address and device."""

    def __init__(self, rails: t.Sequence[Rail], store: KvStore, patience: float = 3) -> None:
        self.counters = Counters()
        self._store = store
        self._listeners: dict[Rail, socket.socket] = {}
        deadline = time.monotonic() + patience
        for rail in rails:
            try:
                listener = bound_socket(rail, max(0.0, deadline - time.monotonic()))
            except OSError as error:
                log.warning(
                    "rail %d (%s, %s, %s) is not used: %s", rail.index, rail.device, rail.netdev, rail.address, error
                )
                continue
            listener.listen(64)
            self._listeners[rail] = listener
            threading.Thread(target=self._accept, args=(rail, listener), daemon=True).start()

    @property
    def rails(self) -> list[Rail]:
        """The rails that are served."""
        return list(self._listeners)

    def offers(self) -> list[dict[str, t.Any]]:
        """What the bootstrap server says of the rails: index, address, port."""
        return [
            {"index": rail.index, "address": rail.address, "port": sock.getsockname()[1]}
            for rail, sock in self._listeners.items()
        ]

    def close(self) -> None:
        """Stops listening."""
        for listener in self._listeners.values():
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()

    def _accept(self, rail: Rail, listener: socket.socket) -> None:
        while listener.fileno() >= 0:
            try:
                connection, _address = listener.accept()
            except OSError:
                time.sleep(0.1)
                continue
            threading.Thread(target=self._send, args=(rail, connection), daemon=True).start()

    def _send(self, rail: Rail, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(30)
            try:
                (room,) = NUMBER.unpack(_receive(connection, NUMBER.size))
                kv = self._store.get(room) or b""
                connection.send(NUMBER.pack(len(kv)), socket.MSG_MORE if kv else 0)
                connection.sendall(kv)
            except OSError as error:
                log.warning("rail %d: KV cache not sent: %s", rail.index, error)
                return
        if kv:
            self._store.drop(room)
            self.counters.add(rail, len(kv))
            log.info("room %d: %d bytes of KV cache sent over rail %d (%s)", room, len(kv), rail.index, rail.netdev)


def route_handler(servers: RailServers, store: KvStore) -> t.Callable[[Request], dict[str, t.Any]]:
    """The bootstrap server's GET /route?room=N: where a room's KV cache is to be had. Waits for prefill to finish."""

    def route(request: Request) -> dict[str, t.Any]:
        room = room_of(request.query.get("room"))
        kv = store.get(room, wait=10)
        if kv is None:
            raise HttpError(404, f"room {room} is not known here")
        return {"room": room, "size": len(kv), "sha256": hashlib.sha256(kv).hexdigest(), "rails": servers.offers()}

    return route


def room_of(value: t.Any) -> int:
    """A bootstrap room: a number of 63 bits. HttpError if it is none."""
    try:
        room = int(value)
    except (TypeError, ValueError):
        room = -1
    if not 0 <= room <= MAX_ROOM:
        raise HttpError(400, f"bootstrap_room: a number from 0 to 2^63-1 is required, not {value!r}")
    return room


@dataclasses.dataclass(frozen=True)
class Pulled:
    """A KV cache and the way it came."""

    kv: KvCache
    rail: Rail
    local: str
    remote: str


class TransferError(Exception):
    """The KV cache did not come; the message is the engine's."""


def pull(host: str, port: int, room: int, rails: t.Sequence[Rail], timeout: float = 5) -> Pulled:
    """Fetches a room's KV cache from the prefill worker whose bootstrap server is host:port, over rail `room % len(rails)`."""
    route = _route(host, port, room)
    rail = rails[room % len(rails)]
    offer = next((offer for offer in route["rails"] if offer["index"] == rail.index), None)
    if offer is None:
        raise _dead(endpoint(host, port), f"prefill does not serve rail {rail.index}")
    remote = endpoint(offer["address"], offer["port"])
    way = f"rail {rail.index} ({rail.device}, {rail.netdev}) from {rail.address} to {remote}"
    try:
        with bound_socket(rail) as connection:
            local = endpoint(*connection.getsockname()[:2])
            connection.settimeout(timeout)
            connection.connect((offer["address"], offer["port"]))
            connection.sendall(NUMBER.pack(room))
            (size,) = NUMBER.unpack(_receive(connection, NUMBER.size))
            kv = _receive(connection, size) if size == route["size"] else bytearray()
    except OSError as error:
        reason = str(error) if error.errno else f"[Errno {errno.ETIMEDOUT}] {error}"
        raise _dead(remote, f"{way}: {reason}") from None
    if size != route["size"]:
        raise TransferError(
            f"Failed to get kvcache from prefill: {size} bytes offered over {way}, {route['size']} announced"
        )
    if hashlib.sha256(kv).hexdigest() != route["sha256"]:
        raise TransferError(
            f"Failed to get kvcache from prefill: what came over {way} has another digest than announced"
        )
    return Pulled(kv, rail, local, remote)


def _route(host: str, port: int, room: int) -> dict[str, t.Any]:
    server = f"http://{endpoint(host, port)}"
    try:
        if ipaddress.ip_address(host).is_unspecified:
            # A bind address, not one to reach anybody at; connecting to it would ask this very host.
            raise TransferError(
                f"Failed to connect to bootstrap server {server}: prefill advertises the address it binds"
            )
    except ValueError:
        pass
    try:
        response = send("GET", f"{server}/route?room={room}", None, timeout=15)
        body = read(response)
    except OSError as error:
        raise TransferError(f"Failed to connect to bootstrap server {server}: {error}") from None
    if response.status != 200:
        raise TransferError(f"Failed to get kvcache from prefill: bootstrap server {server}: {error_message(body)}")
    return t.cast("dict[str, t.Any]", json.loads(body))


def _dead(session: str, reason: str) -> TransferError:
    return TransferError(
        f"Failed to get kvcache from prefill instance, it might be dead (remote mooncake session {session} is not alive): {reason}"
    )


def _receive(connection: socket.socket, size: int) -> bytearray:
    buffer = bytearray(size)
    received = 0
    while received < size:
        count = connection.recv_into(memoryview(buffer)[received:])
        if not count:
            raise ConnectionResetError(errno.ECONNRESET, f"connection closed after {received} of {size} bytes")
        received += count
    return buffer
