# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

import socket
import struct

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import neighbours, netlink
from ansible_collections.infera.baremetal.plugins.module_utils.neighbours import resolved, states
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.routed_namespaces import RoutedNamespaces


@pytest.mark.parametrize("state", ["REACHABLE", "STALE", "DELAY", "PROBE", "PERMANENT", "NOARP"])
def test_states_with_a_link_layer_address(state: str) -> None:
    assert resolved(state) is True


@pytest.mark.parametrize("state", ["", "NONE", "INCOMPLETE", "FAILED"])
def test_states_without_one(state: str) -> None:
    assert resolved(state) is False


def test_entries_are_read_by_device_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """struct ndmsg: family, padding, device, state (0x20 is NUD_FAILED), flags, type; then NDA_DST."""
    entry = struct.pack("=BBHiHBB", 10, 0, 0, 3, 0x20, 0, 1) + netlink.pack(1, socket.inet_pton(10, "fd00::1"))
    monkeypatch.setattr(netlink, "dump", lambda _kind, body: [entry] if body[0] == socket.AF_INET6 else [])
    monkeypatch.setattr(neighbours.netlink, "device_name", {3: "rail0"}.__getitem__)

    assert states() == {("rail0", "fd00::1"): "FAILED"}


def test_a_permanent_entry_is_seen_in_a_namespace(fabric: RoutedNamespaces) -> None:
    fabric.run(1, "neighbour add fd00:a:0:1::9 lladdr 02:00:00:00:00:09 dev rail0 nud permanent")
    fabric.run(1, "neighbour add 10.1.1.9 lladdr 02:00:00:00:00:09 dev rail1 nud stale")

    found = fabric.call(1, states)

    assert (found["rail0", "fd00:a:0:1::9"], found["rail1", "10.1.1.9"]) == ("PERMANENT", "STALE")
