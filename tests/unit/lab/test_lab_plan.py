# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The address plan: every value here was worked out by hand from the lab's description."""

from __future__ import annotations

import itertools
from ipaddress import IPv4Interface, IPv6Address, IPv6Interface, IPv6Network
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.infera_lab.plan import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path, tmp_path / "cache")


def test_second_node_has_the_described_addresses(lab: Lab) -> None:
    node = lab.node("lab2")
    assert node.management == IPv4Interface("10.77.0.12/24")
    assert node.decoy == IPv4Interface("203.0.114.12/24")
    assert node.container == node.namespace == f"{lab.id}-lab2"


def test_rail_of_a_node_has_a_network_of_its_own(lab: Lab) -> None:
    rail = lab.node("lab2").rails[7]
    assert rail.prefix == IPv6Network("fd00:77:7:2::/64")
    assert rail.address == IPv6Interface("fd00:77:7:2::2/64")
    assert rail.gateway == IPv6Interface("fd00:77:7:2::1/64")
    assert rail.table == 107
    assert (rail.netdev, rail.rdma_device, rail.uverbs) == ("rail7", "ionic_7", "uverbs7")


def test_link_local_address_is_the_modified_eui64_of_the_mac(lab: Lab) -> None:
    # RFC 4291, appendix A: the universal/local bit is inverted, ff:fe put in the middle; 02:77:00:03:03:01 is rail3 of lab1.
    rail = lab.node("lab1").rails[3]
    assert rail.nic.mac == "02:77:00:03:03:01"
    assert rail.link_local == IPv6Address("fe80::77:ff:fe03:301")


def test_cards_are_spread_over_two_sockets(lab: Lab) -> None:
    assert [rail.nic.numa_node for rail in lab.node("lab1").rails] == [0, 0, 0, 0, 1, 1, 1, 1]


def test_no_two_interfaces_share_a_mac_or_a_pci_address_or_a_network(lab: Lab) -> None:
    nodes = lab.nodes(5)
    macs = [nic.mac for node in nodes for nic in node.nics] + [rail.fabric_mac for node in nodes for rail in node.rails]
    assert len(macs) == len(set(macs)) == 5 * 10 + 5 * 8
    assert all(len({nic.pci_address for nic in node.nics}) == 10 for node in nodes)
    prefixes = [rail.prefix for node in nodes for rail in node.rails]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(prefixes, 2))


def test_names_fit_into_the_kernels_fifteen_characters(lab: Lab) -> None:
    names = [
        name
        for node in lab.nodes(5)
        for name in (node.management_port, node.decoy_port, *(rail.fabric_port for rail in node.rails))
    ]
    assert max(map(len, names)) <= 15


def test_two_checkouts_have_two_ids_and_a_linked_one_has_the_same(tmp_path: Path) -> None:
    first, second, link = tmp_path / "first", tmp_path / "second", tmp_path / "link"
    first.mkdir()
    second.mkdir()
    link.symlink_to(first)
    ids = [Lab(path, tmp_path).id for path in (first, second, link)]
    assert ids[0] != ids[1]
    assert ids[0] == ids[2]
    assert ids[0].startswith("il-")
    assert len(ids[0]) == len("il-") + 6


def test_machine_ids_differ_between_nodes_and_between_labs(tmp_path: Path) -> None:
    nodes = [node for name in ("first", "second") for node in Lab(tmp_path / name, tmp_path).nodes(5)]
    assert len({node.machine_id for node in nodes}) == 10
    assert all(len(node.machine_id) == 32 for node in nodes)


@pytest.mark.parametrize("count", [0, 6])
def test_a_lab_has_one_to_five_nodes(lab: Lab, count: int) -> None:
    with pytest.raises(ValueError, match="1 to 5"):
        lab.nodes(count)


def test_an_unknown_node_is_refused_by_name(lab: Lab) -> None:
    with pytest.raises(ValueError, match="lab9"):
        lab.node("lab9")
