# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the collection says of real RDMA devices, GIDs and routed RoCE v2 traffic. The guest plays its scenes once, in guest.py."""

from __future__ import annotations

import os
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.fabric import merge
from ansible_collections.infera.baremetal.tests.lab.infera_lab.build import ensure
from ansible_collections.infera.baremetal.tests.lab.infera_lab.shell import LabError
from ansible_collections.infera.baremetal.tests.softroce import machine

Scenes = dict[str, Any]
# Neighbour discovery may add a few packets on any rail; a ping-pong of 100 times 4 KiB is hundreds.
FEW, MANY = 20, 200


@pytest.fixture(name="scenes", scope="module")
def fixture_scenes(tmp_path_factory: pytest.TempPathFactory) -> Scenes:
    reason = machine.missing()
    if not reason:
        try:
            ensure([machine.parts()], print)
        except LabError as error:
            reason = str(error)
    if reason:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(f"Soft-RoCE: {reason}")
    return machine.run(tmp_path_factory.mktemp("softroce"))


def verdicts(scene: Scenes, host: str) -> dict[int, str]:
    return {probe["rail"]: probe["verdict"] for probe in scene["hosts"][host]["probes"]}


def reason(scene: Scenes, host: str, rail: int) -> str:
    return next(probe["reason"] for probe in scene["hosts"][host]["probes"] if probe["rail"] == rail)


def rails_of_the_pair(scene: Scenes) -> tuple[str, bool, dict[int, bool]]:
    """What fabric makes of both ends: the pair's verdict, whether it is fit, and which rails are good."""
    (pair,) = merge(scene["hosts"], pairs_needed=[("h1", "h2")])["pairs"]
    return pair["verdict"], pair["fit"], {link["a_rail"]: link["ok"] for link in pair["rails"]}


def codes(rail: Scenes) -> list[str]:
    return [finding["code"] for finding in rail["findings"]]


def carried(exchange: Scenes) -> dict[str, bool]:
    """Link of the router -> whether the exchange's packets came in by it."""
    assert all(packets < FEW or packets >= MANY for packets in exchange["router"].values()), exchange
    return {link: packets >= MANY for link, packets in exchange["router"].items()}


def test_rails_are_read_from_a_real_rdma_sysfs(scenes: Scenes) -> None:
    host = scenes["healthy"]["hosts"]["h2"]
    wanted = {
        "index": 1,
        "rdma_device": "h2rxe1",
        "port": 1,
        "netdev": "rail1",
        "pci_address": "",
        "vendor_id": "",
        "numa_node": None,
        "link_layer": "Ethernet",
        "state": "ACTIVE",
        "phys_state": "LinkUp",
        "rate_gbps": 10.0,
        "mtu": 9000,
        "physical": False,
        "abi_version": 2,
        "gid_index": 1,
        "address": "fd00:a:1:2::2",
        "prefix": "fd00:a:1:2::/64",
    }

    assert [rail["rdma_device"] for rail in host["rails"]] == ["h2rxe0", "h2rxe1"]
    rail = host["rails"][1]
    assert {key: rail[key] for key in wanted} == wanted
    assert [(gid["index"], gid["type"], gid["netdev"], gid["scope"]) for gid in rail["gids"]] == [
        (0, "RoCE v2", "rail1", "link-local"),
        (1, "RoCE v2", "rail1", "ula"),
    ]
    assert (codes(rail), host["findings"]) == (["rail_virtual"], [])


def test_what_is_called_routable_carries_rdma_over_its_own_rail(scenes: Scenes) -> None:
    scene = scenes["healthy"]

    assert verdicts(scene, "h1") == verdicts(scene, "h2") == {0: "routable", 1: "routable"}
    assert [probe["jumbo"]["received"] for host in ("h1", "h2") for probe in scene["hosts"][host]["probes"]] == [1] * 4
    assert rails_of_the_pair(scene) == ("full", True, {0: True, 1: True})
    assert [exchange["status"] for exchange in scene["pingpong"]] == [0, 0]
    assert [carried(exchange) for exchange in scene["pingpong"]] == [
        {"h1r0": True, "h2r0": True, "h1r1": False, "h2r1": False},
        {"h1r0": False, "h2r0": False, "h1r1": True, "h2r1": True},
    ]


