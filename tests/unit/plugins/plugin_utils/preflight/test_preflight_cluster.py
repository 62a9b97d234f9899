# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.judge import judge
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.preflight.fit import (
    GIB,
    GROUPS,
    fit_host,
    fit_settings,
    said,
)

ALONE = {"k3s_cluster": ["gpu1"], "k3s_server": ["gpu1"], "k3s_agent": [], "aggregated": ["gpu1"], "router": ["gpu1"]}


def two(first: dict[str, Any] | None = None, second: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"gpu1": fit_host("gpu1", **(first or {})), "gpu2": fit_host("gpu2", **(second or {}))}


@pytest.mark.parametrize(
    ("change", "code", "severity"),
    [
        ({"declared__node_name": "same"}, "duplicate_node_name", "error"),
        ({"hostname": "localhost"}, "duplicate_hostname", "error"),
        ({"machine_id": "aa"}, "duplicate_machine_id", "error"),
        ({"product_uuid": "uu"}, "duplicate_product_uuid", "info"),
    ],
)
def test_what_must_differ_between_hosts(change: dict[str, Any], code: str, severity: str) -> None:
    assert said(judge(two(change, change), fit_settings())) == [(code, severity, "gpu1, gpu2")]


def test_names_are_compared_without_case() -> None:
    assert said(judge(two({"hostname": "Node"}, {"hostname": "node"}), fit_settings())) == [
        ("duplicate_hostname", "error", "gpu1, gpu2")
    ]


def test_one_address_on_two_hosts() -> None:
    second = {"declared__address": "10.1.0.1", "interfaces__eno1__addresses": ["10.1.0.1"]}

    assert said(judge(two(None, second), fit_settings())) == [("duplicate_cluster_address", "error", "gpu1, gpu2")]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ({"k3s_server": []}, [("no_server", "inventory"), ("host_without_role", "gpu1")]),
        ({"k3s_server": ["gpu1", "gpu2"]}, [("several_servers", "inventory")]),
        ({"k3s_agent": []}, [("host_without_role", "gpu2")]),
        ({"decode": ["gpu1"]}, [("worker_roles_overlap", "gpu1")]),
        ({"aggregated": ["gpu2"]}, [("worker_roles_overlap", "gpu2")]),
        ({"router": ["web1"]}, [("host_outside_cluster", "web1")]),
        ({"prefil": ["gpu1"], "prefill": []}, [("group_misspelt", "inventory")]),
        ({"prefills": ["gpu1"]}, []),
        ({"ungrouped": [], "all": ["gpu1", "gpu2"], "rack1": ["gpu1"]}, []),
    ],
)
def test_group_rules(groups: dict[str, list[str]], expected: list[tuple[str, str]]) -> None:
    findings = judge(two(), fit_settings(groups={**GROUPS, **groups}))

    assert [(finding.code, finding.where) for finding in findings] == expected


def test_a_server_alone_is_a_cluster() -> None:
    assert judge({"gpu1": fit_host()}, fit_settings(groups=ALONE, hosts=["gpu1"])) == []


def test_a_limit_names_who_is_left_out() -> None:
    (finding,) = judge({"gpu2": fit_host("gpu2")}, fit_settings(hosts=["gpu2"]))

    assert (finding.code, finding.severity) == ("hosts_left_out", "info")
    assert finding.message == "gpu1 not examined: the run is limited to gpu2"


