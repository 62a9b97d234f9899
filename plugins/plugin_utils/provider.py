# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether a kernel, a provider library and the libibverbs that loads it meet.

libibverbs says C(Driver ionic does not support the kernel ABI of K (supports MIN to MAX)): K is the kernel's number, MIN to MAX the
library's (rdma-core, libibverbs/init.c). Numbers are compared as each side reports them, never inferred from a version's text.
"""

from __future__ import annotations

import base64
from dataclasses import asdict, fields
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


#: Which library a worker uses: its image's own, the host's, which is mounted; empty where there is nothing to decide by.
IMAGE, HOST, NEITHER, UNDECIDED = "image", "host", "neither", ""
#: Where the start-up of a container copies the mounted library to, with links followed.
_INJECTED = "/usr/lib/x86_64-linux-gnu/lib{driver}.so.1"
#: What says that host's own tools find no devices, which is no matter to a container that brings, or gets, what it needs.
_OF_LOADING = {"verbs_private_abi", "verbs_suffix", "verbs_architecture"}
_OF_LIBRARY = _OF_LOADING | {"verbs_abi_mismatch", "verbs_library_unreadable"}


def image_report(told: Mapping[str, Any]) -> dict[str, Any]:
    """The C(image) of image_libraries_info, from what was found (see module_utils/image_libraries.py): the files read, their content dropped."""
    driver = told["driver"]
    return {
        **told,
        "libibverbs": _judged(told["libibverbs"]),
        "providers": [_judged(library, driver) for library in told["providers"]],
    }


def _judged(library: Mapping[str, Any] | None, driver: str = "") -> dict[str, Any] | None:
    shown, _file, problem = read(library, driver)
    return {**(shown or {}), "error": problem} if problem else shown


def verdict(verbs: Mapping[str, Any], looked: Mapping[str, Any]) -> dict[str, Any]:
    """C(image_verdict), by what image_libraries_info returned; empty or skipped where nobody asked. That it failed stops nobody."""
    if looked.get("image") or not verbs["kernel"]["devices"] or not looked or looked.get("skipped"):
        return image_verdict(verbs, looked.get("image"))
    judged = image_verdict(verbs, None)
    problems = [{**finding, "severity": "warning"} for finding in looked.get("findings") or []]
    if not problems:
        problems = [_unknown_image(str(looked.get("msg") or "containerd does not hold it")).to_dict()]
    return {**judged, "findings": [*judged["findings"], *problems]}


def image_verdict(verbs: Mapping[str, Any], image: Mapping[str, Any] | None) -> dict[str, Any]:
    """Which provider a worker of that image uses on that host: C(use), and C(findings) in place of the host's.

    C(verbs) is what C(report) gives, C(image) what C(image_report) gives; None where the image could not be looked at.
    """
    kernel, findings = verbs["kernel"], list(verbs["findings"])
    if image is None or not kernel["devices"]:
        return {"use": HOST if verbs["compatible"] else UNDECIDED, "findings": findings}
    if image["libibverbs"] is None:
        findings.append(_no_libibverbs(image).to_dict())
        return {"use": HOST if verbs["compatible"] else UNDECIDED, "findings": findings}
    own, host = list(_why_not_own(kernel, image)), list(_why_not_host(verbs, image))
    if not own:
        return {"use": IMAGE, "findings": [_lesser(finding, _OF_LIBRARY) for finding in findings]}
    if not host:
        return {"use": HOST, "findings": [_lesser(finding, _OF_LOADING) for finding in findings]}
    return {"use": NEITHER, "findings": [*findings, _neither(image, own, host).to_dict()]}


def _why_not_own(kernel: Mapping[str, Any], image: Mapping[str, Any]) -> Iterator[str]:
    """What keeps the image's libibverbs from its own provider, or that from the kernel."""
    loader, driver = image["libibverbs"], image["driver"]
    if "error" in loader:
        yield f"{loader['path']} {loader['error']}"
        return
    library = _looked_for(image)
    if library is None:
        yield f"its libibverbs looks for {_name(image)}, which it does not have"
    elif "error" in library:
        yield f"{library['path']} {library['error']}"
    else:
        provider = _known(Provider, library)
        yield from _strange(kernel, provider, library["path"])
        yield from (finding.message for finding in loading(provider, _known(Libibverbs, loader), library, loader, None))
    if not image["driver_files"]:
        yield f"no file in /etc/libibverbs.d has a line 'driver {driver}'"


