# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Both ends of each range, as the RFCs that the module names give them."""

from __future__ import annotations

import ipaddress

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.addresses import networks, parse, scope


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9.255.255.255", "global"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("11.0.0.0", "global"),
        ("172.15.255.255", "global"),
        ("172.16.0.0", "private"),
        ("172.17.0.1", "private"),
        ("172.31.255.255", "private"),
        ("172.32.0.0", "global"),
        ("192.167.255.255", "global"),
        ("192.168.0.0", "private"),
        ("192.168.255.255", "private"),
        ("192.169.0.0", "global"),
        ("100.63.255.255", "global"),
        ("100.64.0.0", "cgnat"),
        ("100.127.255.255", "cgnat"),
        ("100.128.0.0", "global"),
        ("169.253.255.255", "global"),
        ("169.254.0.0", "link-local"),
        ("169.254.255.255", "link-local"),
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("224.0.0.1", "multicast"),
        ("239.255.255.255", "multicast"),
        # Documentation and benchmark ranges are nobody's private ones: who uses them says so with allow_public.
        ("198.51.100.7", "global"),
        ("198.18.0.1", "global"),
        ("::", "unspecified"),
        ("::1", "loopback"),
        ("fe80::1", "link-local"),
        ("febf:ffff::1", "link-local"),
        ("fec0::1", "global"),
        ("fbff::1", "global"),
        ("fc00::1", "ula"),
        ("fdff:ffff::1", "ula"),
        ("2001:db8::1", "global"),
        ("ff02::1", "multicast"),
        ("::ffff:10.1.0.1", "ipv4-mapped"),
        ("::ffff:127.0.0.1", "ipv4-mapped"),
    ],
)
def test_every_address_is_of_one_kind(text: str, expected: str) -> None:
    assert scope(ipaddress.ip_address(text)) == expected


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.1.0.1", "10.1.0.1"),
        (" 10.1.0.1 ", "10.1.0.1"),
        ("FD00:0:0:0::1", "fd00::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("fe80::1%a/b%c", "fe80::1"),
    ],
)
def test_addresses_are_read_without_a_zone(text: str, address: str) -> None:
    assert str(parse(text)) == address


@pytest.mark.parametrize("text", ["", "gpu2", "10.1.0.1/24", "10.1.0", "010.1.0.1", "%eth0", "None", "fd00:::1"])
def test_what_is_no_address_is_an_error(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_networks_may_have_host_bits_and_blanks() -> None:
    assert [str(network) for network in networks([" 10.42.7.1/16", "", " ", "fd42::1/56", "10.1.0.1"])] == [
        "10.42.0.0/16",
        "fd42::/56",
        "10.1.0.1/32",
    ]


def test_a_wrong_network_is_named() -> None:
    with pytest.raises(ValueError, match="10.42.0.0/33"):
        networks(["10.43.0.0/16", "10.42.0.0/33"])
