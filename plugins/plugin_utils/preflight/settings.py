# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What hosts are judged against, and the words that every check uses: groups, codes, settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, Mapping, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.port_probe import parse_port

GIB = 1024**3

Facts = Mapping[str, Any]
Check = Callable[[str, Facts, Any], Iterator[Finding]]

GROUPS = ("k3s_cluster", "k3s_server", "k3s_agent", "router", "prefill", "decode", "aggregated")
SERVING_GROUPS = ("router", "prefill", "decode", "aggregated")
# A worker takes host ports, so a host can be one of these only.
WORKER_GROUPS = ("prefill", "decode", "aggregated")

# Every code, with what it says in a few words. The README's table is held against this one by a test.
CODES: dict[str, str] = {
    "preflight_input": "a variable of this stage is of the wrong form",
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
    "gpus_none": "a worker's host shows no GPU",
    "gpus_differ": "GPUs differ in number or kind between workers",
    "driver_differs": "amdgpu, ionic or ionic_rdma is not of one version on all workers",
    "firmware_differs": "the RDMA NICs' firmware is not of one version",
    "nicctl_missing": "PFC, DCQCN and traffic classes could not be compared",
    "qos_differs": "PFC or traffic classes differ between workers",
    "dcqcn_differs": "DCQCN differs between workers",
    "ionic_driver_files": "several files tell libibverbs to load libionic",
    "peer_memory_missing": "NICs cannot reach GPU memory",
    "peer_memory_unknown": "whether NICs can reach GPU memory cannot be told",
    "iommu_not_passthrough": "the IOMMU translates for devices",
    "memlock_limited": "containers may lock little memory",
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
    "advertise_input": "a variable about the address that a host advertises is of the wrong form",
    "advertise_none": "no address of a host can be advertised",
    "advertise_refused": "cluster_address or cluster_interface names what cannot be advertised",
    "advertise_interface_missing": "cluster_interface does not exist",
    "advertise_address_missing": "cluster_address is not on the host, or not on cluster_interface",
    "advertise_ambiguous": "several addresses are fit, and only the name decided",
    "advertise_unstable": "only a deprecated or tentative address is left",
    "interfaces_unreadable": "the interfaces could not be read",
    "routes_unreadable": "the kernel could not be asked for routes",
    "duplicate_cluster_address": "two hosts have one cluster_address",
    "firewall_present": "something filters incoming packets",
    "k3s_foreign": "a k3s that this collection did not install",
    "k3s_other_data_dir": "k3s is installed with another data-dir",
    "kubernetes_foreign": "another Kubernetes is installed",
    "kubernetes_leftovers": "an earlier cluster left files",
    "port_unreachable": "a port cannot be reached from another host",
    "port_wrong_host": "an address leads to another host than it should",
    "port_not_tested": "a port could not be tested",
    "waive_unknown": "preflight_waive names a code that is nearly one of these",
}


class PreflightInputError(ValueError):
    """A setting is of the wrong form; the message names the variable."""

    def finding(self) -> Finding:
        """The same, to be told beside what else was found."""
        return Finding("preflight_input", "error", str(self), "Correct it in the inventory or the extra vars.")


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
    unread: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> Settings:
        """From the role's variables without their prefix; lists may be strings with commas, numbers may be strings (AWX)."""
        known: dict[str, Any] = {
            name: as_list(given[name])
            for name in ("hosts", "pod_cidrs", "service_cidrs", "server_ports", "node_ports", "worker_ports", "waive")
            if given.get(name) is not None
        }
        for name in ("server_ports", "node_ports", "worker_ports"):
            known.update({name: [_port(name, text) for text in known[name]]} if name in known else {})
        known.update({name: given[name] for name in ("groups", "addresses", "unread") if given.get(name) is not None})
        known["kubernetes_version"] = str(given.get("kubernetes_version") or "")
        known["images"] = [
            Image(**{**item, "hosts": tuple(item.get("hosts") or ())}) for item in given.get("images") or []
        ]
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


def _port(name: str, text: str) -> str:
    try:
        return str(parse_port(text))
    except ValueError as error:
        raise PreflightInputError(f"preflight_{name}: {error}") from error


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise PreflightInputError(f"preflight_{name} is {value!r}; it must be a number") from error
    if number < 0:
        raise PreflightInputError(f"preflight_{name} is {value!r}; it must not be negative")
    return number


def some(names: Sequence[str]) -> str:
    """Up to five names, then how many more."""
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def gib(size: float) -> str:
    return f"{size / GIB:.1f} GiB"
