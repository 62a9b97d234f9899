# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Who asks whom, and what is said of what was seen; without a socket. Real ones are in test_rail_probe_namespaces."""

from __future__ import annotations

import errno
import time
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import echo, rail_probe
from ansible_collections.infera.baremetal.plugins.module_utils.echo import Echo
from ansible_collections.infera.baremetal.plugins.module_utils.policy import Policy
from ansible_collections.infera.baremetal.plugins.module_utils.rail_probe import (
    VERDICTS,
    Pair,
    Probe,
    Rail,
    Surroundings,
    Unprobed,
    judge,
    pair_up,
    read_rail,
    source_problem,
    summarize,
)
from ansible_collections.infera.baremetal.plugins.module_utils.routes import Route

OWN = Rail(1, "ionic_1", "rail1", "fd00:a:1:1::2", 64, 9000)
OTHER = Rail(1, "ionic_1", "rail1", "fd00:a:1:2::2", 64, 9000)
GATEWAY = "fd00:a:1:1::1"
ROUTE = Route("unicast", "rail1", OWN.address, GATEWAY)
ANSWERED = Echo(3, 3, [0.1, 0.2, 0.6])


def given(index: int, **values: Any) -> dict[str, Any]:
    """One rail as rail_info returns it, as far as it is used."""
    return {
        "index": index,
        "rdma_device": f"ionic_{index}",
        "netdev": f"rail{index}",
        "address": f"fd00:a:{index}:1::2",
        "prefix": 64,
        "mtu": 9000,
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        **values,
    }


# --- rails and pairs -------------------------------------------------------------------------------------------------


def test_a_rail_is_read() -> None:
    assert read_rail(given(1), 0) == OWN
    assert str(OWN.prefix) == "fd00:a:1:1::/64"


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"state": "DOWN"}, "ionic_1 is down (state DOWN): ip link set rail1 up, then look at cable and switch"),
        ({"phys_state": "Disabled"}, "ionic_1 is down (phys_state Disabled): ip link set rail1 up"),
        ({"netdev": None}, "ionic_1 has no network device"),
        ({"address": None}, "ionic_1 has no routable address: ip address show dev rail1"),
        ({"address": "fe80::1"}, "ionic_1 has only a link-local address (fe80::1), which no router forwards"),
        ({"address": "rail1"}, "ionic_1: 'rail1' does not appear to be an IPv4 or IPv6 address"),
        ({"prefix": "wide"}, "ionic_1: 'wide' is not a prefix of fd00:a:1:1::2"),
        ({"prefix": 129}, "ionic_1: 129 is not a prefix of fd00:a:1:1::2"),
    ],
)
def test_a_rail_that_cannot_send_says_why(values: dict[str, Any], missing: str) -> None:
    assert read_rail(given(1, **values), 0).missing.startswith(missing)


@pytest.mark.parametrize(
    ("values", "network"),
    [
        ({"prefix": "fd00:a:1:1::/56"}, "fd00:a:1::/56"),
        ({"prefix": None}, "fd00:a:1:1::/64"),
        ({"address": "10.1.1.2", "prefix": "24"}, "10.1.1.0/24"),
        ({"address": "10.1.1.2", "prefix": None}, "10.1.1.2/32"),
        ({"address": "::ffff:10.1.1.2", "prefix": 24}, "10.1.1.0/24"),
    ],
)
def test_a_prefix_is_a_length_or_a_network_or_unknown(values: dict[str, Any], network: str) -> None:
    rail = read_rail(given(1, **values), 0)

    assert (str(rail.prefix), rail.missing) == (network, "")


def test_what_is_no_rail_stands_in_its_place() -> None:
    assert read_rail("rail0", 3) == Rail(3, "rail 3", missing="rail 3 is not a dictionary")
    assert read_rail({}, 2).missing == "rail 2 has no network device"


