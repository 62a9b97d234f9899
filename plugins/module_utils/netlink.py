# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Messages of rtnetlink: how they are put together, taken apart, and how a whole table is read.

Layouts: linux/netlink.h (struct nlmsghdr), linux/rtnetlink.h (struct rtattr).
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Dict, Iterator, List, Optional, Tuple

ERROR = 2
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_REQUEST, _DUMP, _DONE = 0x1, 0x300, 3
_TIMEOUT = 5.0
# A table that is longer than this is not read to its end: a GPU node has dozens of entries, a router millions.
_LIMIT = 100_000


def channel() -> socket.socket:
    """A socket to the kernel, with a time limit on each receive."""
    opened = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
    opened.settimeout(_TIMEOUT)
    opened.bind((0, 0))
    return opened


def message(kind: int, body: bytes, sequence: int = 1, flags: int = 0) -> bytes:
    """One request."""
    return _HEADER.pack(_HEADER.size + len(body), kind, _REQUEST | flags, sequence, 0) + body


def messages(data: bytes) -> Iterator[Tuple[int, int, bytes]]:
    """(kind, sequence number, body) of each message in what one receive returned; what is cut off is left out."""
    while len(data) >= _HEADER.size:
        length, kind, _flags, sequence, _port = _HEADER.unpack_from(data)
        if not _HEADER.size <= length <= len(data):
            return
        yield kind, sequence, data[_HEADER.size : length]
        data = data[(length + 3) & ~3 :]


def error_number(body: bytes) -> int:
    """The errno of an ERROR message."""
    return -struct.unpack_from("=i", body)[0]


def pack(kind: int, value: bytes) -> bytes:
    """One attribute, padded."""
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(value), kind) + value + bytes(-len(value) % 4)


def attributes(data: bytes) -> Dict[int, bytes]:
    """Attributes by kind, without the two flag bits."""
    found = {}
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        if length < _ATTRIBUTE.size:
            break
        found[kind & 0x3FFF] = data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
    return found


def dump(kind: int, body: bytes) -> List[bytes]:
    """The bodies of all entries of a table. OSError where the kernel refuses or does not answer."""
    entries: List[bytes] = []
    with channel() as opened:
        opened.send(message(kind, body, flags=_DUMP))
        while len(entries) < _LIMIT:
            for answer, _sequence, content in messages(opened.recv(1 << 16)):
                if answer == _DONE:
                    return entries
                if answer == ERROR:
                    number = error_number(content)
                    raise OSError(number, os.strerror(number))
                entries.append(content)
    return entries


def address_text(packed: Optional[bytes]) -> str:
    """An address of either family; empty where there is none."""
    if packed is None or len(packed) not in (4, 16):
        return ""
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)


def device_name(index: int) -> str:
    """The name of an interface; empty where it is gone."""
    try:
        return socket.if_indextoname(index)
    except OSError:
        return ""
