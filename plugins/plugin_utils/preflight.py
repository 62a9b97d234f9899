# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Is every host fit? Facts of all hosts (module host_info) and the settings go in, findings come out. Nothing is read here.

A check takes one host or all of them and yields findings; it stands in HOST_CHECKS or CLUSTER_CHECKS. CODES lists every
code, so that a waived code can be compared with what exists.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator, Mapping, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.host import K3S_UNITS, NETWORK_FILESYSTEMS, PROBE_NAME

Facts = Mapping[str, Any]

GIB = 1024**3

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

# File systems on which containerd's overlayfs snapshotter does not work or must not be, with the reason.
UNFIT_FILESYSTEMS: dict[str, str] = {
    "overlay": "overlayfs cannot be the upper layer of another overlayfs",
    "aufs": "overlayfs does not work on it",
    "tmpfs": "images would be kept in memory and be gone after a reboot",
    "ramfs": "images would be kept in memory and be gone after a reboot",
    "squashfs": "it cannot be written to",
    "iso9660": "it cannot be written to",
    "vfat": "it has no links, owners and modes",
    "exfat": "it has no links, owners and modes",
    "ntfs": "overlayfs does not work on it",
    "ntfs3": "overlayfs does not work on it",
    "ecryptfs": "overlayfs does not work on it",
    "virtiofs": "overlayfs does not work on it",
    **dict.fromkeys(NETWORK_FILESYSTEMS, "overlayfs does not work on a network file system"),
}

GROUPS = ("k3s_cluster", "k3s_server", "k3s_agent", "router", "prefill", "decode", "aggregated")
SERVING_GROUPS = ("router", "prefill", "decode", "aggregated")
# A worker takes host ports, so a host can be one of these only.
WORKER_GROUPS = ("prefill", "decode", "aggregated")

# Every code, with what it says in a few words. The README's table is held against this one by a test.
CODES: dict[str, str] = {
    "no_server": "the group k3s_server is empty",
    "several_servers": "the group k3s_server has more than one host",
    "host_without_role": "a host of k3s_cluster is neither server nor agent",
    "host_outside_cluster": "a host of a serving group is not in k3s_cluster",
    "worker_roles_overlap": "a host is in two of prefill, decode, aggregated",
    "group_misspelt": "a group's name is nearly one that the collection knows",
    "hosts_left_out": "the run is limited: other hosts were not examined",
    "host_unreachable": "a host of the run could not be read",
    "node_name_invalid": "the node's name is no DNS-1123 name",
    "duplicate_node_name": "two hosts have one node name",
    "duplicate_hostname": "two hosts have one hostname",
    "duplicate_machine_id": "two hosts have one machine-id",
    "machine_id_missing": "a host has no machine-id",
    "duplicate_product_uuid": "two boards report one UUID",
    "os_unsupported": "the operating system is not one that is supported",
    "python_too_old": "Python on the host is older than 3.9",
    "not_root": "the host was not read as root",
    "init_not_systemd": "process 1 is not systemd",
    "architecture_unsupported": "the machine is neither x86_64 nor arm64",
    "cgroup_v1": "the host uses cgroup v1",
    "cgroup_missing": "no cgroup file system is mounted",
    "cgroup_controllers_missing": "a cgroup controller is not enabled",
    "kernel_module_missing": "a kernel module is missing or disabled",
    "kernel_module_unknown": "a kernel module could not be looked for",
    "inotify_low": "a limit of fs.inotify is low",
    "swap_on": "swap is active",
    "selinux_policy_missing": "SELinux is enforcing and k3s's policy is not installed",
    "clock_skew": "a host's clock differs from the others'",
    "clock_not_synchronized": "nothing keeps a host's clock",
    "unreadable": "something on the host could not be read",
    "data_dir_unset": "no data-dir is named",
    "data_dir_invalid": "the data-dir is no absolute path without white space",
    "data_dir_symlink": "the data-dir is, or goes through, a symlink",
    "data_dir_filesystem": "the data-dir is on a file system that cannot hold images",
    "data_dir_mount_options": "the data-dir's file system is mounted noexec or read-only",
    "data_dir_too_small": "the data-dir's file system has too little free space",
    "data_dir_nearly_full": "the data-dir's file system will be nearly full",
    "data_dir_on_root": "the data-dir is on the root file system",
    "image_archive_missing": "an image's archive is not on the controller",
    "port_in_use": "something else holds a port that is needed",
    "cluster_address_unset": "cluster_address is not set",
    "cluster_address_invalid": "cluster_address is no IPv4 address of a host",
    "cluster_address_not_on_host": "cluster_address is not on the host",
    "cluster_address_wrong_interface": "cluster_address is on another interface than cluster_interface",
    "cluster_address_in_cidr": "cluster_address lies inside the pod or service CIDR",
    "duplicate_cluster_address": "two hosts have one cluster_address",
    "cluster_interface_unset": "cluster_interface is not set",
    "cluster_interface_missing": "cluster_interface does not exist",
    "cluster_interface_down": "cluster_interface is down",
    "interfaces_unreadable": "the interfaces could not be read",
    "firewall_present": "something filters incoming packets",
    "k3s_foreign": "a k3s that this collection did not install",
    "k3s_other_data_dir": "k3s is installed with another data-dir",
    "kubernetes_foreign": "another Kubernetes is installed",
    "kubernetes_leftovers": "an earlier cluster left files",
    "port_unreachable": "a port cannot be reached from another host",
    "port_wrong_host": "an address leads to another host than it should",
    "port_not_tested": "a port could not be tested",
    "waive_unknown": "preflight_waive names a code that does not exist",
}