def test_rails_of_the_same_index_ask_each_other() -> None:
    pairs, unprobed = pair_up(
        [given(0), given(1)], [{"host": "gpu2", "rails": [given(1), given(0)]}], "same_index", "gpu1"
    )

    assert [(pair.rail.index, pair.peer, pair.peer_rail.index) for pair in pairs] == [(0, "gpu2", 0), (1, "gpu2", 1)]
    assert unprobed == []


def test_all_rails_ask_all_rails() -> None:
    pairs, _unprobed = pair_up([given(0), given(1)], [{"host": "gpu2", "rails": [given(0), given(1)]}], "all", "")

    assert [(pair.rail.index, pair.peer_rail.index) for pair in pairs] == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_host_does_not_ask_itself() -> None:
    assert pair_up([given(0)], [{"host": "gpu1", "rails": [given(0)]}], "all", "gpu1") == ([], [])


@pytest.mark.parametrize(
    ("peer", "unprobed"),
    [
        ({"host": "gpu2", "rails": []}, Unprobed("gpu2", None, "gpu2 has no rails")),
        ({"host": "gpu2"}, Unprobed("gpu2", None, "gpu2 has no rails")),
        ({"host": "gpu2", "rails": "none"}, Unprobed("gpu2", None, "gpu2 has no rails")),
        ({"rails": [given(0)]}, Unprobed("peer 0", None, "it has no host name")),
        ("gpu2", Unprobed("peer 0", None, "it has no host name")),
        ({"host": "gpu2", "rails": [given(1)]}, Unprobed("gpu2", 0, "gpu2 has no rail 0")),
        (
            {"host": "gpu2", "rails": [given(0, address="")]},
            Unprobed("gpu2", 0, "gpu2: ionic_0 has no routable address: ip address show dev rail0"),
        ),
        (
            {"host": "gpu2", "rails": [given(0, address="10.0.2.2", prefix=24)]},
            Unprobed("gpu2", 0, "gpu2: ionic_0 has 10.0.2.2, which is not of the family of fd00:a:0:1::2"),
        ),
    ],
)
def test_a_peer_that_cannot_be_asked_is_listed(peer: Any, unprobed: Unprobed) -> None:
    assert pair_up([given(0)], [peer], "same_index", "gpu1") == ([], [unprobed])


def test_a_peers_rail_that_is_down_is_asked_all_the_same() -> None:
    ((pair,), _unprobed) = pair_up([given(0)], [{"host": "gpu2", "rails": [given(0, state="DOWN")]}], "all", "")

    assert pair.peer_rail.missing.startswith("ionic_0 is down (state DOWN)")


def test_a_device_that_cannot_be_bound_to_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(_device: str, _source: str) -> None:
        raise OSError(errno.ENODEV, "No such device")

    monkeypatch.setattr(echo, "open_source", absent)

    assert source_problem(OWN) == "fd00:a:1:1::2 on rail1 cannot be used: No such device"


# --- verdicts --------------------------------------------------------------------------------------------------------


def around(state: str = "REACHABLE") -> Surroundings:
    """Neighbours as given, and no rule or table at all."""
    known = Surroundings()
    known.neighbours = {("rail1", GATEWAY): state, ("rail1", OTHER.address): state}
    known._policies = {4: Policy(), 6: Policy()}
    return known


def seen(**values: Any) -> Probe:
    """A pair in order, but for what is given."""
    return replace(Probe(Pair(OWN, "gpu2", OTHER), ROUTE, echo=ANSWERED), **values)


SILENCE = Echo(sent=3)
SMALL = Rail(1, "ionic_1", "rail1", OTHER.address, 64, 1500)
DOWN = replace(OTHER, missing="ionic_1 is down (state DOWN)")

