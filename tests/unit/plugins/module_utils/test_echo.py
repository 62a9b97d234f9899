# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Messages by hand after RFC 792 and RFC 4443; sockets in namespaces of the test's own."""

from __future__ import annotations

import errno
import ipaddress
import os
import struct
import time

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import echo
from ansible_collections.infera.baremetal.plugins.module_utils.echo import (
    EchoError,
    Message,
    Target,
    describe,
    device_mtu,
    open_source,
    parse,
    payload_of_mtu,
    ping,
    quoted,
    reported_mtu,
    request,
)
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.routed_namespaces import RoutedNamespaces

V4, V6 = echo._V4, echo._V6
PEER = "fd00:a:1:2::2"


def icmp(kind: int, code: int = 0, identifier: int = 0, sequence: int = 0, body: bytes = b"") -> bytes:
    return struct.pack("!BBHHH", kind, code, 0, identifier, sequence) + body


def ipv4(protocol: int, destination: str, content: bytes, options: bytes = b"") -> bytes:
    """A header of RFC 791 with what is read of it."""
    length = 5 + len(options) // 4
    header = bytes([0x40 | length]) + bytes(8) + bytes([protocol]) + bytes(2) + bytes([10, 1, 1, 2])
    return header + ipaddress.ip_address(destination).packed + options + content


def ipv6(next_header: int, destination: str, content: bytes) -> bytes:
    """A header of RFC 8200 with what is read of it."""
    return bytes(6) + bytes([next_header, 64]) + bytes(16) + ipaddress.ip_address(destination).packed + content


# --- messages --------------------------------------------------------------------------------------------------------


def test_a_request_of_icmp_has_its_checksum() -> None:
    # 0800 + 0001 + 0002 + 6162 + 6300 = cc65; its complement is 339a.
    assert request(V4, 1, 2, b"abc") == bytes.fromhex("0800 339a 0001 0002 616263")


def test_carries_are_folded_into_the_checksum() -> None:
    # 0800 + ffff + ffff = 207fe, folded 0800; its complement is f7ff.
    assert request(V4, 0xFFFF, 0xFFFF, b"")[2:4] == bytes.fromhex("f7ff")


def test_the_checksum_of_icmpv6_is_left_to_the_kernel() -> None:
    assert request(V6, 1, 2, b"abc") == bytes.fromhex("8000 0000 0001 0002 616263")


@pytest.mark.parametrize(
    ("address", "mtu", "payload"), [(PEER, 9000, 8952), ("10.1.2.2", 9000, 8972), (PEER, 0, 0), (PEER, 1500, 1452)]
)
def test_the_payload_that_fills_a_packet(address: str, mtu: int, payload: int) -> None:
    assert payload_of_mtu(address, mtu) == payload


def test_replies_are_read_behind_an_ipv4_header_of_any_length_and_without_one_for_ipv6() -> None:
    content = icmp(0, identifier=7, sequence=9, body=b"mark")

    assert parse(V4, ipv4(1, "10.1.1.2", content, options=bytes(8)), "10.1.2.2") == Message(
        "10.1.2.2", 0, 0, 7, 9, b"mark"
    )
    assert parse(V6, icmp(129, identifier=7, sequence=9), "fe80::1%rail1") == Message("fe80::1", 129, 0, 7, 9, b"")


@pytest.mark.parametrize("data", [b"", b"\x45", b"\x4f" + bytes(30)])
def test_what_is_too_short_is_no_message(data: bytes) -> None:
    assert parse(V4, data, "10.1.2.2") is None


@pytest.mark.parametrize(
    ("family", "inner", "quote"),
    [
        (V6, ipv6(58, PEER, icmp(128, identifier=7)), (PEER, 7)),
        (V4, ipv4(1, "10.1.2.2", icmp(8, identifier=7)), ("10.1.2.2", 7)),
        (V4, ipv4(1, "10.1.2.2", icmp(8, identifier=7), options=bytes(4)), ("10.1.2.2", 7)),
        (V6, ipv6(17, PEER, icmp(128)), None),
        (V6, ipv6(58, PEER, icmp(135)), None),
        (V4, ipv4(1, "10.1.2.2", b""), None),
        (V4, b"", None),
    ],
    ids=["IPv6", "IPv4", "IPv4 with options", "UDP", "not an echo", "cut off", "nothing"],
)
def test_an_error_quotes_the_request_that_it_is_about(
    family: echo._Family, inner: bytes, quote: tuple[str, int] | None
) -> None:
    assert quoted(family, Message("hop", 3, 0, 0, 0, inner)) == quote


