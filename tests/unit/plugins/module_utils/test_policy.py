# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""What mends a rail's routing. Rail 1 is fd00:a:1:1::2/64 on rail1; the peer's address is fd00:a:1:2::2."""

from __future__ import annotations

import ipaddress
import socket
import struct

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import netlink, policy
from ansible_collections.infera.baremetal.plugins.module_utils.policy import (
    Policy,
    Rule,
    TableRoute,
    read,
    remedy,
    source_remedy,
)
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.routed_namespaces import RoutedNamespaces

net = ipaddress.ip_network
SOURCE, PEER = ipaddress.ip_address("fd00:a:1:1::2"), ipaddress.ip_address("fd00:a:1:2::2")
OWN, ANY = net("fd00:a:1:1::/64"), net("::/0")
GATEWAY = "fd00:a:1:1::1"
MAIN = TableRoute(254, ANY, "rail0", "fd00:a:0:1::1")
RULE = Rule(OWN, 101)
DEFAULT = TableRoute(101, ANY, "rail1", GATEWAY)

CASES = [
    ("the rule is missing", [], [MAIN, DEFAULT], "ip -6 rule add from fd00:a:1:1::/64 table 101"),
    (
        "the rule points to another rail's table",
        [Rule(OWN, 100)],
        [TableRoute(100, ANY, "rail0", "fd00:a:0:1::1"), DEFAULT],
        "ip -6 rule del from fd00:a:1:1::/64 table 100 && ip -6 rule add from fd00:a:1:1::/64 table 101",
    ),
    (
        "the table is empty, and nothing tells the gateway",
        [RULE],
        [MAIN],
        "ip -6 route replace default via GATEWAY_OF_rail1 dev rail1 table 101",
    ),
    (
        "the table is empty, and the main table tells the gateway",
        [RULE],
        [MAIN, TableRoute(254, ANY, "rail1", GATEWAY)],
        "ip -6 route replace default via fd00:a:1:1::1 dev rail1 table 101",
    ),
    (
        "a more specific route rejects the peer",
        [RULE],
        [DEFAULT, TableRoute(101, net("fd00:a:1:2::/64"), kind="blackhole")],
        "ip -6 route del blackhole fd00:a:1:2::/64 table 101",
    ),
    (
        "the rail's own rule is right, another one comes before it",
        [Rule(net("fd00:a::/32"), 77), RULE],
        [DEFAULT, TableRoute(77, ANY, "rail0", "fd00:a:0:1::1")],
        "ip -6 rule show (a rule before the one from fd00:a:1:1::/64 decides)",
    ),
    (
        "there is nothing, and table 101 belongs to somebody else",
        [Rule(net("fd00:b::/64"), 101)],
        [MAIN],
        "ip -6 route add default via GATEWAY_OF_rail1 dev rail1 table 102 && ip -6 rule add from fd00:a:1:1::/64 table 102",
    ),
]


@pytest.mark.parametrize(("rules", "routes", "words"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_commands_that_mend_it(rules: list[Rule], routes: list[TableRoute], words: str) -> None:
    assert remedy(Policy(tuple(rules), tuple(routes)), 1, "rail1", SOURCE, OWN, PEER) == words


def test_ipv4_has_its_own_command_and_does_not_look_at_ipv6() -> None:
    source, peer = ipaddress.ip_address("10.1.1.2"), ipaddress.ip_address("10.1.2.2")
    table = TableRoute(101, net("0.0.0.0/0"), "rail1", "10.1.1.1")

    assert remedy(Policy((RULE,), (DEFAULT, table)), 1, "rail1", source, net("10.1.1.0/24"), peer) == (
        "ip rule add from 10.1.1.0/24 table 101"
    )


@pytest.mark.parametrize(
    ("routes", "words"),
    [
        ([DEFAULT], "ip -6 route replace default via fd00:a:1:1::1 dev rail1 src fd00:a:1:1::2 table 101"),
        (
            [DEFAULT, TableRoute(101, net("fd00:a:1:2::/64"), "rail1")],
            "ip -6 route replace fd00:a:1:2::/64 dev rail1 src fd00:a:1:1::2 table 101",
        ),
        ([], "ip -6 route get fd00:a:1:2::2 from fd00:a:1:1::2 (its route needs src fd00:a:1:1::2)"),
    ],
)
def test_the_command_that_makes_a_route_prefer_the_rails_address(routes: list[TableRoute], words: str) -> None:
    assert source_remedy(Policy((RULE,), tuple(routes)), "rail1", SOURCE, PEER) == words


def test_without_a_rule_the_main_table_is_meant() -> None:
    main = TableRoute(254, ANY, "rail1", GATEWAY)

    assert source_remedy(Policy((), (DEFAULT, main)), "rail1", SOURCE, PEER) == (
        "ip -6 route replace default via fd00:a:1:1::1 dev rail1 src fd00:a:1:1::2 table 254"
    )


def test_what_is_not_about_a_source_or_does_not_forward_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """struct fib_rule_hdr and rtmsg: family, lengths, tos, table, ..., action or type; attributes: FRA_SRC 2, RTA_TABLE 15."""
    packed = socket.inet_pton(10, "fd00:a:1:1::")

    def header(bits: int, source_bits: int, table: int, kind: int, family: int = 10) -> bytes:
        return struct.pack("=BBBBBBBBI", family, bits, source_bits, 0, table, 0, 0, kind, 0)

    rules = [
        header(0, 64, 101, 1) + netlink.pack(2, packed),
        header(0, 64, 0, 1) + netlink.pack(2, packed) + netlink.pack(15, struct.pack("=I", 5001)),
        header(0, 0, 254, 1),
        header(0, 64, 101, 6) + netlink.pack(2, packed),
        header(0, 64, 101, 1) + netlink.pack(2, b"odd"),
        header(0, 8, 101, 1, family=99),
    ]
    routes = [
        header(64, 0, 101, 7) + netlink.pack(1, packed),
        header(0, 0, 255, 1),
        header(64, 0, 254, 5) + netlink.pack(1, packed),
        header(0, 0, 254, 1, family=99),
    ]
    monkeypatch.setattr(policy.netlink, "dump", lambda kind, _body: rules if kind == 34 else routes)

    assert read(socket.AF_INET6) == Policy(
        (Rule(OWN, 101), Rule(OWN, 5001)), (TableRoute(101, OWN, kind="unreachable"),)
    )


def test_rules_and_tables_of_a_namespace_are_read(fabric: RoutedNamespaces) -> None:
    v6 = fabric.call(1, lambda: read(socket.AF_INET6))
    v4 = fabric.call(1, lambda: read(socket.AF_INET))

    assert set(v6.rules) == {Rule(net("fd00:a:0:1::/64"), 100), RULE}
    assert DEFAULT in v6.routes
    assert set(v4.rules) == {Rule(net("10.0.1.0/24"), 100), Rule(net("10.1.1.0/24"), 101)}
    assert TableRoute(101, net("0.0.0.0/0"), "rail1", "10.1.1.1") in v4.routes
    assert TableRoute(254, net("10.1.1.0/24"), "rail1") in v4.routes
