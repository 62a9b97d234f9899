# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a kernel, a provider library and the libibverbs that loads it meet.

libibverbs says C(Driver ionic does not support the kernel ABI of K (supports MIN to MAX)): K is the kernel's number, MIN to MAX the
library's (rdma-core, libibverbs/init.c). Numbers are compared as each side reports them, never inferred from a version's text.
"""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import Any, Iterable, Iterator, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.elf import (
    ANY_ABI,
    Libibverbs,
    LibraryError,
    Provider,
    read_libibverbs,
    read_provider,
)

_INSTALL = {
    "ionic": "AMD's libionic1 from the AINIC bundle that the kernel's driver came with, or ibverbs-providers of rdma-core 65 or newer for the in-tree driver",
}


def read(
    library: Mapping[str, Any] | None, driver: str = ""
) -> tuple[dict[str, Any] | None, Provider | Libibverbs | None, str]:
    """What is returned of a library that a host sent, what it is, and why it is nothing."""
    if library is None:
        return None, None, ""
    shown = {key: value for key, value in library.items() if key not in ("content", "error")}
    if library.get("error"):
        return shown, None, str(library["error"])
    data = base64.b64decode(library["content"])
    try:
        read_file = read_provider(data, driver) if driver else read_libibverbs(data)
    except LibraryError as error:
        return shown, None, str(error)
    return {**shown, **asdict(read_file)}, read_file, ""


def report(told: Mapping[str, Any], driver: str) -> dict[str, Any]:
    """The result of verbs_abi_info, from what the host told (see module_utils/verbs_abi.py)."""
    provider, its_range, problem = read(told["provider"], driver)
    libibverbs, loader, loader_problem = read(told["libibverbs"])
    findings = list(_kernel(told["kernel"], driver))
    devices = bool(told["kernel"]["devices"])
    if devices:
        findings += _missing(provider, libibverbs, told, driver)
    if problem:
        findings.append(_unreadable(provider, problem, driver))
    if loader_problem:
        findings.append(_unreadable(libibverbs, loader_problem, driver))
    compatible = None
    if isinstance(its_range, Provider) and devices:
        mismatches = list(_ranges(told["kernel"], its_range, provider or {}))
        compatible = not mismatches
        findings += mismatches
        if isinstance(loader, Libibverbs):
            findings += loading(its_range, loader, provider or {}, libibverbs or {}, told["suffixes"])
    return {
        "kernel": told["kernel"],
        "provider": provider,
        "libibverbs": libibverbs,
        "driver_files": told["driver_files"],
        "compatible": compatible,
        "findings": [finding.to_dict() for finding in findings],
    }


def speaks(provider: Provider, abi: int) -> bool:
    """Whether the library supports a kernel of that ABI."""
    return provider.min_abi <= abi <= provider.max_abi


def span(provider: Provider) -> str:
    """The library's range, for people."""
    highest = "any" if provider.max_abi == ANY_ABI else str(provider.max_abi)
    return f"{provider.min_abi} to {highest}"


def _kernel(kernel: Mapping[str, Any], driver: str) -> Iterator[Finding]:
    if not kernel["devices"]:
        yield Finding(
            "verbs_no_devices",
            "info",
            f"the kernel has no {driver} RDMA device, so nothing has to match",
            "none; without RDMA, only aggregated serving works",
        )
        return
    unknown = [device["name"] for device in kernel["devices"] if device["abi"] is None]
    abis = {device["abi"] for device in kernel["devices"]} - {None}
    if unknown:
        yield Finding(
            "verbs_abi_unreadable", "warning", f"the ABI of {', '.join(unknown)} cannot be read", "read as root"
        )
    if len(abis) > 1:
        told = ", ".join(f"{device['name']} {device['abi']}" for device in kernel["devices"])
        yield Finding(
            "verbs_abi_mixed",
            "error",
            f"the kernel's devices speak different ABIs: {told}",
            f"load one {driver} driver: reboot after an upgrade of its packages",
        )


def _missing(
    provider: Mapping[str, Any] | None, libibverbs: Mapping[str, Any] | None, told: Mapping[str, Any], driver: str
) -> Iterator[Finding]:
    if provider is None:
        yield Finding(
            "verbs_provider_missing",
            "warning",
            f"the kernel has {driver} devices, and the host has no provider library for them",
            f"install {_INSTALL.get(driver, f'the provider of {driver}')}; a container can bring its own",
        )
    elif not told["driver_files"]:
        yield Finding(
            "verbs_driver_file_missing",
            "warning",
            f"no file tells libibverbs to load {provider['path']}",
            f"echo 'driver {driver}' > /etc/libibverbs.d/{driver}.driver",
        )
    if provider is not None and libibverbs is None:
        yield Finding(
            "verbs_libibverbs_missing", "info", "the host has no libibverbs", "none; tools such as ibv_devices need it"
        )


def _unreadable(library: Mapping[str, Any] | None, problem: str, driver: str) -> Finding:
    path = (library or {}).get("path", "")
    return Finding(
        "verbs_library_unreadable",
        "error",
        f"{problem}",
        f"reinstall its package; it is loaded for every {driver} device",
        path,
    )


def _ranges(kernel: Mapping[str, Any], provider: Provider, shown: Mapping[str, Any]) -> Iterator[Finding]:
    for abi in sorted({device["abi"] for device in kernel["devices"]} - {None}):
        if not speaks(provider, abi):
            newer = "the kernel's driver is the newer one" if abi > provider.max_abi else "the library is the newer one"
            names = [device["name"] for device in kernel["devices"] if device["abi"] == abi]
            yield Finding(
                "verbs_abi_mismatch",
                "error",
                f"the kernel's {provider.driver_name} driver speaks ABI {abi}, the library {shown.get('path', '')} speaks {span(provider)}",
                f"install {_INSTALL.get(provider.driver_name, 'the library that belongs to the kernel driver')}",
                why=f"by number {newer}; libibverbs would find none of {', '.join(names)}, and the engine say 'No RDMA devices found'",
            )


def loading(
    provider: Provider,
    loader: Libibverbs,
    provider_shown: Mapping[str, Any],
    loader_shown: Mapping[str, Any],
    suffixes: Iterable[str] | None,
) -> Iterator[Finding]:
    """Whether that libibverbs can load that provider. C(suffixes): the numbers of its C(-rdmavNN.so) links; None where it is put in place."""
    library, own = provider_shown.get("path", "the provider"), loader_shown.get("path", "libibverbs")
    fix = "install both from one release of rdma-core, or from one AINIC bundle"
    if provider.machine != loader.machine:
        yield Finding(
            "verbs_architecture", "error", f"{library} is for {provider.machine}, {own} for {loader.machine}", fix
        )
    if provider.private_abi and provider.private_abi not in loader.private_abis:
        has = ", ".join(loader.private_abis)
        yield Finding(
            "verbs_private_abi",
            "error",
            f"{library} needs {provider.private_abi}, {own} has {has}",
            fix,
            why="libibverbs would say: couldn't load driver",
        )
    if suffixes is not None and loader.suffix and loader.suffix not in set(suffixes):
        there = ", ".join(f"-rdmav{number}" for number in suffixes) or "none"
        yield Finding(
            "verbs_suffix",
            "error",
            f"{own} looks for lib{provider.driver_name}-rdmav{loader.suffix}.so, and there is {there}",
            fix,
        )