@pytest.mark.parametrize(
    ("family", "kind", "code", "words", "mtu"),
    [
        (V6, 2, 0, (0, 1500), 1500),
        (V6, 2, 0, (1, 0), 65536),
        (V4, 3, 4, (0, 1500), 1500),
        (V6, 1, 0, (0, 0), None),
        (V4, 3, 1, (0, 1500), None),
    ],
)
def test_the_mtu_that_a_hop_reports(
    family: echo._Family, kind: int, code: int, words: tuple[int, int], mtu: int | None
) -> None:
    assert reported_mtu(family, Message("hop", kind, code, *words, b"")) == mtu


@pytest.mark.parametrize(
    ("family", "kind", "code", "text"),
    [
        (V6, 1, 0, "no route to the destination"),
        (V4, 3, 13, "administratively prohibited"),
        (V6, 3, 0, "the hop limit was exceeded (a routing loop)"),
        (V4, 11, 0, "the hop limit was exceeded (a routing loop)"),
        (V6, 4, 1, "ICMP error type 4 code 1"),
    ],
)
def test_errors_are_described(family: echo._Family, kind: int, code: int, text: str) -> None:
    assert describe(family, Message("hop", kind, code, 0, 0, b"")) == text


# --- sockets that refuse ---------------------------------------------------------------------------------------------


def refuse(*_arguments: object) -> None:
    raise PermissionError(errno.EPERM, "Operation not permitted")


def test_raw_sockets_that_are_refused_are_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(echo.socket, "socket", refuse)

    with pytest.raises(
        EchoError, match=r"^raw sockets are refused; run as root \(become: true\), or grant CAP_NET_RAW$"
    ):
        ping([Target("rail0", "fd00::1", "fd00::2")])


class FullSocket:
    """A send buffer that stays full for a while."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals

    def sendto(self, _packet: bytes, _address: object) -> None:
        self.refusals -= 1
        if self.refusals >= 0:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.mark.parametrize(("refusals", "sent", "refusal"), [(3, 1, ""), (500, 0, "Resource temporarily unavailable")])
def test_a_full_buffer_is_tried_again_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, refusals: int, sent: int, refusal: str
) -> None:
    monkeypatch.setattr(echo, "_PAUSE", 0.0)
    run = echo._Run([Target("rail0", "fd00::1", "fd00::2")], 1, 0.01, 0.01, 10000.0, 8, False)
    source = echo._Source(V6, "rail0", FullSocket(refusals))  # type: ignore[arg-type]
    source.waiting.append((0.0, 0, 0))
    run.sources["rail0", "fd00::1"] = source

    run.finish()
    run.selector.close()

    assert (run.echoes[0].sent, run.echoes[0].received, run.echoes[0].refusal) == (sent, 0, refusal)


def test_nobody_to_ask() -> None:
    assert ping([]) == []


# --- in namespaces ---------------------------------------------------------------------------------------------------


def targets(count: int, rails: int = 2) -> list[Target]:
    """From both rails to that many addresses each, all of which the second host may hold."""
    return [
        Target(f"rail{rail}", f"fd00:a:{rail}:1::2", f"fd00:a:{rail}:2::{number:x}")
        for number in range(2, 2 + count)
        for rail in range(rails)
    ]


def hold(fabric: RoutedNamespaces, count: int) -> None:
    """The second host's further addresses."""
    for target in targets(count)[2:]:
        fabric.run(2, f"-6 addr add {target.destination}/64 dev {target.device} nodad")


def test_each_target_gets_its_count_and_its_times(fabric: RoutedNamespaces) -> None:
    echoes = fabric.call(1, lambda: ping(targets(1), count=3, interval=0.02))

    assert [(found.sent, found.received, len(found.rtts_ms)) for found in echoes] == [(3, 3, 3), (3, 3, 3)]
    assert all(0 < time_ms < 1000 for found in echoes for time_ms in found.rtts_ms)


def test_once_means_until_it_has_answered(fabric: RoutedNamespaces) -> None:
    answering, silent = targets(1)[0], Target("rail0", "fd00:a:0:1::2", "fd00:a:0:2::dead")

    echoes = fabric.call(1, lambda: ping([answering, silent], count=2, interval=0.4, timeout=0.4, once=True))

    assert [(found.sent, found.received) for found in echoes] == [(1, 1), (2, 0)]


def test_packets_are_paced_and_bounded(fabric: RoutedNamespaces) -> None:
    hold(fabric, 20)
    started = time.monotonic()

    echoes = fabric.call(1, lambda: ping(targets(20), count=2, interval=0.01, rate=200.0, concurrency=3))

    # 40 packets a rail at 5 ms; the first one goes out at once, and at most one more for each 5 ms of the slack.
    assert time.monotonic() - started >= 0.18
    assert {(found.sent, found.received) for found in echoes} == {(2, 2)}


