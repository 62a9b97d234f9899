# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One case a file of layouts/advertise/; here is what cannot be said there."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.advertise import Decision, Wishes, choose
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError, summary
from ansible_collections.infera.baremetal.plugins.module_utils.interfaces import HeldAddress, Interface, read_interfaces
from ansible_collections.infera.baremetal.plugins.module_utils.routes import Query, Route
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils import interface_layouts as layouts


def decide(layout: dict[str, Any], root: Path) -> Decision:
    interfaces = read_interfaces(str(layouts.lay_out(layout, root)), layouts.run(layout))
    wishes = Wishes.parse({**layouts.OPTIONS, **layout["options"]})
    return choose(interfaces, wishes, layouts.routes(layout))


def wishes(**options: Any) -> Wishes:
    return Wishes.parse({**layouts.OPTIONS, **options})


def nic(name: str, *texts: str) -> Interface:
    held = tuple(HeldAddress(ipaddress.ip_address(text), 24) for text in texts)
    return Interface(name, addresses=held, known=True, device=True, bus="pci")


@pytest.mark.parametrize("name", layouts.names())
def test_layout_gives_the_answer_worked_out_by_hand(name: str, tmp_path: Path) -> None:
    layout = layouts.load(name)
    expect = layout["expect"]

    decision = decide(layout, tmp_path / "sys")

    result = decision.to_dict()
    rows = [f"{row['interface']} {row['address']}".strip() + f" {row['reason']}" for row in result["candidates"]]
    assert rows == expect["candidates"]
    assert [finding["code"] for finding in result["findings"]] == expect["findings"]
    if "chosen" in expect:
        assert f"{result['interface']} {result['address']}/{result['prefix_length']}" == expect["chosen"]
        assert result["reason"] == expect["reason"]
    else:
        assert (result["interface"], result["address"], result["prefix_length"]) == ("", "", None)
    text = "\n".join([summary(result["findings"]), *decision.refusals()])
    assert [part for part in expect.get("says", []) if part not in text] == []


@pytest.mark.parametrize("name", layouts.names())
def test_what_is_told_is_one_line_each_and_accepted_is_what_is_fit(name: str, tmp_path: Path) -> None:
    decision = decide(layouts.load(name), tmp_path / "sys")

    result = decision.to_dict()
    assert all("\n" not in text for finding in result["findings"] for text in finding.values())
    assert len(decision.refusals()) == sum(not row["accepted"] for row in result["candidates"])
    assert all(
        row["accepted"] == (row["reason"] in ("chosen", "lower_preference")) == (row["detail"] == "")
        for row in result["candidates"]
    )
    json.dumps(result)


def test_every_layout_says_what_it_stands_for() -> None:
    assert [name for name in layouts.names() if len(layouts.load(name)["about"].splitlines()) != 1] == []


def test_each_wrong_option_is_named() -> None:
    with pytest.raises(FindingError) as caught:
        wishes(
            address="fd00::1", peers=["gpu2", "10.1.0.2"], prefer_cidrs=["10.1/16/24"], exclude_cidrs=["10.42.0.0/33"]
        )

    assert [(finding.code, finding.where) for finding in caught.value.findings] == [
        ("advertise_input", "address"),
        ("advertise_input", "prefer_cidrs"),
        ("advertise_input", "exclude_cidrs"),
        ("advertise_input", "peers"),
    ]
    assert "fd00::1 is not of the family ipv4" in str(caught.value)
    assert "'gpu2'" in str(caught.value)


def test_undefined_options_that_arrive_as_none_are_as_empty() -> None:
    assert wishes(interface=None, address=None, peers=[None, ""]) == Wishes()


def test_a_kernel_that_refuses_netlink_is_an_error_of_its_own() -> None:
    def refused(queries: Sequence[Query]) -> list[Route]:
        raise PermissionError(1, "Operation not permitted")

    with pytest.raises(FindingError, match="routes_unreadable.*Operation not permitted"):
        choose({"ens1": nic("ens1", "10.1.0.1")}, wishes(peers=["10.1.0.2"]), refused)


def test_routes_are_asked_for_once_and_only_for_what_is_fit() -> None:
    asked: list[Query] = []

    def record(queries: Sequence[Query]) -> list[Route]:
        assert not asked
        asked.extend(queries)
        return [Route("unicast", "ens1", query.source) for query in queries]

    interfaces = {"ens1": nic("ens1", "10.1.0.1", "198.51.100.1"), "docker0": Interface("docker0", kind="bridge")}

    choose(interfaces, wishes(peers=["10.1.0.2", "10.1.0.3", "10.1.0.2"]), record)

    assert asked == [Query("10.1.0.2", "10.1.0.1"), Query("10.1.0.3", "10.1.0.1")]


def test_the_reason_and_the_warning_do_not_depend_on_the_order_of_reading() -> None:
    forward = {
        name: nic(name, address) for name, address in (("a1", "10.1.0.1"), ("a9", "10.9.0.1"), ("a10", "10.10.0.1"))
    }
    backward = dict(reversed(forward.items()))

    one, other = choose(forward, wishes()), choose(backward, wishes())

    assert one.findings == other.findings
    assert "as good are: a9 10.9.0.1, a10 10.10.0.1" in one.findings[0].message


def test_a_fixed_address_on_two_interfaces_asks_for_the_interface() -> None:
    interfaces = {name: nic(name, "10.1.0.1") for name in ("ens1", "ens2")}

    decision = choose(interfaces, wishes(address="10.1.0.1"))

    assert [finding.code for finding in decision.findings] == ["advertise_ambiguous"]


def test_kinds_that_are_never_advertised_are_told_by_their_name() -> None:
    decision = choose({"ens1": nic("ens1", "::ffff:10.1.0.1", "ff02::1", "::")}, wishes(family="ipv6"))

    assert [row["reason"] for row in decision.to_dict()["candidates"]] == ["ipv4_mapped", "multicast", "unspecified"]


def test_a_route_that_names_no_source_proves_nothing() -> None:
    decision = choose(
        {"ens1": nic("ens1", "10.1.0.1")}, wishes(peers=["10.1.0.2"]), lambda queries: [Route("unicast", "ens1")]
    )

    assert decision.refusals() == [
        "ens1 10.1.0.1: no_route_to_peer, 1 of 1 peers: 10.1.0.2, would leave with the source unknown"
    ]
