# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.reachability import judge_reachability, peers
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.preflight.fit import fit_host, fit_settings

ANY: dict[str, Any] = {"listening": [], "unavailable": []}


def result(host: str, port: str, state: str, detail: str = "") -> dict[str, Any]:
    return {
        "host": host,
        "address": f"10.1.0.{host[-1]}",
        "port": port,
        "state": state,
        "rtt_ms": None,
        "detail": detail,
    }


def hosts(**second: Any) -> dict[str, Any]:
    return {"gpu1": fit_host("gpu1"), "gpu2": fit_host("gpu2", **second)}


def test_everything_open_is_nothing_to_say() -> None:
    probes = {"gpu1": [result("gpu2", "10250/tcp", "open")], "gpu2": [result("gpu1", "6443/tcp", "open")]}

    assert judge_reachability(probes, {"gpu1": ANY, "gpu2": ANY}, hosts()) == []


@pytest.mark.parametrize(
    ("firewall", "fix"),
    [
        ([], "No firewall was found on gpu2: look at filters on the way, and at `ip route get 10.1.0.2` on gpu1."),
        (
            [{"kind": "firewalld", "detail": ""}],
            "On gpu2: `firewall-cmd --permanent --add-port=8472/udp && firewall-cmd --reload`.",
        ),
        ([{"kind": "ufw", "detail": ""}], "On gpu2: `ufw allow 8472/udp`."),
        (
            [{"kind": "nftables", "detail": "inet filter input: policy drop"}],
            "On gpu2: accept udp dport 8472 from the nodes in inet filter input.",
        ),
    ],
)
def test_the_fix_names_the_firewall_that_was_found(firewall: list[dict[str, str]], fix: str) -> None:
    probes = {"gpu1": [result("gpu2", "8472/udp", "timeout")]}

    (finding,) = judge_reachability(probes, {"gpu2": ANY}, hosts(firewall=firewall))

    assert (finding.code, finding.severity, finding.where, finding.fix) == ("port_unreachable", "error", "gpu2", fix)
    assert finding.message == "10.1.0.2 8472/udp cannot be reached from gpu1: no answer"


def test_a_host_without_its_own_address_says_nothing_of_the_others() -> None:
    probes = {"gpu1": [result("gpu2", "10250/tcp", "no_source", "10.1.0.1: Cannot assign requested address")]}

    assert judge_reachability(probes, {"gpu2": ANY}, hosts()) == []


def test_a_port_that_nobody_reaches_is_one_finding() -> None:
    probes = {f"n{number}": [result("gpu2", "10250/tcp", "timeout")] for number in range(1, 9)}

    (finding,) = judge_reachability(probes, {"gpu2": ANY}, hosts())

    assert "from n1, n2, n3, n4, n5 and 3 more" in finding.message


def test_an_address_that_leads_elsewhere_is_one_finding_for_all_ports() -> None:
    ports = ("10250/tcp", "8472/udp")
    probes = {"gpu1": [result("gpu2", port, "wrong_host", "gpu7") for port in ports]}

    (finding,) = judge_reachability(probes, {"gpu2": ANY}, hosts())

    assert finding.code == "port_wrong_host"
    assert "leads to gpu7 from gpu1" in finding.message


def test_what_could_not_be_listened_on_is_not_called_unreachable() -> None:
    taken = {"listening": [], "unavailable": [{"port": "8472/udp", "reason": "in_use"}]}
    probes = {"gpu1": [result("gpu2", "8472/udp", "timeout"), result("gpu2", "8472/udp", "not_tested")]}

    (finding,) = judge_reachability(probes, {"gpu2": taken}, hosts())

    assert (finding.code, finding.severity) == ("port_not_tested", "info")
    assert finding.message.startswith("8472/udp not tested")


def test_a_server_outside_of_the_run_must_be_reached_all_the_same() -> None:
    probes = {"gpu2": [result("gpu1", "6443/tcp", "refused", "Connection refused")]}

    (finding,) = judge_reachability(probes, {}, {"gpu2": fit_host("gpu2")})

    assert (finding.code, finding.where) == ("port_unreachable", "gpu1")
    assert finding.fix.startswith("Start k3s on gpu1")


def test_whom_a_host_asks() -> None:
    joined = {"gpu1": fit_host("gpu1", joined=True), "gpu2": fit_host("gpu2")}

    assert peers(joined, fit_settings()) == [
        {"host": "gpu1", "address": "10.1.0.1", "ports": ["6443/tcp", "10250/tcp", "8472/udp"], "answers": False},
        {"host": "gpu2", "address": "10.1.0.2", "ports": ["10250/tcp", "8472/udp"], "answers": True},
    ]


def test_a_new_agent_alone_asks_its_server() -> None:
    settings = fit_settings(hosts=["gpu2"], addresses={"gpu1": "10.1.0.1", "gpu2": "10.1.0.2", "gpu3": "10.1.0.3"})

    asked = {peer["host"]: peer["ports"] for peer in peers({"gpu2": fit_host("gpu2")}, settings)}

    assert asked == {"gpu2": ["10250/tcp", "8472/udp"], "gpu1": ["6443/tcp"]}


def test_a_host_without_an_address_is_not_asked() -> None:
    assert peers({"gpu2": fit_host("gpu2", declared__address="")}, fit_settings()) == []