def test_an_exchange_that_succeeds_over_the_wrong_rail_is_not_called_proven(scenes: Scenes) -> None:
    scene = scenes["wrong_rail"]
    (exchange,) = scene["pingpong"]

    # The trap: RDMA over rail 1 works, while h1's packets leave by rail 0. Only the router's counters show it.
    assert (exchange["rail"], exchange["status"]) == (1, 0)
    assert carried(exchange) == {"h1r0": True, "h1r1": False, "h2r0": False, "h2r1": True}

    assert verdicts(scene, "h1") == {0: "routable", 1: "wrong_device"}
    assert "ip -6 rule add from fd00:a:1:1::/64 table 101" in reason(scene, "h1", 1)
    assert rails_of_the_pair(scene) == ("partial", False, {0: True, 1: False})


def test_a_table_without_its_route_is_named_before_the_queue_pair_fails(scenes: Scenes) -> None:
    scene = scenes["no_route"]
    (exchange,) = scene["pingpong"]

    assert exchange["status"] != 0
    assert "Failed to modify QP to RTR" in exchange["output"]
    assert verdicts(scene, "h1") == {0: "routable", 1: "no_route"}
    assert "table 101" in reason(scene, "h1", 1)
    # From the other end the way holds, and nothing comes back.
    assert verdicts(scene, "h2") == {0: "routable", 1: "no_reply"}


def test_a_hop_of_1500_bytes_is_named(scenes: Scenes) -> None:
    scene = scenes["small_hop"]

    assert verdicts(scene, "h1") == verdicts(scene, "h2") == {0: "routable", 1: "mtu_too_small"}
    assert "a hop has MTU 1500" in reason(scene, "h1", 1)


def test_the_gid_table_keeps_the_order_in_which_addresses_came(scenes: Scenes) -> None:
    rail = scenes["gid_order"]["hosts"]["h1"]["rails"][1]

    assert [(gid["index"], gid["gid"]) for gid in rail["gids"][1:]] == [(1, "::ffff:10.9.1.2"), (2, "fd00:a:1:1::2")]
    assert (rail["gid_index"], rail["address"], rail["prefix"]) == (1, "10.9.1.2", "10.9.1.0/24")
    assert codes(rail) == ["rail_gid_ipv4", "rail_virtual"]


def test_a_link_takes_its_address_along_and_does_not_bring_it_back(scenes: Scenes) -> None:
    down = scenes["link_down"]["hosts"]["h1"]["rails"][1]
    back = scenes["link_up_again"]["hosts"]["h1"]["rails"][1]

    assert (down["state"], down["phys_state"], down["rate_gbps"]) == ("DOWN", "Disabled", 10.0)
    assert codes(down) == ["rail_down", "rail_gid_link_local", "rail_virtual"]
    assert (back["state"], back["gid_index"]) == ("ACTIVE", None)
    assert codes(back) == ["rail_gid_link_local", "rail_virtual"]
    assert "keep_addr_on_down=1" in back["findings"][0]["fix"]
    for name in ("link_down", "link_up_again"):
        assert verdicts(scenes[name], "h1") == {0: "routable", 1: "source_missing"}


def test_a_kept_address_does_not_keep_the_route_of_its_table(scenes: Scenes) -> None:
    scene = scenes["link_up_again_kept"]

    assert scene["hosts"]["h1"]["rails"][1]["address"] == "fd00:a:1:1::2"
    assert verdicts(scene, "h1") == {0: "routable", 1: "no_route"}