def _why_not_host(verbs: Mapping[str, Any], image: Mapping[str, Any]) -> Iterator[str]:
    """What keeps the image's libibverbs from the host's provider, put over its own, or that from the kernel."""
    loader, driver, library = image["libibverbs"], image["driver"], verbs["provider"]
    if library is None or "min_abi" not in library:
        yield "there is none that can be read"
        return
    provider = _known(Provider, library)
    yield from _strange(verbs["kernel"], provider, library["path"])
    if "error" in loader:
        yield f"the image's {loader['path']} {loader['error']}"
        return
    yield from (finding.message for finding in loading(provider, _known(Libibverbs, loader), library, loader, None))
    if image["glibc"] and _version(provider.glibc_required) > _version(image["glibc"]):
        yield f"{library['path']} needs glibc {provider.glibc_required}, the image has {image['glibc']}"
    place = _INJECTED.format(driver=driver)
    target = next((each for each in image["providers"] if each["path"] == place), None)
    link = _looked_for(image)
    if target is None:
        yield f"the image has no {place}, over which its start-up copies the mounted library"
    elif link is None or link["real_path"] != target["real_path"]:
        yield f"the image's libibverbs loads {_name(image)}, which is not a link to the {place} that is replaced"
    if not image["driver_files"]:
        yield f"no file in the image's /etc/libibverbs.d has a line 'driver {driver}'"


def _strange(kernel: Mapping[str, Any], provider: Provider, path: str) -> Iterator[str]:
    for abi in sorted({device["abi"] for device in kernel["devices"]} - {None}):
        if not speaks(provider, abi):
            yield f"the kernel's {provider.driver_name} driver speaks ABI {abi}, {path} speaks {span(provider)}"


def _name(image: Mapping[str, Any]) -> str:
    suffix = image["libibverbs"].get("suffix") or "NN"
    return f"lib{image['driver']}-rdmav{suffix}.so"


def _looked_for(image: Mapping[str, Any]) -> dict[str, Any] | None:
    """The provider that the image's libibverbs loads; any of its names where libibverbs does not tell the one it looks for."""
    name = _name(image) if image["libibverbs"].get("suffix") else ""
    return next((library for library in image["providers"] if f"/libibverbs/{name}" in library["path"]), None)


def _known(kind: type, library: Mapping[str, Any]) -> Any:
    values = {field.name: library[field.name] for field in fields(kind)}
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _lesser(finding: Mapping[str, Any], codes: Iterable[str]) -> dict[str, Any]:
    """An error that only the host's own tools meet is a warning."""
    if finding["severity"] != "error" or finding["code"] not in set(codes):
        return dict(finding)
    return {**finding, "severity": "warning", "message": f"on the host itself, not in a worker: {finding['message']}"}


def _unknown_image(reason: str) -> Finding:
    return Finding(
        "image_libraries_unknown",
        "info",
        f"it is not known which RDMA libraries the engine's image has: {reason}",
        "run playbooks/images.yml first, or name the image's archive in images_list",
    )


def _no_libibverbs(image: Mapping[str, Any]) -> Finding:
    return Finding(
        "image_libibverbs_missing",
        "warning",
        "the engine's image has no libibverbs where Debian, EL and SUSE have it, so what fits it cannot be told",
        "use an image with libibverbs (Debian: libibverbs1, ibverbs-providers) if KV cache is to move over RDMA",
        image["digest"],
    )


def _neither(image: Mapping[str, Any], own: Iterable[str], host: Iterable[str]) -> Finding:
    loader, driver = image["libibverbs"], image["driver"]
    needs = ", ".join([*loader.get("private_abis", [])[-1:], *([f"glibc {image['glibc']}"] if image["glibc"] else [])])
    built = f", built for the image's libibverbs ({needs})" if needs else ""
    return Finding(
        "image_provider_unfit",
        "error",
        f"no {driver} library serves the engine's image here. Its own: {'; '.join(own)}. The host's: {'; '.join(host)}",
        f"on the host, install {_INSTALL.get(driver, f'the provider of {driver}')}{built}; or take an image whose own library fits the kernel",
        image["digest"],
        why="the engine would say 'No RDMA devices found'",
    )
