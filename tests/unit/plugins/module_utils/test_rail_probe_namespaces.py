# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""One fault at a time on a routed fabric of real namespaces, and the verdict that names it: for the rail that has it, and no other."""

from __future__ import annotations

import time
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import routes
from ansible_collections.infera.baremetal.plugins.modules.rail_probe import run
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.routed_namespaces import RoutedNamespaces

SHORT = {"pairing": "same_index", "count": 2, "interval": 0.02, "timeout": 0.3, "concurrency": 64, "rate": 1000.0}


def ask(fabric: RoutedNamespaces, host: int = 1, version: int = 6, **options: Any) -> dict[str, Any]:
    """The module's result on one host, with the other as its peer."""
    other = 3 - host
    given = {
        "rails": fabric.rails_of(host, version),
        "peers": [{"host": f"gpu{other}", "rails": fabric.rails_of(other, version)}],
        "host": f"gpu{host}",
        "jumbo": True,
        **SHORT,
        **options,
    }
    return fabric.call(host, lambda: run(given))


def verdicts(result: dict[str, Any]) -> list[str]:
    return [entry["verdict"] for entry in result["probes"]]


@pytest.mark.parametrize(("version", "size"), [(6, 8952), (4, 8972)])
def test_a_fabric_in_order(fabric: RoutedNamespaces, version: int, size: int) -> None:
    result = ask(fabric, version=version)

    assert verdicts(result) == ["routable", "routable"]
    for entry in result["probes"]:
        assert (entry["echo"]["sent"], entry["echo"]["received"], entry["reason"]) == (2, 2, "")
        assert entry["jumbo"] == {"size": size, "received": 1}
        assert entry["route"]["device"] == entry["netdev"]
        assert entry["route"]["prefsrc"] == entry["source"]
    assert (result["summary"]["sent"], result["summary"]["received"]) == (6, 6)


def test_every_rail_of_a_routed_fabric_reaches_every_other(fabric: RoutedNamespaces) -> None:
    assert verdicts(ask(fabric, pairing="all", jumbo=False)) == ["routable"] * 4


