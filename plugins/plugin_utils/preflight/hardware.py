# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""GPUs, RDMA drivers and what lies around them, over all hosts that carry a worker. What is absent is to know, not an error."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.hardware import peer_memory
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import (
    WORKER_GROUPS,
    Facts,
    Settings,
    some,
)

IONIC = "0x1dd8"


def _workers(hosts: Mapping[str, Facts], settings: Settings) -> dict[str, Any]:
    """Host -> its hardware, for the hosts that carry a worker."""
    members = {host for group in WORKER_GROUPS for host in settings.members(group)}
    return {host: facts["hardware"] for host, facts in hosts.items() if host in members}


def _gpus(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    workers = _workers(hosts, settings)
    for host, hardware in workers.items():
        if not hardware["gpus"]:
            yield Finding(
                "gpus_none",
                "info",
                "the amdgpu driver shows no GPU"
                if hardware["gpus"] is not None
                else "there is no KFD: the amdgpu driver is not loaded",
                "`modprobe amdgpu` and `dmesg | grep amdgpu`, if this host has GPUs.",
                host,
            )
    kinds = {host: _kinds(hardware["gpus"]) for host, hardware in workers.items() if hardware["gpus"]}
    yield from _differing(
        "gpus_differ",
        kinds,
        "GPUs are not the same on all workers",
        "Workers of one deployment need like GPUs; look at the driver where some are missing (rocm-smi).",
    )


def _kinds(gpus: list[Mapping[str, Any]]) -> str:
    names = [gpu["gfx"] or "unknown" for gpu in gpus]
    return ", ".join(f"{names.count(name)} x {name}" for name in sorted(set(names)))


def _versions(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    workers = _workers(hosts, settings)
    for module in ("amdgpu", "ionic", "ionic_rdma"):
        loaded = {host: each["modules"][module] for host, each in workers.items() if each["modules"][module]}
        yield from _differing(
            "driver_differs",
            loaded,
            f"the driver {module} is not of one version",
            "Install one release of it on all workers.",
        )
    firmware = {host: ", ".join(each["firmware"]) for host, each in workers.items() if each["firmware"]}
    yield from _differing(
        "firmware_differs",
        firmware,
        "the RDMA NICs' firmware is not of one version",
        "Bring all NICs to one release (nicctl).",
    )


def _fabric_settings(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    workers = _workers(hosts, settings)
    rdma = {host: each for host, each in workers.items() if IONIC in each["vendors"]}
    without = [host for host, each in rdma.items() if not any(each["nicctl"].values())]
    if without:
        yield Finding(
            "nicctl_missing",
            "info",
            "PFC, DCQCN and traffic classes were not compared: nicctl is not there, or does not answer",
            "It comes with the AINIC bundle; compare the NICs' settings with the switches' by hand otherwise.",
            ", ".join(without),
        )
    yield from _differing(
        "qos_differs",
        _numbered(rdma, "qos"),
        "PFC and traffic classes are not the same on all workers",
        "`nicctl show qos` on both; they have to match the switches', too.",
    )
    yield from _differing(
        "dcqcn_differs",
        _numbered(rdma, "dcqcn"),
        "DCQCN is not the same on all workers",
        "`nicctl show dcqcn` on both; it has to match the switches', too.",
    )


def _numbered(hosts: Mapping[str, Any], name: str) -> dict[str, str]:
    """Host -> which of the different listings it has; the listings themselves are too long for a line."""
    shown = {host: each["nicctl"][name] for host, each in hosts.items() if each["nicctl"].get(name)}
    order = sorted(set(shown.values()))
    return {host: f"settings {order.index(text) + 1}" for host, text in shown.items()}


def _differing(code: str, values: Mapping[str, str], message: str, fix: str) -> Iterator[Finding]:
    """A warning where hosts have different values, with who has which."""
    if len(set(values.values())) > 1:
        told = [
            f"{value} on {some([host for host in values if values[host] == value])}"
            for value in sorted(set(values.values()))
        ]
        yield Finding(code, "warning", f"{message}: {'; '.join(told)}", fix, ", ".join(values))


def _driver_file(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for host, hardware in _workers(hosts, settings).items():
        files = hardware["driver_files"]
        if len(files) > 1:
            yield Finding(
                "ionic_driver_files",
                "warning",
                f"{len(files)} files tell libibverbs to load libionic: {', '.join(files)}",
                "Remove those that no package owns (`dpkg -S`, `rpm -qf`).",
                host,
                why="two copies of a provider can come from two releases",
            )


def _memory(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for host, hardware in _workers(hosts, settings).items():
        if not (hardware["gpus"] and hardware["rdma_devices"]):
            continue
        peer = peer_memory(hardware)
        if peer is False:
            yield Finding(
                "peer_memory_missing",
                "warning",
                "NICs cannot reach GPU memory: ib_peer_mem is not loaded, and the kernel lacks CONFIG_PCI_P2PDMA or CONFIG_DMABUF_MOVE_NOTIFY",
                "`modprobe ib_peer_mem`, or boot a kernel with both.",
                host,
                why="the engine would say: Failed to register memory, errno 14",
            )
        elif peer is None:
            yield Finding(
                "peer_memory_unknown",
                "info",
                "whether NICs can reach GPU memory cannot be told: the kernel's configuration is not readable",
                "`modprobe ib_peer_mem`, where the driver's package has it.",
                host,
            )
        yield from _iommu(host, hardware["iommu"])
        limit = hardware["memlock"]
        if _has_k3s(hosts[host]) and limit not in (None, "infinity", str(2**64 - 1)):
            yield Finding(
                "memlock_limited",
                "warning",
                f"containers of k3s may lock {limit} bytes of memory",
                "Run the k3s stage, whose unit has LimitMEMLOCK=infinity.",
                host,
                why="registering memory for RDMA locks it",
            )


def _has_k3s(facts: Facts) -> bool:
    """Whether k3s is installed, so that its unit's limit is what counts; the default is not what a new one will have."""
    return bool(facts["k3s"]["unit"])


def _iommu(host: str, iommu: Mapping[str, Any]) -> Iterator[Finding]:
    passing = "iommu=pt" in iommu["cmdline"] or set(iommu["types"]) == {"identity"}
    if iommu["groups"] and not passing:
        yield Finding(
            "iommu_not_passthrough",
            "warning",
            f"the IOMMU translates for devices (domains: {', '.join(iommu['types']) or 'unknown'})",
            "Add iommu=pt to the kernel's command line and reboot.",
            host,
            why="between NIC and GPU it costs bandwidth, and peer access can fail",
        )


HARDWARE_CHECKS: tuple[Callable[[Mapping[str, Facts], Settings], Iterator[Finding]], ...] = (
    _gpus,
    _versions,
    _fabric_settings,
    _driver_file,
    _memory,
)
