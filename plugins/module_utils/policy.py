# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Source-based routing as it is (C(ip rule), all of C(ip route show table all)), and what a rail's lacks.

On a routed fabric each rail needs a rule from its own network to a table of its own, with a default route through the rail's
gateway in it. Nothing is changed here; the commands that would are words.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import netlink
from ansible_collections.infera.baremetal.plugins.module_utils.addresses import Address, Network

# linux/rtnetlink.h struct rtmsg and linux/fib_rules.h struct fib_rule_hdr are laid out alike.
_HEADER = struct.Struct("=BBBBBBBBI")
_RTM_GETROUTE, _RTM_GETRULE = 26, 34
_DST, _SRC, _OIF, _GATEWAY, _TABLE = 1, 2, 4, 5, 15
_MAIN, _LOCAL = 254, 255
_TO_TABLE = 1
_REJECTING = {6: "blackhole", 7: "unreachable", 8: "prohibit"}
# The convention of this fabric's documentation: rail 1 has table 101.
_FIRST_TABLE = 100


@dataclass(frozen=True)
class Rule:
    """From a network to a table."""

    source: Network
    table: int


@dataclass(frozen=True)
class TableRoute:
    """C(kind): empty for a route that forwards, otherwise blackhole, unreachable or prohibit."""

    table: int
    destination: Network
    device: str = ""
    gateway: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Policy:
    """The rules that look at a source (others are left out) and the routes of all tables but C(local), of one family."""

    rules: Tuple[Rule, ...] = ()
    routes: Tuple[TableRoute, ...] = ()


def read(family: int) -> Policy:
    """The policy of one address family of this network namespace. OSError where netlink is refused."""
    rules = [_rule(body) for body in netlink.dump(_RTM_GETRULE, _HEADER.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))]
    routes = [_table_route(body) for body in netlink.dump(_RTM_GETROUTE, _HEADER.pack(family, 0, 0, 0, 0, 0, 0, 0, 0))]
    return Policy(
        tuple(rule for rule in rules if rule is not None), tuple(route for route in routes if route is not None)
    )


def _rule(body: bytes) -> Optional[Rule]:
    family, _bits, bits, _tos, table, _res1, _res2, action, _flags = _HEADER.unpack_from(body)
    attributes = netlink.attributes(body[_HEADER.size :])
    source = _network(family, attributes.get(_SRC), bits)
    return Rule(source, _table(attributes, table)) if action == _TO_TABLE and bits and source is not None else None


def _table_route(body: bytes) -> Optional[TableRoute]:
    family, bits, _source_bits, _tos, table, _protocol, _scope, kind, _flags = _HEADER.unpack_from(body)
    attributes = netlink.attributes(body[_HEADER.size :])
    destination = _network(family, attributes.get(_DST), bits)
    table = _table(attributes, table)
    if destination is None or table == _LOCAL or (kind != 1 and kind not in _REJECTING):
        return None
    return TableRoute(
        table,
        destination,
        netlink.device_name(struct.unpack("=I", attributes[_OIF])[0]) if _OIF in attributes else "",
        netlink.address_text(attributes.get(_GATEWAY)),
        _REJECTING.get(kind, ""),
    )


def _table(attributes: Dict[int, bytes], low: int) -> int:
    return struct.unpack("=I", attributes[_TABLE])[0] if _TABLE in attributes else low


def _network(family: int, packed: Optional[bytes], bits: int) -> Optional[Network]:
    width = {socket.AF_INET: 4, socket.AF_INET6: 16}.get(family)
    if width is None or (packed is not None and len(packed) != width):
        return None
    address = ipaddress.ip_address(packed if packed is not None else bytes(width))
    return ipaddress.ip_network((address, bits), strict=False)


def remedy(policy: Policy, index: int, device: str, source: Address, prefix: Network, destination: Address) -> str:
    """The commands after which packets from C(source) to C(destination) would leave by C(device); words where none can be derived.

    C(prefix): the network of the rail that C(source) is in; C(index): the rail's, for the number of a table that is not there yet.
    """
    ip = "ip -6" if source.version == 6 else "ip"
    ruled = [rule for rule in policy.rules if _within(source, rule.source)]
    covering = [route for route in policy.routes if _within(destination, route.destination)]
    through = [route for route in covering if route.device == device and route.table != _MAIN]
    gateway = _gateway(policy, device)
    tables = {rule.table for rule in ruled}

    for table in tables:
        best = max(
            (route for route in covering if route.table == table),
            key=lambda route: route.destination.prefixlen,
            default=None,
        )
        if best is not None and best.kind:
            return f"{ip} route del {best.kind} {best.destination} table {table}"
    if any(route.table in tables for route in through):
        return f"{ip} rule show (a rule before the one from {prefix} decides)"
    if through:
        wrong = [f"{ip} rule del from {rule.source} table {rule.table}" for rule in ruled]
        return " && ".join([*wrong, f"{ip} rule add from {prefix} table {through[0].table}"])
    if ruled:
        return f"{ip} route replace default via {gateway} dev {device} table {ruled[0].table}"
    table = _free_table(policy, index)
    return (
        f"{ip} route add default via {gateway} dev {device} table {table} && {ip} rule add from {prefix} table {table}"
    )


def source_remedy(policy: Policy, device: str, source: Address, destination: Address) -> str:
    """The command after which the route that C(source) takes by C(device) prefers it."""
    ip = "ip -6" if source.version == 6 else "ip"
    tables = {rule.table for rule in policy.rules if _within(source, rule.source)} or {_MAIN}
    through = [
        route
        for route in policy.routes
        if route.table in tables and route.device == device and _within(destination, route.destination)
    ]
    if not through:
        return f"{ip} route get {destination} from {source} (its route needs src {source})"
    best = max(through, key=lambda route: route.destination.prefixlen)
    target = "default" if best.destination.prefixlen == 0 else str(best.destination)
    via = f" via {best.gateway}" if best.gateway else ""
    return f"{ip} route replace {target}{via} dev {device} src {source} table {best.table}"


def _within(address: Address, network: Network) -> bool:
    return address.version == network.version and address in network


def _gateway(policy: Policy, device: str) -> str:
    known: List[str] = [route.gateway for route in policy.routes if route.device == device and route.gateway]
    return known[0] if known else f"GATEWAY_OF_{device}"


def _free_table(policy: Policy, index: int) -> int:
    taken = {route.table for route in policy.routes} | {rule.table for rule in policy.rules}
    table = _FIRST_TABLE + index
    while table in taken:
        table += 1
    return table