def test_a_host_that_could_not_be_read_is_named_with_the_reason() -> None:
    (finding,) = judge({"gpu1": fit_host()}, fit_settings(unread={"gpu2": "Connection timed out"}))

    assert (finding.code, finding.where) == ("host_unreachable", "gpu2")
    assert "Connection timed out" in finding.message


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        # within bounds nothing is certain
        ([(-0.5, 0.5), (5.0, 6.0)], []),
        # the least difference is 30 - 0.5
        ([(-0.5, 0.5), (30.0, 31.0)], [("gpu2", "29.5 s ahead of that of gpu1")]),
        # two of three agree: the third is off
        ([(40.0, 41.0), (0.0, 0.4), (0.1, 0.5)], [("gpu1", "39.5 s ahead of that of gpu3")]),
        ([(-40.0, -39.0), (0.0, 0.4), (0.1, 0.5)], [("gpu1", "39.0 s behind that of gpu2")]),
        # a slow connection widens the bounds and gives no finding
        ([(-60.0, 60.0), (0.0, 1.0)], []),
        # one host alone is compared with the controller
        ([(90.0, 91.0)], [("gpu1", "90.0 s ahead of that of the controller")]),
    ],
)
def test_clocks_differ_only_by_what_their_bounds_make_certain(
    bounds: list[tuple[float, float]], expected: list[tuple[str, str]]
) -> None:
    hosts = {
        f"gpu{number}": fit_host(f"gpu{number}", clock__ahead_min=low, clock__ahead_max=high)
        for number, (low, high) in enumerate(bounds, start=1)
    }
    groups = {
        "k3s_cluster": list(hosts),
        "k3s_server": ["gpu1"],
        "k3s_agent": [host for host in hosts if host != "gpu1"],
    }

    findings = judge(hosts, fit_settings(groups=groups, hosts=list(hosts)))

    assert [finding.code for finding in findings] == ["clock_skew"] * len(expected)
    for finding, (where, message) in zip(findings, expected):
        assert finding.where == where
        assert message in finding.message


def test_a_waived_code_that_does_not_exist_is_named_with_the_nearest() -> None:
    (finding,) = judge(two(), fit_settings(waive="swap_on, os_unsuported, serving_not_validated"))

    assert (finding.code, finding.severity, finding.where) == ("waive_unknown", "warning", "preflight_waive")
    assert "os_unsupported" in finding.message


def image(name: str, size: int | None, digest: str = "sha256:aa", hosts: Any = ()) -> dict[str, Any]:
    return {"name": name, "digest": digest, "archive": f"{name}.tar", "size": size, "hosts": list(hosts)}


def test_what_will_be_stored_is_base_plus_archives_unpacked() -> None:
    # 5 GiB + 3.5 x (30 + 2) GiB = 117 GiB
    images = [image("engine", 30 * GIB), image("overlay", 2 * GIB, "sha256:bb")]

    (finding,) = judge(two({"data_dir__free_bytes": 116 * GIB}), fit_settings(images=images))

    assert finding.code == "data_dir_too_small"
    assert "117.0 GiB will be stored" in finding.message
    assert "116.0 GiB are free on /data" in finding.message


def test_images_that_are_stored_already_need_no_space() -> None:
    images = [image("engine", 300 * GIB)]
    stored = {"stored_digests": ["sha256:aa"], "joined": True, "data_dir__free_bytes": 20 * GIB}

    assert judge({"gpu1": fit_host(**stored)}, fit_settings(images=images, hosts=["gpu1"], groups=ALONE)) == []


def test_an_image_for_some_hosts_counts_there() -> None:
    images = [image("engine", 300 * GIB, hosts=["decode"])]

    findings = judge(two(None, {"data_dir__free_bytes": 100 * GIB}), fit_settings(images=images))

    assert [(finding.code, finding.where) for finding in findings][-1] == ("data_dir_too_small", "gpu2:/data/k3s")


def test_the_operators_own_figure_replaces_the_estimate() -> None:
    (finding,) = judge(two({"data_dir__free_bytes": 50 * GIB}), fit_settings(required_bytes=str(200 * GIB)))

    assert "200.0 GiB will be stored (preflight_required_bytes)" in finding.message


def test_an_archive_that_is_missing_matters_only_where_the_image_is() -> None:
    images = [image("engine", None)]
    has_it = {"stored_digests": ["sha256:aa"]}

    (finding,) = judge(two(has_it), fit_settings(images=images))

    assert (finding.code, finding.where) == ("image_archive_missing", "images_list")
    assert "gpu2 do not have the image" in finding.message
    assert judge(two(has_it, has_it), fit_settings(images=images)) == []
