# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

"""Messages by hand after linux/rtnetlink.h, and real lookups in namespaces of the test's own."""

from __future__ import annotations

import errno
import struct

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import netlink, routes
from ansible_collections.infera.baremetal.plugins.module_utils.routes import Query, Route, answered, lookup, request
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.routed_namespaces import RoutedNamespaces

DST, SRC, OIF, GATEWAY, PREFSRC, VIA = 1, 2, 4, 5, 7, 18
HOP = bytes.fromhex("fd00000a000100010000000000000001")
SELF = bytes.fromhex("fd00000a000100010000000000000002")


def answer(sequence: int, kind: int, *attributes: bytes) -> bytes:
    """RTM_NEWROUTE with a struct rtmsg of that route type."""
    body = struct.pack("=BBBBBBBBI", 10, 128, 0, 0, 254, 0, 0, kind, 0) + b"".join(attributes)
    return struct.pack("=IHHII", 16 + len(body), 24, 0, sequence, 0) + body


def test_a_question_names_both_addresses_with_their_full_length() -> None:
    sent = request(3, Query("10.1.2.2", "10.1.1.2"))

    assert sent == struct.pack("=IHHII", 44, 26, 1, 3, 0) + struct.pack("=BBBBBBBBI", 2, 32, 32, 0, 0, 0, 0, 0, 0) + (
        struct.pack("=HH", 8, DST) + bytes([10, 1, 2, 2]) + struct.pack("=HH", 8, SRC) + bytes([10, 1, 1, 2])
    )


def test_a_question_without_a_source_leaves_it_to_the_kernel() -> None:
    assert request(1, Query("fd00::1"))[16:28] == struct.pack("=BBBBBBBBI", 10, 128, 0, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("query", "message"),
    [(Query("gpu2"), "'gpu2'"), (Query("fd00::1", "10.1.1.2"), "10.1.1.2 and fd00::1 are of different families")],
)
def test_what_cannot_be_asked_is_said(query: Query, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        request(1, query)


def test_an_answer_has_device_preferred_source_and_gateway() -> None:
    oif = netlink.pack(OIF, struct.pack("=I", 7))
    data = answer(5, 1, oif, netlink.pack(GATEWAY, HOP), netlink.pack(PREFSRC, SELF))

    assert list(answered(data, {7: "rail1"}.__getitem__)) == [
        (5, Route("unicast", "rail1", "fd00:a:1:1::2", "fd00:a:1:1::1"))
    ]


def test_for_ipv4_the_source_that_was_asked_for_stands_in() -> None:
    ((_sequence, route),) = answered(answer(1, 1, netlink.pack(SRC, bytes([10, 1, 1, 2]))))

    assert route == Route("unicast", prefsrc="10.1.1.2")


def test_a_gateway_of_the_other_family_follows_its_family_number() -> None:
    ((_sequence, route),) = answered(answer(1, 1, netlink.pack(VIA, struct.pack("=H", 10) + HOP)))

    assert route.gateway == "fd00:a:1:1::1"


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.EINVAL, "blackhole"),
        (errno.EHOSTUNREACH, "unreachable"),
        (errno.EACCES, "prohibit"),
        (errno.ENETUNREACH, "none"),
    ],
)
def test_an_error_says_which_kind_of_route_it_was(number: int, kind: str) -> None:
    body = struct.pack("=i", -number)
    ((sequence, route),) = answered(struct.pack("=IHHII", 20, 2, 0, 9, 0) + body)

    assert (sequence, route.kind, route.usable) == (9, kind, False)


def test_other_messages_are_passed_over_and_an_unknown_kind_is_none() -> None:
    other = struct.pack("=IHHII", 20, 16, 0, 1, 0) + bytes(4)

    assert list(answered(other + answer(2, 42))) == [(2, Route("none"))]


class SilentChannel:
    def send(self, _data: bytes) -> None:
        pass

    def recv(self, _size: int) -> bytes:
        raise TimeoutError

    def __enter__(self) -> SilentChannel:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass


def test_a_kernel_that_does_not_answer_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes.netlink, "channel", SilentChannel)

    assert lookup([Query("fd00::1")]) == [Route("none", error="no answer")]


# --- in namespaces ---------------------------------------------------------------------------------------------------


def test_the_source_decides_the_rail_in_both_families(fabric: RoutedNamespaces) -> None:
    queries = [
        Query("fd00:a:1:2::2", "fd00:a:0:1::2"),
        Query("fd00:a:1:2::2", "fd00:a:1:1::2"),
        Query("10.1.2.2", "10.1.1.2"),
        Query("fd00:a:1:1::1"),
        Query("10.0.1.2"),
    ]

    assert fabric.call(1, lambda: lookup(queries)) == [
        Route("unicast", "rail0", "fd00:a:0:1::2", "fd00:a:0:1::1"),
        Route("unicast", "rail1", "fd00:a:1:1::2", "fd00:a:1:1::1"),
        Route("unicast", "rail1", "10.1.1.2", "10.1.1.1"),
        Route("unicast", "rail1", "fd00:a:1:1::2", ""),
        Route("local", "lo", "10.0.1.2", ""),
    ]


@pytest.mark.parametrize("kind", ["blackhole", "unreachable", "prohibit"])
def test_routes_that_reject_are_told_apart(fabric: RoutedNamespaces, kind: str) -> None:
    fabric.run(1, f"-6 route add {kind} fd00:a:1:2::/64 table 101")

    (route,) = fabric.call(1, lambda: lookup([Query("fd00:a:1:2::2", "fd00:a:1:1::2")]))

    assert (route.kind, route.usable) == (kind, False)


def test_an_error_belongs_to_its_own_question_among_many(fabric: RoutedNamespaces) -> None:
    queries = [Query("fd00:a:1:2::2", "fd00:a:1:1::2") for _number in range(200)]
    queries[70] = Query("nobody")
    queries[150] = Query("2001:db8::1")

    found = fabric.call(1, lambda: lookup(queries))

    assert [number for number, route in enumerate(found) if not route.usable] == [70, 150]
    assert "nobody" in found[70].error
    assert found[150] == Route("none", error="Network is unreachable")
