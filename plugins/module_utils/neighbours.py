# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which next hops have a link-layer address: C(ip neighbour show), read over rtnetlink.

Layout and states: linux/neighbour.h (struct ndmsg, NUD_*).
"""

from __future__ import annotations

import socket
import struct
from typing import Dict, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import netlink

_ENTRY = struct.Struct("=BxxxiHBB")
_RTM_GETNEIGH, _NDA_DST = 30, 1
_STATES = {
    1: "INCOMPLETE",
    2: "REACHABLE",
    4: "STALE",
    8: "DELAY",
    16: "PROBE",
    32: "FAILED",
    64: "NOARP",
    128: "PERMANENT",
}

# (device, address) -> state.
States = Dict[Tuple[str, str], str]


def states() -> States:
    """The neighbour tables of both families. OSError where netlink is refused."""
    found = {}
    for family in (socket.AF_INET, socket.AF_INET6):
        for body in netlink.dump(_RTM_GETNEIGH, _ENTRY.pack(family, 0, 0, 0, 0)):
            _family, index, state, _flags, _kind = _ENTRY.unpack_from(body)
            address = netlink.address_text(netlink.attributes(body[_ENTRY.size :]).get(_NDA_DST))
            found[netlink.device_name(index), address] = _STATES.get(state, "NONE")
    return found


def resolved(state: str) -> bool:
    """Whether a state has a link-layer address; no entry is the empty string. STALE and after are not known to be wrong."""
    return state not in ("", "NONE", "INCOMPLETE", "FAILED")