class PreflightInputError(ValueError):
    """A setting is of the wrong form; the message names the variable."""


@dataclass(frozen=True)
class Image:
    """An image that will be stored, on all hosts or on C(hosts) (names and groups).

    C(size) in bytes, 0 without an archive, None where one is named and not there.
    """

    name: str
    digest: str
    archive: str = ""
    size: int | None = 0
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Settings:
    """What hosts are judged against. Sizes in bytes, skew in seconds; an empty Kubernetes version is taken as the newest."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    hosts: Sequence[str] = ()
    kubernetes_version: str = ""
    pod_cidrs: Sequence[str] = ("10.42.0.0/16",)
    service_cidrs: Sequence[str] = ("10.43.0.0/16",)
    server_ports: Sequence[str] = ("6443/tcp",)
    node_ports: Sequence[str] = ("10250/tcp", "8472/udp")
    worker_ports: Sequence[str] = ("30000/tcp", "8998/tcp")
    images: Sequence[Image] = ()
    required_bytes: int = 0
    base_bytes: int = 5 * GIB
    image_factor: float = 3.5
    max_skew: float = 5.0
    min_inotify_watches: int = 65536
    min_inotify_instances: int = 256
    waive: Sequence[str] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Settings:
        """From the role's variables without their prefix; lists may be strings with commas, numbers may be strings (AWX)."""
        known: dict[str, Any] = {
            name: as_list(given[name])
            for name in ("hosts", "pod_cidrs", "service_cidrs", "server_ports", "node_ports", "worker_ports", "waive")
            if given.get(name) is not None
        }
        known.update({name: given[name] for name in ("groups", "addresses") if given.get(name) is not None})
        known["kubernetes_version"] = str(given.get("kubernetes_version") or "")
        known["images"] = [Image(**{**item, "hosts": tuple(item.get("hosts") or ())}) for item in given.get("images") or []]
        for name in ("required_bytes", "base_bytes", "min_inotify_watches", "min_inotify_instances"):
            if given.get(name) not in (None, ""):
                known[name] = int(_number(name, given[name]))
        for name in ("image_factor", "max_skew"):
            if given.get(name) not in (None, ""):
                known[name] = _number(name, given[name])
        return cls(**known)

    def members(self, group: str) -> Sequence[str]:
        return self.groups.get(group) or ()

    def ports_of(self, host: str) -> list[str]:
        """What must be free on the host, by its groups."""
        ports = list(self.server_ports) if host in self.members("k3s_server") else []
        ports += self.node_ports
        if any(host in self.members(group) for group in WORKER_GROUPS):
            ports += self.worker_ports
        return ports

    def images_of(self, host: str) -> list[Image]:
        """The images that the host is to hold."""
        return [
            image
            for image in self.images
            if not image.hosts or host in image.hosts or any(host in self.members(group) for group in image.hosts)
        ]

    def join_ports_of(self, host: str) -> list[str]:
        """What other nodes must reach on the host for the join."""
        return (list(self.server_ports) if host in self.members("k3s_server") else []) + list(self.node_ports)


