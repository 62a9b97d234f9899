# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pod CIDRs and the routes between nodes, from Node objects."""

from __future__ import annotations

from ansible_collections.infera.baremetal.tests.lab.k3s.standin import network


def node(name, pod_cidr="", address=""):
    addresses = [{"type": "Hostname", "address": name}]
    if address:
        addresses.append({"type": "InternalIP", "address": address})
    return {
        "metadata": {"name": name},
        "spec": {"podCIDR": pod_cidr} if pod_cidr else {},
        "status": {"addresses": addresses},
    }


def test_new_nodes_get_the_free_subnets_in_order():
    nodes = [node("a", "10.42.0.0/24"), node("b"), node("c", "10.42.2.0/24"), node("d")]

    assert network.missing_pod_cidrs(nodes, "10.42.0.0/16") == {"b": "10.42.1.0/24", "d": "10.42.3.0/24"}


def test_routes_lead_to_the_other_nodes_that_are_complete():
    nodes = [
        node("own", "10.42.0.0/24", "10.77.0.11"),
        node("other", "10.42.1.0/24", "10.77.0.12"),
        node("without-cidr", "", "10.77.0.13"),
        node("without-address", "10.42.3.0/24"),
    ]

    assert network.wanted_routes(nodes, "own") == {"10.42.1.0/24": "10.77.0.12"}


def test_only_what_changed_is_commanded():
    current = {"10.42.1.0/24": "10.77.0.12", "10.42.2.0/24": "10.77.0.13", "10.42.3.0/24": "10.77.0.14"}
    wanted = {"10.42.1.0/24": "10.77.0.12", "10.42.2.0/24": "10.77.0.99"}

    assert network.route_commands(current, wanted, "eth0") == [
        ["ip", "route", "del", "10.42.3.0/24", "proto", "86"],
        ["ip", "route", "replace", "10.42.2.0/24", "via", "10.77.0.99", "dev", "eth0", "proto", "86"],
    ]


def test_the_pod_network_is_on_cni0():
    bridge = network.cni_configuration("10.42.1.0/24")["plugins"][0]

    assert bridge["bridge"] == "cni0"
    assert bridge["ipam"]["ranges"] == [[{"subnet": "10.42.1.0/24"}]]
