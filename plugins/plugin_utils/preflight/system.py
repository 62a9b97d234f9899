# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's system: its names, operating system, cgroups, kernel, swap, SELinux and clock."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Check, Facts, Settings, gib

# The systems this collection is made for, os-release ID -> versions; for the RHEL family the major version counts.
SUPPORTED_SYSTEMS: dict[str, tuple[str, ...]] = {
    "ubuntu": ("22.04", "24.04"),
    "debian": ("12",),
    "rhel": ("9",),
    "rocky": ("9",),
    "almalinux": ("9",),
    "centos": ("9",),
    "ol": ("9",),
}
RHEL_FAMILY = ("rhel", "rocky", "almalinux", "centos", "ol")
ARCHITECTURES = ("x86_64", "aarch64", "arm64")
MIN_PYTHON = (3, 9)
# What the kubelet and runc use; k3s's own check-config asks for the first three.
CGROUP_CONTROLLERS = ("cpu", "cpuset", "memory", "pids")
# Kubernetes 1.35 refuses cgroup v1 (facts of the release notes); from 1.31 on it is in maintenance only.
CGROUP_V1_REFUSED, CGROUP_V1_OLD = (1, 35), (1, 31)


def _names(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    name = str(facts["declared"].get("node_name") or "")
    label = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
    if not re.fullmatch(rf"{label}(\.{label})*", name) or len(name) > 253:
        yield Finding(
            "node_name_invalid",
            "error",
            f"the node name {name!r} is no DNS-1123 name (lower-case letters, digits, '-' and '.', at most 253)",
            "Set k3s_node_name for this host.",
            host,
        )
    if not facts["machine_id"]:
        yield Finding(
            "machine_id_missing",
            "warning",
            "/etc/machine-id is missing or empty",
            "`systemd-machine-id-setup` on the host.",
            f"{host}:/etc/machine-id",
        )


def _system(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    system = facts["os"]
    if not _supported(system):
        name = (
            system["name"]
            or " ".join(filter(None, (system["id"], system["version"])))
            or "unknown (no /etc/os-release)"
        )
        yield Finding(
            "os_unsupported",
            "error",
            f"its operating system is {name}; supported are Ubuntu 22.04 and 24.04, Debian 12 and the RHEL 9 family",
            "Install one of these, or waive this code at your own risk.",
            host,
        )
    if tuple(int(part) for part in re.findall(r"\d+", facts["python"])[:2]) < MIN_PYTHON:
        yield Finding(
            "python_too_old",
            "error",
            f"Python {facts['python']} is older than 3.9",
            "Install a newer one and set ansible_python_interpreter to it.",
            host,
        )
    if not facts["root"]:
        yield Finding(
            "not_root",
            "error",
            "was read without root's rights, so holders of ports and firewall rules are not known",
            "Set ansible_become=true, or connect as root.",
            host,
        )
    if facts["init"] != "systemd":
        yield Finding(
            "init_not_systemd",
            "error",
            f"process 1 is {facts['init'] or 'not readable'}, not systemd",
            "k3s is installed as a systemd unit; use a host that boots with systemd.",
            host,
        )
    if facts["architecture"] not in ARCHITECTURES:
        yield Finding(
            "architecture_unsupported",
            "error",
            f"its architecture is {facts['architecture']}; k3s is installed on x86_64 and arm64",
            "Take the host out of k3s_cluster.",
            host,
        )
    for problem in facts["problems"]:
        yield Finding(
            "unreadable",
            "warning",
            f"could not be read: {problem['error']}",
            "What depends on it was not checked; look at it on the host.",
            f"{host}:{problem['what']}",
        )


def _supported(system: Mapping[str, Any]) -> bool:
    version = str(system["version"])
    if system["id"] in RHEL_FAMILY:
        version = version.split(".", 1)[0]
    return version in SUPPORTED_SYSTEMS.get(system["id"], ())


def _cgroups(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    cgroup = facts["cgroup"]
    if cgroup["version"] is None:
        yield Finding(
            "cgroup_missing", "error", "no cgroup file system is mounted", "Boot the host with systemd.", host
        )
        return
    if cgroup["version"] == 1:
        version = kubernetes_minor(settings.kubernetes_version)
        severity = (
            "error"
            if version is None or version >= CGROUP_V1_REFUSED
            else "warning"
            if version >= CGROUP_V1_OLD
            else "info"
        )
        yield Finding(
            "cgroup_v1",
            severity,
            f"uses cgroup v1 ({cgroup['mode']}); Kubernetes 1.35 and later refuse it, k3s_version is {settings.kubernetes_version or 'not set'}",
            "Boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line.",
            host,
        )
    missing = [name for name in CGROUP_CONTROLLERS if name not in cgroup["controllers"]]
    if missing:
        yield Finding(
            "cgroup_controllers_missing",
            "error",
            f"cgroup controllers are not enabled: {', '.join(missing)}",
            "Enable them on the kernel's command line (cgroup_enable=memory and the like), and reboot.",
            host,
        )


def kubernetes_minor(version: str) -> tuple[int, int] | None:
    """C(v1.36.2+k3s1) -> (1, 36); None where it has another form."""
    match = re.match(r"v?(\d+)\.(\d+)", version)
    return (int(match.group(1)), int(match.group(2))) if match else None


def _kernel(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    family = facts["os"]["id"]
    package = {"ubuntu": "linux-modules-extra", "debian": "linux-image"}.get(family, "kernel-modules")
    for name, state in facts["modules"].items():
        if state in ("missing", "disabled"):
            why = (
                "is not there for kernel " + facts["kernel"]
                if state == "missing"
                else "is disabled by a file in modprobe.d"
            )
            fix = (
                f"Install {package} for the running kernel."
                if state == "missing"
                else f"Remove the line 'install {name} ...' there."
            )
            yield Finding("kernel_module_missing", "error", f"the kernel module {name} {why}", fix, host)
        elif state == "unknown":
            yield Finding(
                "kernel_module_unknown",
                "info",
                f"whether the kernel has {name} is not known: /lib/modules/{facts['kernel']} is missing",
                f"`modprobe {name}` on the host tells.",
                host,
            )
    limits = facts["inotify"]
    wanted = {"max_user_watches": settings.min_inotify_watches, "max_user_instances": settings.min_inotify_instances}
    low = {name: least for name, least in wanted.items() if limits.get(name) is not None and limits[name] < least}
    if low:
        found = ", ".join(f"fs.inotify.{name} = {limits[name]}" for name in low)
        lines = " and ".join(f"fs.inotify.{name}={least}" for name, least in low.items())
        yield Finding(
            "inotify_low",
            "warning",
            f"{found}: pods can fail with 'too many open files'",
            f"Put {lines} into a file of /etc/sysctl.d and run `sysctl --system`.",
            host,
        )
    if facts["swap"]:
        devices = ", ".join(f"{entry['device']} ({gib(entry['bytes'])})" for entry in facts["swap"])
        yield Finding(
            "swap_on",
            "warning",
            f"swap is active: {devices}",
            "`swapoff -a`, and take it out of /etc/fstab.",
            host,
            why="a worker that swaps misses its deadlines before it is killed",
        )
    if facts["selinux"]["mode"] == "enforcing" and not facts["selinux"]["k3s_policy"]:
        yield Finding(
            "selinux_policy_missing",
            "error",
            "SELinux is enforcing and the package k3s-selinux is not installed",
            "Install container-selinux and k3s-selinux (rpm.rancher.io), or set SELinux to permissive.",
            host,
        )
    if facts["clock"]["synchronized"] is False:
        service = facts["clock"]["service"]
        yield Finding(
            "clock_not_synchronized",
            "warning",
            "the kernel's clock is not synchronised"
            + (f", although {service} runs" if service else ", and no time service runs"),
            f"See why {service} has no source." if service else "Install and start chrony.",
            host,
        )


SYSTEM_CHECKS: tuple[Check, ...] = (_names, _system, _cgroups, _kernel)