def test_silent_targets_end_within_count_and_timeout(fabric: RoutedNamespaces) -> None:
    silent = [Target("rail0", "fd00:a:0:1::2", f"fd00:a:0:2::dead:{number:x}") for number in range(4)]
    started = time.monotonic()

    echoes = fabric.call(1, lambda: ping(silent, count=1, timeout=0.1, concurrency=2))

    # Two at a time: twice the timeout.
    assert 0.19 <= time.monotonic() - started < 1.5
    assert {(found.sent, found.received) for found in echoes} == {(1, 0)}


def test_two_peers_that_claim_one_address_are_both_answered(fabric: RoutedNamespaces) -> None:
    echoes = fabric.call(1, lambda: ping([targets(1)[0]] * 2, count=2, interval=0.02))

    assert [(found.sent, found.received) for found in echoes] == [(2, 2), (2, 2)]


def test_a_reply_by_another_device_does_not_count_and_is_named(fabric: RoutedNamespaces) -> None:
    fabric.run(0, "-6 route del fd00:a:1:1::/64 dev h1r1")
    fabric.run(0, "-6 route add fd00:a:1:1::/64 via fd00:a:0:1::2 dev h1r0")

    first, second = fabric.call(1, lambda: ping(targets(1), count=1, timeout=0.2))

    assert (first.received, first.came_in_by) == (1, "")
    assert (second.sent, second.received, second.came_in_by) == (1, 0, "rail0")


def test_the_same_for_ipv4(fabric: RoutedNamespaces) -> None:
    fabric.run(0, "-4 route del 10.1.1.0/24 dev h1r1")
    fabric.run(0, "-4 route add 10.1.1.0/24 via 10.0.1.2 dev h1r0")

    (found,) = fabric.call(1, lambda: ping([Target("rail1", "10.1.1.2", "10.1.2.2")], count=1, timeout=0.2))

    assert (found.sent, found.received, found.came_in_by) == (1, 0, "rail0")


def test_what_a_hop_says_is_kept(fabric: RoutedNamespaces) -> None:
    fabric.run(0, "-6 route add unreachable fd00:a:1:2::dead/128")

    (found,) = fabric.call(
        1, lambda: ping([Target("rail1", "fd00:a:1:1::2", "fd00:a:1:2::dead")], count=1, timeout=0.2)
    )

    assert found.unreachable == "fd00:a:1:1::1 says: no route to the destination"


def test_a_device_that_is_not_there_fails_by_itself(fabric: RoutedNamespaces) -> None:
    asked = [targets(1)[0], Target("rail9", "fd00:a:0:1::2", PEER), Target("a-name-longer-than-15", "fd00::1", PEER)]

    good, absent, odd = fabric.call(1, lambda: ping(asked, count=1))

    assert (good.received, absent.refusal, odd.refusal) == (1, "No such device", "No such device")


def test_a_device_that_goes_away_meanwhile_ends_in_silence(fabric: RoutedNamespaces) -> None:
    with_fault = targets(1)
    run = fabric.call(1, lambda: echo._Run(with_fault, 3, 0.05, 0.2, 1000.0, 8, False).__enter__())
    fabric.run(1, "link del rail1")

    with run:
        first, second = run.finish()

    assert (first.received, second.received) == (3, 0)
    assert second.refusal != ""


@pytest.mark.parametrize("family", [6, 4])
def test_a_large_packet_is_never_cut_into_pieces(fabric: RoutedNamespaces, family: int) -> None:
    source, destination = ("fd00:a:1:1::2", PEER) if family == 6 else ("10.1.1.2", "10.1.2.2")
    large = Target("rail1", source, destination, payload_of_mtu(destination, 9000))

    def ask() -> echo.Echo:
        return fabric.call(1, lambda: ping([large], count=1, timeout=0.2))[0]

    before = ask()
    fabric.run(0, "link set h2r1 mtu 1500")
    hop = ask()
    # What was learned of the path does not decide the next run.
    fabric.run(0, "link set h2r1 mtu 9000")
    after = ask()
    fabric.run(1, "link set rail1 mtu 4000")
    local = ask()

    assert (before.received, hop.received, hop.mtu, after.received) == (1, 0, 1500, 1)
    assert (local.sent, local.mtu, local.refusal) == (0, 4000, "Message too long")


def test_no_socket_is_left_open(fabric: RoutedNamespaces) -> None:
    before = os.listdir("/proc/self/fd")

    fabric.call(1, lambda: ping(targets(1), count=1))
    with pytest.raises(OSError, match="Cannot assign requested address"):
        fabric.call(1, lambda: open_source("rail0", "fd00:a:0:9::2"))

    assert os.listdir("/proc/self/fd") == before


def test_the_mtu_of_a_device(fabric: RoutedNamespaces) -> None:
    assert fabric.call(1, lambda: (device_mtu("rail0"), device_mtu("rail9"))) == (9000, None)