def as_list(value: Any) -> list[str]:
    """A list, or a string with commas, as a list of strings without blanks."""
    items = value.split(",") if isinstance(value, str) else (value or [])
    return [str(item).strip() for item in items if str(item).strip()]


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise PreflightInputError(f"preflight_{name} is {value!r}; it must be a number") from error
    if number < 0:
        raise PreflightInputError(f"preflight_{name} is {value!r}; it must not be negative")
    return number


def judge(hosts: Mapping[str, Facts], settings: Settings) -> list[Finding]:
    """All findings of all hosts: those of the cluster as a whole first, then host by host in the inventory's order."""
    findings = [finding for check in CLUSTER_CHECKS for finding in check(hosts, settings)]
    for host, facts in hosts.items():
        findings += [finding for check in HOST_CHECKS for finding in check(host, facts, settings)]
    return findings


# --- the cluster as a whole ------------------------------------------------------------------------------------------


def _groups(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    servers, agents = settings.members("k3s_server"), settings.members("k3s_agent")
    if not servers:
        yield Finding("no_server", "error", "the group k3s_server has no host", "Put one host into k3s_server.", "inventory")
    if len(servers) > 1:
        yield Finding(
            "several_servers",
            "error",
            f"the group k3s_server has {len(servers)} hosts ({', '.join(servers)}); one server is supported",
            "Keep one host in k3s_server and move the others to k3s_agent.",
            "inventory",
        )
    cluster = settings.members("k3s_cluster")
    for host in cluster:
        if host not in servers and host not in agents:
            yield Finding(
                "host_without_role",
                "error",
                "is in k3s_cluster, but neither in k3s_server nor in k3s_agent",
                "Put it into k3s_agent.",
                host,
            )
    for group in SERVING_GROUPS:
        for host in settings.members(group):
            if host not in cluster:
                yield Finding(
                    "host_outside_cluster",
                    "error",
                    f"is in the group {group}, but not in k3s_cluster",
                    f"Put it into k3s_agent, or take it out of {group}.",
                    host,
                )
    for host in dict.fromkeys(host for group in WORKER_GROUPS for host in settings.members(group)):
        roles = [group for group in WORKER_GROUPS if host in settings.members(group)]
        if len(roles) > 1:
            yield Finding(
                "worker_roles_overlap",
                "error",
                f"is in the groups {' and '.join(roles)}; both take the same ports of the host ({', '.join(settings.worker_ports)})",
                "Keep it in one of them.",
                host,
            )


def _misspelt_groups(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for group in settings.groups:
        near = [] if group in GROUPS else difflib.get_close_matches(group, GROUPS, 1, 0.85)
        if near and not settings.members(near[0]):
            yield Finding(
                "group_misspelt",
                "error",
                f"the group {group} is not one that the collection knows, and {near[0]} is empty",
                f"Rename it to {near[0]}, or waive this code if it is a group of your own.",
                "inventory",
            )


def _left_out(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    cluster = settings.members("k3s_cluster")
    absent = [host for host in settings.hosts if host not in hosts]
    for host in absent:
        yield Finding(
            "host_unreachable",
            "error",
            "could not be read: it is unreachable, or an earlier task failed on it",
            f"`ansible -m ping {host}` shows why; or leave it out with --limit.",
            host,
        )
    outside = [host for host in cluster if host not in settings.hosts]
    if outside and settings.hosts:
        yield Finding(
            "hosts_left_out",
            "info",
            f"{_some(outside)} not examined: the run is limited to {_some(list(settings.hosts))}",
            "Run without --limit to compare names, addresses and clocks of all hosts.",
            "inventory",
        )


def _waived_codes(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for code in settings.waive:
        if code not in CODES:
            near = difflib.get_close_matches(code, CODES, 1, 0.6)
            yield Finding(
                "waive_unknown",
                "warning",
                f"{code!r} is no code of the preflight" + (f"; the nearest is {near[0]}" if near else ""),
                "Correct it, or take it out.",
                "preflight_waive",
            )


def _duplicates(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    same = _sharing(hosts, lambda facts: str(facts["declared"].get("node_name") or "").lower())
    for value, names in same.items():
        yield Finding(
            "duplicate_node_name",
            "error",
            f"all of them would be the node {value!r}",
            "Give each host a k3s_node_name of its own.",
            ", ".join(names),
            why="a second node of one name is refused with 'Node password rejected'",
        )
    for value, names in _sharing(hosts, lambda facts: facts["hostname"].lower()).items():
        yield Finding(
            "duplicate_hostname",
            "error",
            f"all of them have the hostname {value!r}",
            "`hostnamectl set-hostname NAME` on each; if they are one machine, keep one of them in the inventory.",
            ", ".join(names),
        )
    for value, names in _sharing(hosts, lambda facts: facts["machine_id"]).items():
        yield Finding(
            "duplicate_machine_id",
            "error",
            f"all of them have the machine-id {value}: one was cloned from another, or they are one machine",
            "On each clone: `rm -f /etc/machine-id && systemd-machine-id-setup`, then reboot.",
            ", ".join(names),
            why="DHCP leases and MAC addresses of virtual interfaces derive from it",
        )
    for value, names in _sharing(hosts, lambda facts: facts["product_uuid"]).items():
        yield Finding(
            "duplicate_product_uuid",
            "info",
            f"their boards report one UUID, {value}",
            "Nothing here depends on it; ask the vendor if your asset management does.",
            ", ".join(names),
        )
    for value, names in _sharing(hosts, lambda facts: str(facts["declared"].get("address") or "")).items():
        yield Finding(
            "duplicate_cluster_address",
            "error",
            f"all of them have cluster_address {value}",
            "Set cluster_address per host to an address of that host.",
            ", ".join(names),
        )


def _sharing(hosts: Mapping[str, Facts], value_of: Callable[[Facts], str]) -> dict[str, list[str]]:
    """Values that more than one host has, with those hosts; empty values do not count."""
    owners: dict[str, list[str]] = defaultdict(list)
    for host, facts in hosts.items():
        value = value_of(facts)
        if value:
            owners[value].append(host)
    return {value: names for value, names in owners.items() if len(names) > 1}


def _clocks(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    """Compare with the middle one of all clocks (with one host: the controller's). A clock is known within bounds only, so
    what is reported is the least difference that they allow: a slow connection cannot cause a false finding."""
    bounds = {
        host: (facts["clock"]["ahead_min"], facts["clock"]["ahead_max"])
        for host, facts in hosts.items()
        if "ahead_min" in facts["clock"]
    }
    if not bounds:
        return
    reference, name = (0.0, 0.0), "the controller"
    if len(bounds) > 1:
        name = sorted(bounds, key=lambda host: sum(bounds[host]))[(len(bounds) - 1) // 2]
        reference = bounds[name]
    for host, (low, high) in bounds.items():
        ahead, behind = low - reference[1], reference[0] - high
        if host != name and max(ahead, behind) > settings.max_skew:
            direction = "ahead of" if ahead > 0 else "behind"
            yield Finding(
                "clock_skew",
                "error",
                f"its clock is at least {max(ahead, behind):.1f} s {direction} that of {name} (at most {settings.max_skew:g} s are allowed)",
                "Start a time service (chrony, systemd-timesyncd) on every host with the same servers; preflight_max_skew is the limit.",
                host,
                why="a certificate that is not valid yet is refused, and leases expire early",
            )


def _archives(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for image in settings.images:
        lacking = [
            host
            for host, facts in hosts.items()
            if image in settings.images_of(host) and image.digest not in facts["stored_digests"]
        ]
        if image.archive and image.size is None and lacking:
            yield Finding(
                "image_archive_missing",
                "error",
                f"the archive {image.archive} of {image.name} is not on the controller, and {_some(lacking)} do not have the image",
                "Build or copy the archive, or correct its path in images_list.",
                "images_list",
            )


CLUSTER_CHECKS: tuple[Callable[[Mapping[str, Facts], Settings], Iterator[Finding]], ...] = (
    _groups,
    _misspelt_groups,
    _left_out,
    _waived_codes,
    _duplicates,
    _clocks,
    _archives,
)


# --- one host --------------------------------------------------------------------------------------------------------


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
        name = system["name"] or " ".join(filter(None, (system["id"], system["version"]))) or "unknown (no /etc/os-release)"
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
        yield Finding("cgroup_missing", "error", "no cgroup file system is mounted", "Boot the host with systemd.", host)
        return
    if cgroup["version"] == 1:
        version = kubernetes_minor(settings.kubernetes_version)
        severity = "error" if version is None or version >= CGROUP_V1_REFUSED else "warning" if version >= CGROUP_V1_OLD else "info"
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
            why = "is not there for kernel " + facts["kernel"] if state == "missing" else "is disabled by a file in modprobe.d"
            fix = f"Install {package} for the running kernel." if state == "missing" else f"Remove the line 'install {name} ...' there."
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
            "the kernel's clock is not synchronised" + (f", although {service} runs" if service else ", and no time service runs"),
            f"See why {service} has no source." if service else "Install and start chrony.",
            host,
        )


def _data_dir(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    path = facts["data_dir"]
    if not path:
        yield Finding(
            "data_dir_unset",
            "error",
            "k3s_data_dir is not set",
            "Set k3s_data_dir to a folder on the large local disk, such as /data/k3s.",
            host,
        )
        return
    where = f"{host}:{path['path']}"
    if not path["absolute"] or re.search(r"\s", path["path"]) or path["path"].strip("/") == "" or ".." in path["path"].split("/"):
        yield Finding(
            "data_dir_invalid",
            "error",
            f"k3s_data_dir is {path['path']!r}; it must be an absolute path below '/', without '..' and white space",
            "Set k3s_data_dir to a folder on the large local disk, such as /data/k3s.",
            host,
        )
        return
    for link in path["symlinks"][:1]:
        yield Finding(
            "data_dir_symlink",
            "error",
            f"the data-dir goes through a symlink: {link['component']} -> {link['target']}",
            "Name the real folder in k3s_data_dir (or bind-mount it).",
            where,
            why="k3s's own tools recreate state under the default path, and containerd resolves some paths",
        )
    mount = path["mount"]
    if mount:
        yield from _data_dir_mount(where, path, mount)
        if mount["fstype"] not in UNFIT_FILESYSTEMS:
            yield from _space(host, where, facts, settings)


def _data_dir_mount(where: str, path: Mapping[str, Any], mount: Mapping[str, Any]) -> Iterator[Finding]:
    fstype = mount["fstype"]
    reason = UNFIT_FILESYSTEMS.get(fstype) or ("overlayfs does not work on FUSE" if fstype.startswith("fuse") else "")
    if reason:
        yield Finding(
            "data_dir_filesystem",
            "error",
            f"the data-dir is on {fstype} (mounted at {mount['target']}): {reason}",
            "Put k3s_data_dir on a local ext4 or xfs file system.",
            where,
        )
    bad = [option for option in ("noexec", "ro") if option in mount["options"]]
    if bad:
        yield Finding(
            "data_dir_mount_options",
            "error",
            f"its file system is mounted {' and '.join(bad)} at {mount['target']}",
            f"`mount -o remount,{','.join({'noexec': 'exec', 'ro': 'rw'}[option] for option in bad)} {mount['target']}`, and in /etc/fstab.",
            where,
            why="k3s unpacks and runs its programs there",
        )
    if mount["target"] == "/" and not reason:
        yield Finding(
            "data_dir_on_root",
            "warning",
            f"the data-dir is on the root file system (nearest existing folder: {path['nearest']})",
            "Mount the large disk first, or point k3s_data_dir to it.",
            where,
            why="images that fill it take the host down with DiskPressure",
        )


def _space(host: str, where: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    path = facts["data_dir"]
    free, total = path["free_bytes"], path["total_bytes"]
    if free is None:
        return
    needed, parts = needed_bytes(host, facts, settings)
    target = path["mount"]["target"]
    if free < needed:
        yield Finding(
            "data_dir_too_small",
            "error",
            f"{gib(needed)} will be stored ({parts}), and {gib(free)} are free on {target}",
            "Make room, or point k3s_data_dir to a larger file system; preflight_required_bytes overrides the estimate.",
            where,
        )
    elif needed and total and free - needed < 0.15 * total:
        yield Finding(
            "data_dir_nearly_full",
            "warning",
            f"{gib(needed)} will be stored ({parts}); of {gib(total)} on {target} {gib(free - needed)} stay free, less than 15 %",
            "Make room: from 85 % on the kubelet removes images that no pod uses.",
            where,
        )


def needed_bytes(host: str, facts: Facts, settings: Settings) -> tuple[int, str]:
    """What will be stored on the host beyond what is there already, and how it comes about.

    An archive holds compressed layers: containerd keeps them, and unpacks them beside. On a host that has joined, k3s
    itself is stored already.
    """
    if settings.required_bytes and not facts["joined"]:
        return settings.required_bytes, "preflight_required_bytes"
    pending = [image for image in settings.images_of(host) if image.size and image.digest not in facts["stored_digests"]]
    images = int(settings.image_factor * sum(image.size or 0 for image in pending))
    base = 0 if facts["joined"] else settings.base_bytes
    return base + images, f"{gib(base)} for k3s and logs, {gib(images)} for {len(pending)} images, packed and unpacked"


def gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"


def _ports(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    wanted = settings.ports_of(host)
    seen = set()
    for listener in facts["listeners"]:
        port = f"{listener['port']}/{listener['protocol']}"
        holder = _holder(listener, facts)
        if port not in wanted or holder is None or (port, holder) in seen:
            continue
        seen.add((port, holder))
        yield Finding(
            "port_in_use",
            "error",
            f"{port} is held by {holder}",
            "Stop it, or move it to another port." + _port_hint(port, settings),
            host,
        )


def _port_hint(port: str, settings: Settings) -> str:
    return " If that port is not used here, take it out of preflight_worker_ports." if port in settings.worker_ports else ""


def _holder(listener: Mapping[str, Any], facts: Facts) -> str | None:
    """Who holds a port, for people; None where it is k3s, a pod of it, or a listener of port_probe."""
    process, unit = listener["process"], listener["unit"]
    if unit in K3S_UNITS or unit == "kubepods" or process.startswith("k3s") or process == PROBE_NAME:
        return None
    if process:
        return f"{process} (pid {listener['pid']}{', ' + unit if unit else ''})"
    vxlan = [name for name, entry in (facts["interfaces"] or {}).items() if entry["vxlan_port"] == listener["port"]]
    if listener["protocol"] == "udp" and vxlan:
        return None if all(name.startswith("flannel") for name in vxlan) else f"the VXLAN interface {', '.join(vxlan)}"
    return f"a process that could not be seen (address {listener['address']})"


def _address(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    text = str(facts["declared"].get("address") or "")
    interface = str(facts["declared"].get("interface") or "")
    interfaces = facts["interfaces"]
    if interfaces is None:
        yield Finding(
            "interfaces_unreadable",
            "warning",
            "`ip -j address` does not answer, so cluster_address was not compared with the interfaces",
            "Install iproute2.",
            host,
        )
    yield from _interface(host, interface, interfaces)
    if not text:
        yield Finding(
            "cluster_address_unset",
            "error",
            "cluster_address is not set" + _candidates(interfaces, interface),
            "Set cluster_address for this host to the address that the other nodes reach.",
            host,
        )
        return
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        address = None
    if not isinstance(address, ipaddress.IPv4Address) or address.is_loopback or address.is_unspecified or address.is_multicast:
        yield Finding(
            "cluster_address_invalid",
            "error",
            f"cluster_address is {text!r}, which is no IPv4 address that another node could reach",
            "Set cluster_address for this host to the address that the other nodes reach.",
            host,
        )
        return
    for kind, cidrs in (("pod", settings.pod_cidrs), ("service", settings.service_cidrs)):
        for cidr in cidrs:
            if _inside(address, cidr):
                yield Finding(
                    "cluster_address_in_cidr",
                    "error",
                    f"cluster_address {text} lies inside the {kind} CIDR {cidr}",
                    f"Choose an address of the host's network, or another {kind} CIDR (k3s_{'cluster' if kind == 'pod' else 'service'}_cidr).",
                    host,
                    why="such an address belongs to cni0 and is unreachable from other nodes",
                )
    if interfaces is not None:
        yield from _placed(host, text, interface, interfaces)


def _interface(host: str, interface: str, interfaces: Mapping[str, Any] | None) -> Iterator[Finding]:
    if not interface:
        yield Finding(
            "cluster_interface_unset",
            "error",
            "cluster_interface is not set",
            "Set cluster_interface for this host to the interface that holds cluster_address.",
            host,
            why="flannel would take the default route's interface, on a GPU node often a public one",
        )
    elif interfaces is not None and interface not in interfaces:
        yield Finding(
            "cluster_interface_missing",
            "error",
            f"cluster_interface {interface} does not exist; there are {', '.join(_nics(interfaces)) or 'none'}",
            "Set cluster_interface for this host to the interface that holds cluster_address.",
            host,
        )
    elif interfaces is not None and not interfaces[interface]["up"]:
        yield Finding(
            "cluster_interface_down",
            "error",
            f"cluster_interface {interface} is down or has no carrier",
            f"`ip link set {interface} up`, and check the cable.",
            host,
        )


def _placed(host: str, text: str, interface: str, interfaces: Mapping[str, Any]) -> Iterator[Finding]:
    holders = [name for name, entry in interfaces.items() if text in entry["addresses"]]
    if not holders:
        yield Finding(
            "cluster_address_not_on_host",
            "error",
            f"cluster_address {text} is on none of its interfaces" + _candidates(interfaces, interface),
            "Set cluster_address for this host to an address that it has.",
            host,
        )
    elif interface in interfaces and interface not in holders:
        yield Finding(
            "cluster_address_wrong_interface",
            "error",
            f"cluster_address {text} is on {', '.join(holders)}, and cluster_interface is {interface}",
            "Set cluster_interface to the interface that holds cluster_address.",
            host,
        )


def _nics(interfaces: Mapping[str, Any]) -> list[str]:
    virtual = ("veth", "bridge", "vxlan", "dummy", "ifb", "tun", "ipip", "sit", "gre")
    return [name for name, entry in interfaces.items() if name != "lo" and entry["kind"] not in virtual]


def _candidates(interfaces: Mapping[str, Any] | None, interface: str) -> str:
    """The IPv4 addresses of the wanted interface, else of all NICs, as a phrase."""
    names = [interface] if interface in (interfaces or {}) else _nics(interfaces or {})
    found = [f"{address} ({name})" for name in names for address in (interfaces or {})[name]["addresses"] if ":" not in address]
    return f"; it has {', '.join(found)}" if found else ""


def _inside(address: ipaddress.IPv4Address, cidr: str) -> bool:
    try:
        return address in ipaddress.ip_network(cidr, strict=False)
    except ValueError:
        return False


def _firewall(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    if facts["firewall"]:
        kinds = "; ".join(f"{entry['kind']} ({entry['detail']})" for entry in facts["firewall"])
        ports = ", ".join(settings.ports_of(host))
        yield Finding(
            "firewall_present",
            "warning",
            f"incoming packets are filtered: {kinds}",
            f"Nothing is edited here. Allow {ports} from the other nodes, and everything from {', '.join([*settings.pod_cidrs, *settings.service_cidrs])}.",
            host,
        )


def _kubernetes(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    k3s = facts["k3s"]
    wanted = (facts["data_dir"] or {}).get("path", "")
    if facts["other_kubernetes"]:
        yield Finding(
            "kubernetes_foreign",
            "error",
            f"another Kubernetes is there: {', '.join(facts['other_kubernetes'])}",
            "Remove it with its own tool (kubeadm reset, rke2-uninstall.sh, snap remove microk8s), or take the host out of k3s_cluster.",
            host,
        )
    if k3s["installed"] and not k3s["own"]:
        uninstall = "k3s-agent-uninstall.sh" if k3s["unit"] == "k3s-agent.service" else "k3s-uninstall.sh"
        yield Finding(
            "k3s_foreign",
            "error",
            f"a k3s is installed that this collection did not install ({k3s['unit'] or 'no unit'}, data-dir {k3s['data_dir']})",
            f"Remove it: `K3S_DATA_DIR={k3s['data_dir']} /usr/local/bin/{uninstall}` on the host.",
            host,
        )
    elif k3s["installed"] and wanted and k3s["data_dir"].rstrip("/") != wanted.rstrip("/"):
        yield Finding(
            "k3s_other_data_dir",
            "error",
            f"k3s is installed with the data-dir {k3s['data_dir']}, and k3s_data_dir is {wanted}",
            f"Set k3s_data_dir to {k3s['data_dir']}, or run playbooks/reset.yml on this host first.",
            host,
            why="a changed data-dir starts an empty cluster beside the old one",
        )
    if facts["leftovers"]:
        yield Finding(
            "kubernetes_leftovers",
            "warning",
            f"an earlier cluster left {', '.join(facts['leftovers'])}",
            "Look whether anything there is needed, then remove it.",
            host,
        )


HOST_CHECKS: tuple[Callable[[str, Facts, Settings], Iterator[Finding]], ...] = (
    _names,
    _system,
    _cgroups,
    _kernel,
    _data_dir,
    _ports,
    _address,
    _firewall,
    _kubernetes,
)


# --- reachability ----------------------------------------------------------------------------------------------------


def peers(hosts: Mapping[str, Facts], settings: Settings) -> list[dict[str, Any]]:
    """Whom every host asks: [{host, address, ports, answers}].

    Hosts of the run; one that has joined does not listen for port_probe, k3s does. And servers that a --limit left out,
    as far as the inventory knows their address: a new agent must reach its server.
    """
    result = []
    for host, facts in hosts.items():
        address = str(facts["declared"].get("address") or "")
        if address:
            result.append({"host": host, "address": address, "ports": settings.join_ports_of(host), "answers": not facts["joined"]})
    for host in settings.members("k3s_server"):
        address = str(settings.addresses.get(host) or "")
        if host not in hosts and address:
            result.append({"host": host, "address": address, "ports": settings.join_ports_of(host), "answers": False})
    return result


def judge_reachability(
    probes: Mapping[str, Sequence[Mapping[str, Any]]],
    listens: Mapping[str, Mapping[str, Any]],
    hosts: Mapping[str, Facts],
) -> list[Finding]:
    """Findings of what each host saw of the others' ports; one finding a port of a host, whoever could not reach it.

    C(probes) host -> results of port_probe, C(listens) host -> what port_probe listened on there.
    """
    failed: dict[tuple[str, str, str, str], list[str]] = defaultdict(list)
    strangers: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    untested: dict[str, list[str]] = defaultdict(list)
    for source, results in probes.items():
        for result in results:
            host, port, state = result["host"], result["port"], result["state"]
            if state == "open":
                continue
            if state == "wrong_host":
                strangers[(host, result["address"], result["detail"])].append(source)
            elif state == "not_tested" or port in _not_listening(host, listens):
                untested[host] += [port] if port not in untested[host] else []
            else:
                failed[(host, result["address"], port, _phrase(result))].append(source)
    return [
        *(_unreachable(key, sources, hosts) for key, sources in failed.items()),
        *(_stranger(key, sources) for key, sources in strangers.items()),
        *(_untested(host, ports) for host, ports in untested.items()),
    ]


def _not_listening(host: str, listens: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return [entry["port"] for entry in (listens.get(host) or {}).get("unavailable") or []]


def _phrase(result: Mapping[str, Any]) -> str:
    phrases = {"timeout": "no answer", "refused": "refused", "unreachable": result["detail"] or "unreachable"}
    return phrases.get(result["state"]) or result["detail"] or result["state"]


def _unreachable(key: tuple[str, str, str, str], sources: Sequence[str], hosts: Mapping[str, Facts]) -> Finding:
    host, address, port, phrase = key
    number, protocol = port.split("/")
    facts = hosts.get(host)
    kinds = [entry["kind"] for entry in facts["firewall"]] if facts else []
    if facts is None:
        fix = f"Start k3s on {host} and open {port} there; it is not part of this run."
    elif "firewalld" in kinds:
        fix = f"On {host}: `firewall-cmd --permanent --add-port={port} && firewall-cmd --reload`."
    elif "ufw" in kinds:
        fix = f"On {host}: `ufw allow {port}`."
    elif kinds:
        fix = f"On {host}: accept {protocol} dport {number} from the nodes in {facts['firewall'][0]['detail'].split(':')[0]}."
    else:
        fix = f"No firewall was found on {host}: look at filters on the way, and at `ip route get {address}` on {sources[0]}."
    return Finding("port_unreachable", "error", f"{address} {port} cannot be reached from {_some(sources)}: {phrase}", fix, host)


def _stranger(key: tuple[str, str, str], sources: Sequence[str]) -> Finding:
    host, address, name = key
    return Finding(
        "port_wrong_host",
        "error",
        f"its address {address} leads to {name or 'another host'} from {_some(sources)}",
        "Correct cluster_address, or the second host that has this address (`arping` shows two MACs).",
        host,
    )


def _untested(host: str, ports: Sequence[str]) -> Finding:
    return Finding(
        "port_not_tested",
        "info",
        f"{', '.join(ports)} not tested: something holds the port already",
        "Nothing to do where k3s runs already.",
        host,
    )


# --- for people ------------------------------------------------------------------------------------------------------


def merge(findings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Findings that say the same of several hosts become one: twenty hosts with swap are one line, not twenty."""
    merged: dict[tuple[str, ...], dict[str, Any]] = {}
    for finding in findings:
        key = tuple(finding[name] for name in ("code", "severity", "message", "fix"))
        if key in merged:
            merged[key]["where"] += f", {finding['where']}"
        else:
            merged[key] = dict(finding)
    return list(merged.values())


def _some(names: Sequence[str]) -> str:
    """Up to five names, then how many more."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