# (what it stands for, family, [(host or 0 for the router, command)], verdict of rail 1 on host 1, how its reason begins)
FAULTS = [
    (
        "rule missing",
        6,
        [(1, "-6 rule del from fd00:a:1:1::/64 table 101")],
        "no_route",
        "no way from fd00:a:1:1::2 to fd00:a:1:2::2 (Network is unreachable): ip -6 rule add from fd00:a:1:1::/64 table 101",
    ),
    (
        "rule missing, and a default route that makes everything look reachable",
        6,
        [(1, "-6 rule del from fd00:a:1:1::/64 table 101"), (1, "-6 route add default via fd00:a:0:1::1")],
        "wrong_device",
        "packets from fd00:a:1:1::2 to fd00:a:1:2::2 leave by rail0, not by rail1: ip -6 rule add from fd00:a:1:1::/64 table 101",
    ),
    (
        "the same for IPv4",
        4,
        [(1, "-4 rule del from 10.1.1.0/24 table 101"), (1, "-4 route add default via 10.0.1.1")],
        "wrong_device",
        "packets from 10.1.1.2 to 10.1.2.2 leave by rail0, not by rail1: ip rule add from 10.1.1.0/24 table 101",
    ),
    (
        "wrong table",
        6,
        [
            (1, "-6 rule del from fd00:a:1:1::/64 table 101"),
            (1, "-6 rule add from fd00:a:1:1::/64 table 100"),
        ],
        "wrong_device",
        "packets from fd00:a:1:1::2 to fd00:a:1:2::2 leave by rail0, not by rail1: ip -6 rule del from fd00:a:1:1::/64 table 100 && "
        "ip -6 rule add from fd00:a:1:1::/64 table 101",
    ),
    (
        "table without a route",
        6,
        [(1, "-6 route del default via fd00:a:1:1::1 dev rail1 table 101")],
        "no_route",
        "no way from fd00:a:1:1::2 to fd00:a:1:2::2 (Network is unreachable): ip -6 route replace default via GATEWAY_OF_rail1 "
        "dev rail1 table 101",
    ),
    (
        "blackhole",
        6,
        [(1, "-6 route add blackhole fd00:a:1:2::/64 table 101")],
        "no_route",
        "no way from fd00:a:1:1::2 to fd00:a:1:2::2 (blackhole): ip -6 route del blackhole fd00:a:1:2::/64 table 101",
    ),
    (
        "prohibited for IPv4",
        4,
        [(1, "-4 route add prohibit 10.1.2.0/24 table 101")],
        "no_route",
        "no way from 10.1.1.2 to 10.1.2.2 (prohibit): ip route del prohibit 10.1.2.0/24 table 101",
    ),
    (
        "another source is preferred",
        6,
        [
            (1, "-6 addr add fd00:a:1:1::9/64 dev rail1 nodad"),
            (1, "-6 route replace default via fd00:a:1:1::1 dev rail1 src fd00:a:1:1::9 table 101"),
        ],
        "wrong_source",
        "the route to fd00:a:1:2::2 prefers fd00:a:1:1::9, not fd00:a:1:1::2: "
        "ip -6 route replace default via fd00:a:1:1::1 dev rail1 src fd00:a:1:1::2 table 101",
    ),
    (
        "the gateway does not resolve",
        6,
        [(0, "-6 addr del fd00:a:1:1::1/64 dev h1r1")],
        "gateway_unresolved",
        "the gateway fd00:a:1:1::1 does not resolve on rail1 (INCOMPLETE): ",
    ),
    (
        "the gateway does not resolve for IPv4",
        4,
        [(0, "-4 addr del 10.1.1.1/24 dev h1r1")],
        "gateway_unresolved",
        "the gateway 10.1.1.1 does not resolve on rail1 (",
    ),
    (
        "the peer's address is missing",
        6,
        [(2, "-6 addr del fd00:a:1:2::2/64 dev rail1")],
        "no_reply",
        "fd00:a:1:2::2 does not answer within 0.3 s: ",
    ),
    (
        "the router lacks the way out",
        6,
        [(0, "-6 route del fd00:a:1:2::/64 dev h2r1")],
        "no_reply",
        "fd00:a:1:1::1 says: no route to the destination",
    ),
    (
        "the router lacks the way back",
        6,
        [(0, "-6 route del fd00:a:1:1::/64 dev h1r1")],
        "no_reply",
        "fd00:a:1:2::2 does not answer within 0.3 s: it is down or filters, a hop has no way back to fd00:a:1:1::/64, ",
    ),
    (
        "replies come in by the other rail",
        6,
        [
            (0, "-6 route del fd00:a:1:1::/64 dev h1r1"),
            (0, "-6 route add fd00:a:1:1::/64 via fd00:a:0:1::2 dev h1r0"),
        ],
        "no_reply",
        "replies of fd00:a:1:2::2 come in by rail0, not by rail1: they leave gpu2 by another rail; look at its rule for fd00:a:1:2::/64: ",
    ),
    (
        "MTU 1500 on one hop",
        6,
        [(0, "link set h2r1 mtu 1500")],
        "mtu_too_small",
        "echoes of 8952 bytes do not reach fd00:a:1:2::2: a hop has MTU 1500; ",
    ),
    (
        "MTU 1500 on one hop for IPv4",
        4,
        [(0, "link set h2r1 mtu 1500")],
        "mtu_too_small",
        "echoes of 8972 bytes do not reach 10.1.2.2: a hop has MTU 1500; ",
    ),
    (
        "MTU 1500 where packets are dropped in silence",
        6,
        [(2, "link set rail1 mtu 1500")],
        "mtu_too_small",
        "echoes of 8952 bytes vanish on the way to fd00:a:1:2::2 while small ones are answered",
    ),
    (
        "MTU 1500 on the rail itself",
        6,
        [(1, "link set rail1 mtu 1500")],
        "mtu_too_small",
        "rail1 takes packets of 1500 bytes only: ip link set rail1 mtu 9000",
    ),
    (
        "the rail's address is missing",
        6,
        [(1, "-6 addr del fd00:a:1:1::2/64 dev rail1")],
        "source_missing",
        "this host has no usable address fd00:a:1:1::2 (a tentative one is not): ip -6 address add fd00:a:1:1::2/64 dev rail1",
    ),
]


