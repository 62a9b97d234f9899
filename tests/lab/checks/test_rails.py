# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One fault of the fabric at a time, on one rail of one node: named by the stage, with its end and its remedy, beside whole rails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from lab_places import ARTIFACTS
from lab_site import Site

NODE, RAIL = "lab2", 3
# fault -> what its message has to say
FAULTS = {
    "rail-down": ("lab2", "rail3", "is DOWN", "ip link set rail3 up"),
    "route-missing": ("lab2", "rail3", "ip -6 route replace default via", "table 103"),
    "rule-missing": ("lab2", "rail3", "leave by rail4", "ip -6 rule add from fd00:77:3:2::/64 table 103"),
    "hop-mtu": ("lab2", "rail3", "MTU 1500"),
    "gid-link-local": ("lab2", "rail3", "link-local", "ip -6 address add"),
    "gid-ipv4-mapped": ("lab2", "rail3", "10.78.3.2"),
}


@contextmanager
def switched_on(site: Site, fault: str) -> Iterator[None]:
    site.cli("fault", fault, "on", "--node", NODE, "--rail", str(RAIL))
    try:
        yield
    finally:
        site.cli("fault", fault, "off", "--node", NODE, "--rail", str(RAIL))


def pair() -> dict[str, Any]:
    """The pair of the two nodes, as the record has it."""
    (found,) = json.loads((ARTIFACTS / "record.json").read_text())["rails"]["fabric"]["pairs"]
    return found


def whole(found: dict[str, Any]) -> set[tuple[int, int]]:
    """The rails that have a partner, as (rail of lab1, rail of lab2)."""
    assert (found["a"], found["b"]) == ("lab1", "lab2")
    return {(rail["a_rail"], rail["b_rail"]) for rail in found["rails"] if rail["ok"]}


def test_a_whole_fabric_is_full_and_a_second_run_changes_nothing(site: Site) -> None:
    site.play("rails.yml").unchanged()

    assert (pair()["verdict"], pair()["fit"]) == ("full", True)
    assert whole(pair()) == {(index, index) for index in range(8)}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_the_other_rails_are_still_proven(site: Site, fault: str) -> None:
    with switched_on(site, fault):
        message = site.play("rails.yml").refused()

    assert [word for word in FAULTS[fault] if word not in message] == [], message
    assert whole(pair()) == {(index, index) for index in range(8) if index != RAIL}
    assert (pair()["verdict"], pair()["fit"]) != ("full", True)


def test_exchanged_cables_are_told_as_such_and_every_rail_finds_its_partner(site: Site) -> None:
    with switched_on(site, "rails-swapped"):
        run = site.play("rails.yml")

    assert "rails_cabling" in run.output, run.output[-3000:]
    crossed = {(3, 4), (4, 3)}
    assert whole(pair()) == {(index, index) for index in range(8) if index not in (3, 4)} | crossed


def test_a_host_with_seven_rails_keeps_the_seven_that_it_has(site: Site) -> None:
    with switched_on(site, "rail-absent"):
        message = site.play("rails.yml", variables={"rails_expected": "8"}).refused()

    assert "7 rails, 8 expected" in message
    # The indexes count the devices that are there: lab2's rail 3 is ionic_4.
    assert whole(pair()) == {(index, index) for index in range(3)} | {(index + 1, index) for index in range(3, 7)}


def test_fewer_rails_can_be_enough(site: Site) -> None:
    with switched_on(site, "route-missing"):
        site.play("rails.yml", variables={"rails_min": "7"}).succeeded()

    assert (pair()["verdict"], pair()["fit"]) == ("partial", True)


def test_without_rdma_tools_the_exchange_says_how_to_get_them_and_stops_nobody(site: Site) -> None:
    run = site.play("rails.yml", variables={"rails_rdma_test": "true"}).unchanged()

    assert "rdma_tools_missing" in run.output and "perftest" in run.output, run.output[-3000:]
