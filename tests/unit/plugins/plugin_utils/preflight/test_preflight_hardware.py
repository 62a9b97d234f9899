# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the workers' hardware is judged by: one change to one of two fit hosts, and the one finding it must give."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.judge import judge
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.preflight.fit import (
    GROUPS,
    fit_host,
    fit_settings,
    said,
)

SEVEN = [{"node": number, "gfx": "gfx950"} for number in range(7)]


def of_second(**changes: Any) -> Any:
    hosts = {
        "gpu1": fit_host("gpu1"),
        "gpu2": fit_host("gpu2", **{f"hardware__{key}": value for key, value in changes.items()}),
    }
    return judge(hosts, fit_settings())


@pytest.mark.parametrize(
    ("change", "code", "severity", "where", "words"),
    [
        ({"gpus": None}, "gpus_none", "info", "gpu2", "amdgpu driver is not loaded"),
        ({"gpus": []}, "gpus_none", "info", "gpu2", "shows no GPU"),
        ({"gpus": SEVEN}, "gpus_differ", "warning", "gpu1, gpu2", "7 x gfx950 on gpu2; 8 x gfx950 on gpu1"),
        (
            {"modules__amdgpu": "6.12"},
            "driver_differs",
            "warning",
            "gpu1, gpu2",
            "the driver amdgpu is not of one version: 6.12 on gpu2",
        ),
        ({"firmware": ["1.1"]}, "firmware_differs", "warning", "gpu1, gpu2", "1.1 on gpu2; 1.117.5-a-77 on gpu1"),
        ({"nicctl": {"qos": None, "dcqcn": None}}, "nicctl_missing", "info", "gpu2", "nicctl is not there"),
        ({"nicctl__qos": "PFC 4"}, "qos_differs", "warning", "gpu1, gpu2", "PFC and traffic classes"),
        ({"nicctl__dcqcn": "off"}, "dcqcn_differs", "warning", "gpu1, gpu2", "DCQCN"),
        ({"driver_files": ["/etc/a.driver", "/usr/etc/b.driver"]}, "ionic_driver_files", "warning", "gpu2", "2 files"),
        (
            {"iommu": {"groups": 9, "types": ["DMA-FQ"], "cmdline": []}},
            "iommu_not_passthrough",
            "warning",
            "gpu2",
            "DMA-FQ",
        ),
    ],
)
def test_one_change_gives_one_finding(change: dict[str, Any], code: str, severity: str, where: str, words: str) -> None:
    (finding,) = of_second(**change)

    assert (finding.code, finding.severity, finding.where) == (code, severity, where)
    assert words in finding.message


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"CONFIG_PCI_P2PDMA": True, "CONFIG_DMABUF_MOVE_NOTIFY": False}, [("peer_memory_missing", "warning", "gpu2")]),
        ({"CONFIG_PCI_P2PDMA": None, "CONFIG_DMABUF_MOVE_NOTIFY": None}, [("peer_memory_unknown", "info", "gpu2")]),
        ({"CONFIG_PCI_P2PDMA": True, "CONFIG_DMABUF_MOVE_NOTIFY": True}, []),
    ],
)
def test_without_ib_peer_mem_the_kernel_itself_has_to_reach_gpu_memory(config: Any, expected: Any) -> None:
    assert said(of_second(modules__ib_peer_mem=None, kernel_config=config)) == expected


def test_no_iommu_group_or_a_passthrough_domain_needs_no_word_on_the_command_line() -> None:
    assert of_second(iommu={"groups": 0, "types": [], "cmdline": []}) == []
    assert of_second(iommu={"groups": 5, "types": ["identity"], "cmdline": []}) == []


def test_what_k3s_may_lock_counts_once_it_is_installed() -> None:
    assert of_second(memlock="8388608") == []
    own = {"unit": "k3s-agent", "installed": True}
    host = fit_host("gpu2", hardware__memlock="8388608")
    host["k3s"].update(own)

    assert ("memlock_limited", "warning", "gpu2") in said(
        judge({"gpu1": fit_host("gpu1"), "gpu2": host}, fit_settings())
    )


def test_a_host_without_a_worker_may_have_what_it_likes() -> None:
    groups = {**GROUPS, "decode": []}
    hosts = {"gpu1": fit_host("gpu1"), "gpu2": fit_host("gpu2", hardware__gpus=None, hardware__firmware=["1"])}

    assert judge(hosts, fit_settings(groups=groups)) == []
