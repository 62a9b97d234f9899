# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What kind of address an address is. One classifier: the advertised address and the rails' GIDs are both judged by it."""

from __future__ import annotations

import ipaddress
from typing import Iterable, List, Union

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Network = Union[ipaddress.IPv4Network, ipaddress.IPv6Network]

# RFC 1918, RFC 6598 (shared address space of carriers, also used by overlay VPNs), RFC 4193.
_PRIVATE_V4 = tuple(ipaddress.IPv4Network(text) for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"))
_CGNAT = ipaddress.IPv4Network("100.64.0.0/10")
_UNIQUE_LOCAL = ipaddress.IPv6Network("fc00::/7")


def parse(text: str) -> Address:
    """The address; a zone (C(fe80::1%eth0)) is dropped. Raises ValueError."""
    return ipaddress.ip_address(str(text).partition("%")[0].strip())


def networks(texts: Iterable[str]) -> List[Network]:
    """Networks of both families; host bits may be set. Raises ValueError, which names the text."""
    return [ipaddress.ip_network(str(text).strip(), strict=False) for text in texts if str(text).strip()]


def scope(address: Address) -> str:
    """One of unspecified, loopback, multicast, link-local, ipv4-mapped, private (RFC 1918), cgnat (RFC 6598), ula (RFC 4193), global.

    C(global) is what is left, and may be reachable from the internet.
    """
    # First: since Python 3.13 a mapped address answers the questions below as its IPv4 address would.
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return "ipv4-mapped"
    if address.is_unspecified:
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    if address.is_multicast:
        return "multicast"
    if address.is_link_local:
        return "link-local"
    if isinstance(address, ipaddress.IPv6Address):
        return "ula" if address in _UNIQUE_LOCAL else "global"
    if address in _CGNAT:
        return "cgnat"
    return "private" if any(address in network for network in _PRIVATE_V4) else "global"