JUDGED = [
    ("in order", seen(), "REACHABLE", "routable", ""),
    ("one lost", seen(echo=Echo(3, 2, [1.0, 1.0])), "REACHABLE", "routable", "1 of 3 echoes were lost"),
    ("no source", seen(source_problem="ionic_1 is down"), "REACHABLE", "source_missing", "ionic_1 is down"),
    (
        "two hosts with one address",
        seen(route=Route("local", "lo", OTHER.address)),
        "REACHABLE",
        "wrong_device",
        "fd00:a:1:2::2 of gpu2 is an address of this host too: two hosts share it",
    ),
    (
        "the route leaves by another rail, although the echo is answered",
        seen(route=Route("unicast", "rail0", "fd00:a:0:1::2", "fd00:a:0:1::1")),
        "REACHABLE",
        "wrong_device",
        "packets from fd00:a:1:1::2 to fd00:a:1:2::2 leave by rail0, not by rail1: ip -6 route add default via GATEWAY_OF_rail1 "
        "dev rail1 table 101 && ip -6 rule add from fd00:a:1:1::/64 table 101",
    ),
    (
        "no route",
        seen(route=Route("none", error="Network is unreachable"), echo=None),
        "REACHABLE",
        "no_route",
        "no way from fd00:a:1:1::2 to fd00:a:1:2::2 (Network is unreachable): ip -6 route add default via",
    ),
    (
        "a blackhole",
        seen(route=Route("blackhole", error="Invalid argument"), echo=None),
        "REACHABLE",
        "no_route",
        "no way from fd00:a:1:1::2 to fd00:a:1:2::2 (blackhole): ",
    ),
    (
        "another source",
        seen(route=Route("unicast", "rail1", "fd00:a:1:1::9", GATEWAY)),
        "REACHABLE",
        "wrong_source",
        "the route to fd00:a:1:2::2 prefers fd00:a:1:1::9, not fd00:a:1:1::2: ip -6 route get fd00:a:1:2::2 from fd00:a:1:1::2",
    ),
    (
        "a gateway without link-layer address",
        seen(echo=SILENCE),
        "FAILED",
        "gateway_unresolved",
        "the gateway fd00:a:1:1::1 does not resolve on rail1 (FAILED): wrong cable, VLAN or gateway address; ip neighbour show dev rail1",
    ),
    (
        "a peer on the same link without one",
        seen(echo=SILENCE, route=Route("unicast", "rail1", OWN.address)),
        "",
        "gateway_unresolved",
        "gpu2, which is on the same link, fd00:a:1:2::2 does not resolve on rail1 (no entry): ",
    ),
    (
        "silence",
        seen(echo=SILENCE),
        "REACHABLE",
        "no_reply",
        "fd00:a:1:2::2 does not answer within 1 s: it is down or filters, a hop has no way back to fd00:a:1:1::/64, or its replies "
        "leave by another rail: on gpu2, ip -6 route get fd00:a:1:1::2 from fd00:a:1:2::2 must answer dev rail1, otherwise ip -6 rule "
        "add from fd00:a:1:2::/64 table TABLE_OF_rail1",
    ),
    (
        "silence of a rail that is down",
        seen(echo=SILENCE, pair=Pair(OWN, "gpu2", DOWN)),
        "REACHABLE",
        "no_reply",
        "fd00:a:1:2::2 does not answer within 1 s: ionic_1 is down (state DOWN); ",
    ),
    (
        "replies by another rail",
        seen(echo=Echo(sent=3, came_in_by="rail0")),
        "REACHABLE",
        "no_reply",
        "replies of fd00:a:1:2::2 come in by rail0, not by rail1: they leave gpu2 by another rail; look at its rule for fd00:a:1:2::/64: ",
    ),
    (
        "what a hop says",
        seen(echo=Echo(sent=3, unreachable="fd00:a:1:1::1 says: no route to the destination")),
        "REACHABLE",
        "no_reply",
        "fd00:a:1:1::1 says: no route to the destination",
    ),
    (
        "what this host's filter says",
        seen(echo=Echo(refusal="Operation not permitted")),
        "FAILED",
        "no_reply",
        "nothing could be sent by rail1: Operation not permitted",
    ),
    (
        "a hop with a smaller MTU",
        seen(jumbo=Echo(3, 0, mtu=1500), jumbo_size=8952),
        "REACHABLE",
        "mtu_too_small",
        "echoes of 8952 bytes do not reach fd00:a:1:2::2: a hop has MTU 1500; set it to that of rail1 or more",
    ),
    (
        "the device itself has a smaller MTU by now",
        seen(jumbo=Echo(mtu=1500, refusal="Message too long"), jumbo_size=8952),
        "REACHABLE",
        "mtu_too_small",
        "rail1 takes packets of 1500 bytes only: ip link set rail1 mtu 9000",
    ),
    (
        "large packets cannot be sent for another reason",
        seen(jumbo=Echo(refusal="Operation not permitted"), jumbo_size=8952),
        "REACHABLE",
        "mtu_too_small",
        "echoes of 8952 bytes could not be sent by rail1: Operation not permitted",
    ),
    (
        "the peer has a smaller MTU",
        seen(jumbo=Echo(3), jumbo_size=8952, pair=Pair(OWN, "gpu2", SMALL)),
        "REACHABLE",
        "mtu_too_small",
        "gpu2 has MTU 1500 on rail1: ip link set rail1 mtu 9000",
    ),
    (
        "large packets vanish",
        seen(jumbo=Echo(3), jumbo_size=8952),
        "REACHABLE",
        "mtu_too_small",
        "echoes of 8952 bytes vanish on the way to fd00:a:1:2::2 while small ones are answered: look for a switch port",
    ),
]