@pytest.mark.parametrize(
    ("version", "commands", "verdict", "reason"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS]
)
def test_one_fault_ends_in_the_verdict_that_names_it(
    fabric: RoutedNamespaces, version: int, commands: list[tuple[int, str]], verdict: str, reason: str
) -> None:
    for host, command in commands:
        fabric.run(host, command)

    healthy, faulty = ask(fabric, version=version)["probes"]

    assert healthy["verdict"] == "routable"
    assert faulty["verdict"] == verdict
    assert faulty["reason"].startswith(reason)


@pytest.mark.parametrize(
    "fault",
    [
        "rule missing",
        "the same for IPv4",
        "wrong table",
        "blackhole",
        "another source is preferred",
        "MTU 1500 on the rail itself",
    ],
)
def test_the_commands_in_a_reason_mend_it(fabric: RoutedNamespaces, fault: str) -> None:
    ((version, commands),) = [entry[1:3] for entry in FAULTS if entry[0] == fault]
    for host, command in commands:
        fabric.run(host, command)
    reason = ask(fabric, version=version)["probes"][1]["reason"]

    for command in reason[reason.index(": ip ") + 2 :].split(" && "):
        fabric.run(1, command.removeprefix("ip "))

    assert verdicts(ask(fabric, version=version)) == ["routable", "routable"]


def test_a_rule_that_the_peer_lacks_is_the_peers_to_see(fabric: RoutedNamespaces) -> None:
    """Routers bring the reply back by the right rail whichever it left by: an echo cannot tell, the peer's route can."""
    fabric.run(2, "-6 rule del from fd00:a:1:2::/64 table 101")
    fabric.run(2, "-6 route add default via fd00:a:0:2::1")

    here, there = ask(fabric, host=1), ask(fabric, host=2)

    assert verdicts(here) == ["routable", "routable"]
    assert verdicts(there) == ["routable", "wrong_device"]


def test_two_hosts_with_one_address(fabric: RoutedNamespaces) -> None:
    fabric.run(1, "-6 addr add fd00:a:1:2::2/64 dev rail1 nodad")

    assert verdicts(ask(fabric)) == ["routable", "wrong_device"]


def test_from_a_rail_that_is_down_nothing_is_sent(fabric: RoutedNamespaces) -> None:
    rails = fabric.rails_of(1)
    rails[1]["state"] = "DOWN"

    result = ask(fabric, rails=rails)

    assert verdicts(result) == ["routable", "source_missing"]
    assert result["summary"]["sent"] == 3


def test_the_mtu_is_read_from_the_device_where_it_is_not_given(fabric: RoutedNamespaces) -> None:
    rails = [{**rail, "mtu": None} for rail in fabric.rails_of(1)]

    assert [entry["jumbo"]["size"] for entry in ask(fabric, rails=rails)["probes"]] == [8952, 8952]


def test_two_hundred_peers_with_eight_rails(fabric: RoutedNamespaces) -> None:
    """1,600 pairs through the two rails that are there, most of them silent: one call ends within its bounds, all are judged."""
    rails = [{**fabric.rails_of(1)[index % 2], "index": index} for index in range(8)]
    peers = [
        {
            "host": f"gpu{peer}",
            "rails": [
                {**fabric.rails_of(2)[index % 2], "index": index, "address": f"fd00:a:{index % 2}:2::{peer:x}"}
                for index in range(8)
            ],
        }
        for peer in range(2, 202)
    ]
    started = time.monotonic()

    result = ask(fabric, rails=rails, peers=peers, count=1, jumbo=False, concurrency=2000)

    assert result["summary"]["verdicts"]["routable"] == 8
    assert result["summary"]["verdicts"]["no_reply"] == 8 * 199
    assert result["summary"]["sent"] == 1600
    assert time.monotonic() - started < 10


def test_all_routes_are_asked_for_at_once(fabric: RoutedNamespaces, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    lookup = routes.lookup
    monkeypatch.setattr(routes, "lookup", lambda queries: asked.append(len(queries)) or lookup(queries))

    ask(fabric, pairing="all")

    assert asked == [4]