@pytest.mark.parametrize(
    ("entry", "state", "verdict", "reason"), [case[1:] for case in JUDGED], ids=[case[0] for case in JUDGED]
)
def test_the_verdict_names_the_fault(entry: Probe, state: str, verdict: str, reason: str) -> None:
    found, words = judge(entry, around(state), 1.0)

    assert found == verdict
    assert words.startswith(reason) and (reason or not words)
    assert "\n" not in words


def test_every_verdict_has_its_case() -> None:
    assert {case[3] for case in JUDGED} == set(VERDICTS)


# --- what is returned ------------------------------------------------------------------------------------------------


def test_a_pair_is_returned_as_the_contract_says() -> None:
    entry = seen(jumbo=Echo(1, 1, [0.3]), jumbo_size=8952, verdict="routable")

    assert entry.to_dict() == {
        "rail": 1,
        "netdev": "rail1",
        "source": "fd00:a:1:1::2",
        "peer": "gpu2",
        "peer_rail": 1,
        "destination": "fd00:a:1:2::2",
        "route": {"device": "rail1", "prefsrc": "fd00:a:1:1::2", "gateway": GATEWAY, "kind": "unicast"},
        "echo": {"sent": 3, "received": 3, "rtt_ms": {"min": 0.1, "avg": 0.3, "max": 0.6}},
        "jumbo": {"size": 8952, "received": 1},
        "verdict": "routable",
        "reason": "",
    }


def test_a_pair_that_was_not_asked_has_no_times() -> None:
    result = Probe(Pair(Rail(0, "ionic_0"), "gpu2", OTHER)).to_dict()

    assert result["route"]["kind"] == "none"
    assert result["echo"] == {"sent": 0, "received": 0, "rtt_ms": {"min": None, "avg": None, "max": None}}
    assert result["jumbo"] is None


def test_the_summary_counts() -> None:
    entries = [
        seen(verdict="routable", jumbo=Echo(1, 1)),
        seen(verdict="no_reply", echo=SILENCE),
        seen(verdict="no_route", echo=None),
    ]

    result = summarize(entries, [Unprobed("gpu3", None, "gpu3 has no rails")], time.monotonic())

    assert (result["sent"], result["received"]) == (7, 4)
    assert {name: number for name, number in result["verdicts"].items() if number} == {
        "routable": 1,
        "no_reply": 1,
        "no_route": 1,
    }
    assert list(result["verdicts"]) == list(VERDICTS)
    assert result["unprobed"] == [{"peer": "gpu3", "rail": None, "reason": "gpu3 has no rails"}]
    assert 0 <= result["seconds"] < 5


def test_nothing_is_read_of_a_host_whose_pairs_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rail_probe.neighbours, "states", lambda: pytest.fail("not needed"))

    assert Surroundings([seen()]).neighbours == {}
