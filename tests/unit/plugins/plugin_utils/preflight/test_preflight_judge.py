# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One change to a fit host, and the one finding it must give: what the code, its severity and its message are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight import settings as words
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.judge import judge, merge
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.preflight.fit import (
    GIB,
    fit_host,
    fit_settings,
    said,
)

SSHD = {
    "protocol": "tcp",
    "address": "0.0.0.0",
    "port": 6443,
    "inode": 1,
    "pid": 7,
    "process": "nginx",
    "unit": "nginx.service",
}
KERNEL = {"protocol": "udp", "address": "0.0.0.0", "port": 8472, "inode": 2, "pid": None, "process": "", "unit": ""}
OWN_K3S = {
    "installed": True,
    "unit": "k3s.service",
    "running": True,
    "active": True,
    "own": True,
    "data_dir": "/data/k3s",
}


def mount(**changes: Any) -> dict[str, Any]:
    return {"target": "/data", "source": "x", "fstype": "xfs", "options": ["rw"], **changes}


def vxlan(name: str) -> dict[str, Any]:
    eno1 = {"up": True, "kind": "", "addresses": ["10.1.0.1"], "vxlan_port": None}
    return {"eno1": eno1, name: {"up": True, "kind": "vxlan", "addresses": [], "vxlan_port": 8472}}


# change to the host, code, severity, words of the message
ONE_HOST = [
    ({"declared__node_name": "GPU1"}, "node_name_invalid", "error", "'GPU1'"),
    ({"declared__node_name": "gpu_1"}, "node_name_invalid", "error", "'gpu_1'"),
    ({"declared__node_name": "a" * 254}, "node_name_invalid", "error", "253"),
    ({"machine_id": ""}, "machine_id_missing", "warning", "/etc/machine-id"),
    (
        {"os": {"id": "debian", "version": "13", "like": [], "name": "Debian 13"}},
        "os_unsupported",
        "error",
        "Debian 13",
    ),
    ({"os": {"id": "rocky", "version": "8.9", "like": [], "name": ""}}, "os_unsupported", "error", "rocky 8.9"),
    ({"os": {"id": "", "version": "", "like": [], "name": ""}}, "os_unsupported", "error", "no /etc/os-release"),
    ({"python": "3.8.10"}, "python_too_old", "error", "3.8.10"),
    ({"root": False}, "not_root", "error", "root"),
    ({"init": "sh"}, "init_not_systemd", "error", "process 1 is sh"),
    ({"architecture": "ppc64le"}, "architecture_unsupported", "error", "ppc64le"),
    (
        {"cgroup": {"version": 1, "mode": "hybrid", "controllers": ["cpu", "cpuset", "memory", "pids"]}},
        "cgroup_v1",
        "error",
        "hybrid",
    ),
    ({"cgroup": {"version": None, "mode": "", "controllers": []}}, "cgroup_missing", "error", "no cgroup"),
    ({"cgroup__controllers": ["cpu", "cpuset", "pids"]}, "cgroup_controllers_missing", "error", "memory"),
    (
        {"modules__br_netfilter": "missing"},
        "kernel_module_missing",
        "error",
        "br_netfilter is not there for kernel 6.1.0-18-amd64",
    ),
    ({"modules__vxlan": "disabled"}, "kernel_module_missing", "error", "vxlan is disabled"),
    ({"modules__vxlan": "unknown"}, "kernel_module_unknown", "info", "vxlan"),
    ({"inotify__max_user_instances": 128}, "inotify_low", "warning", "fs.inotify.max_user_instances = 128"),
    ({"swap": [{"device": "/dev/sda2", "bytes": 8 * GIB}]}, "swap_on", "warning", "/dev/sda2 (8.0 GiB)"),
    ({"selinux": {"mode": "enforcing", "k3s_policy": False}}, "selinux_policy_missing", "error", "k3s-selinux"),
    ({"clock__synchronized": False}, "clock_not_synchronized", "warning", "although chrony.service runs"),
    (
        {"problems": [{"what": "/proc/swaps", "error": "Input/output error"}]},
        "unreadable",
        "warning",
        "Input/output error",
    ),
    ({"data_dir": None}, "data_dir_unset", "error", "not set"),
    ({"data_dir__path": "data", "data_dir__absolute": False}, "data_dir_invalid", "error", "'data'"),
    ({"data_dir__path": "/"}, "data_dir_invalid", "error", "'/'"),
    ({"data_dir__path": "/data/../k3s"}, "data_dir_invalid", "error", "'..'"),
    ({"data_dir__path": "/my data/k3s"}, "data_dir_invalid", "error", "white space"),
    (
        {"data_dir__folder": False, "data_dir__nearest": "/data/k3s"},
        "data_dir_invalid",
        "error",
        "/data/k3s is not a folder",
    ),
    (
        {"data_dir__symlinks": [{"component": "/data", "target": "/mnt/x"}]},
        "data_dir_symlink",
        "error",
        "/data -> /mnt/x",
    ),
    ({"data_dir__mount": mount(fstype="overlay", target="/")}, "data_dir_filesystem", "error", "overlay"),
    ({"data_dir__mount": mount(fstype="nfs4")}, "data_dir_filesystem", "error", "network file system"),
    ({"data_dir__mount": mount(fstype="tmpfs")}, "data_dir_filesystem", "error", "memory"),
    ({"data_dir__mount": mount(fstype="fuse.sshfs")}, "data_dir_filesystem", "error", "FUSE"),
    ({"data_dir__mount": mount(options=["rw", "noexec"])}, "data_dir_mount_options", "error", "noexec"),
    ({"data_dir__mount": mount(options=["ro"])}, "data_dir_mount_options", "error", "ro at /data"),
    ({"data_dir__mount": mount(target="/")}, "data_dir_on_root", "warning", "root file system"),
    ({"data_dir__free_bytes": 4 * GIB}, "data_dir_too_small", "error", "5.0 GiB will be stored"),
    ({"data_dir__free_bytes": 100 * GIB}, "data_dir_nearly_full", "warning", "95.0 GiB stay free"),
    ({"listeners": [SSHD]}, "port_in_use", "error", "6443/tcp is held by nginx (pid 7, nginx.service)"),
    ({"listeners": [SSHD, {**SSHD, "address": "::"}]}, "port_in_use", "error", "nginx"),
    ({"listeners": [{**SSHD, "process": "", "pid": None, "unit": ""}]}, "port_in_use", "error", "could not be seen"),
    ({"listeners": [KERNEL], "interfaces": vxlan("cilium_vxlan")}, "port_in_use", "error", "cilium_vxlan"),
    ({"firewall": [{"kind": "ufw", "detail": "ENABLED=yes"}]}, "firewall_present", "warning", "ufw"),
    ({"other_kubernetes": ["kubelet.service"]}, "kubernetes_foreign", "error", "kubelet.service"),
    ({"k3s": {**OWN_K3S, "own": False}}, "k3s_foreign", "error", "k3s.service, data-dir /data/k3s"),
    ({"k3s": {**OWN_K3S, "data_dir": "/old"}}, "k3s_other_data_dir", "error", "/old"),
    ({"leftovers": ["/var/lib/rancher/k3s/server"]}, "kubernetes_leftovers", "warning", "/var/lib/rancher/k3s/server"),
]


@pytest.mark.parametrize(("changes", "code", "severity", "message"), ONE_HOST)
def test_one_thing_wrong_gives_one_finding(changes: dict[str, Any], code: str, severity: str, message: str) -> None:
    hosts = {"gpu1": fit_host("gpu1", **changes), "gpu2": fit_host("gpu2")}

    (finding,) = judge(hosts, fit_settings())

    assert (finding.code, finding.severity) == (code, severity)
    assert message in finding.message
    assert finding.where.startswith("gpu1")
    assert finding.fix


def test_hosts_that_are_fit_give_nothing() -> None:
    assert judge({"gpu1": fit_host("gpu1"), "gpu2": fit_host("gpu2")}, fit_settings()) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"listeners": [{**SSHD, "unit": "k3s.service", "process": "kube-apiserver"}]},
        {"listeners": [{**SSHD, "port": 30000, "unit": "kubepods", "process": "python3"}]},
        {"listeners": [{**SSHD, "unit": "", "process": "infera-probe"}]},
        {"listeners": [{**SSHD, "port": 22}]},
        {"listeners": [KERNEL], "interfaces": vxlan("flannel.1")},
        {"selinux": {"mode": "enforcing", "k3s_policy": True}},
        {"selinux": {"mode": "permissive", "k3s_policy": False}},
        {"clock__synchronized": None},
        {"inotify": {"max_user_watches": None, "max_user_instances": None}},
        {"os": {"id": "almalinux", "version": "9.4", "like": [], "name": ""}},
        {"os": {"id": "ubuntu", "version": "24.04", "like": [], "name": ""}},
        {"architecture": "aarch64"},
        {"k3s": OWN_K3S, "joined": True, "data_dir__free_bytes": 1},
        {"data_dir__free_bytes": None},
    ],
)
def test_what_is_normal_is_not_reported(changes: dict[str, Any]) -> None:
    assert judge({"gpu1": fit_host("gpu1", **changes), "gpu2": fit_host("gpu2")}, fit_settings()) == []


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("v1.35.0+k3s1", "error"),
        ("v1.34.9+k3s1", "warning"),
        ("v1.30.1+k3s1", "info"),
        ("", "error"),
        ("latest", "error"),
    ],
)
def test_cgroup_v1_is_judged_by_the_release(version: str, severity: str) -> None:
    old = {"version": 1, "mode": "legacy", "controllers": ["cpu", "cpuset", "memory", "pids"]}

    (finding,) = judge(
        {"gpu1": fit_host(cgroup=old)},
        fit_settings(hosts=["gpu1"], groups={"k3s_server": ["gpu1"]}, kubernetes_version=version),
    )

    assert (finding.code, finding.severity) == ("cgroup_v1", severity)


def test_a_host_in_no_worker_group_may_have_its_ports_taken() -> None:
    groups = {"k3s_cluster": ["gpu1"], "k3s_server": ["gpu1"], "k3s_agent": []}
    taken = fit_host(listeners=[{**SSHD, "port": 30000}])

    assert judge({"gpu1": taken}, fit_settings(groups=groups, hosts=["gpu1"])) == []


def test_everything_wrong_on_every_host_is_in_one_list() -> None:
    bad = {"python": "3.8.1", "init": "sh", "swap": [{"device": "/swap", "bytes": GIB}]}
    hosts = {"gpu1": fit_host("gpu1", **bad), "gpu2": fit_host("gpu2", **bad)}

    assert said(judge(hosts, fit_settings())) == [
        ("python_too_old", "error", "gpu1"),
        ("init_not_systemd", "error", "gpu1"),
        ("swap_on", "warning", "gpu1"),
        ("python_too_old", "error", "gpu2"),
        ("init_not_systemd", "error", "gpu2"),
        ("swap_on", "warning", "gpu2"),
    ]


def test_what_hosts_share_is_said_once() -> None:
    hosts = {"gpu1": fit_host("gpu1", python="3.8.1"), "gpu2": fit_host("gpu2", python="3.8.1")}

    (merged,) = merge(finding.to_dict() for finding in judge(hosts, fit_settings()))

    assert merged["where"] == "gpu1, gpu2"


def test_every_code_that_can_be_given_is_listed_and_explained() -> None:
    room = Path(words.__file__).parent
    domain = [room.parents[1] / "module_utils" / name for name in ("advertise.py", "interfaces.py")]
    files = [*room.glob("*.py"), *domain]
    used = {
        code for file in files for code in re.findall(r'(?:Finding|_differing)\(\s*"([a-z0-9_]+)"', file.read_text())
    }
    readme = (room.parents[2] / "roles/preflight/README.md").read_text()

    assert used == set(words.CODES)
    assert set(re.findall(r"^\| `([a-z0-9_]+)`", readme, re.MULTILINE)) == set(words.CODES)


def test_what_the_host_found_about_its_address_is_told_with_the_host_and_every_refusal() -> None:
    none = {"code": "advertise_none", "severity": "error", "message": "nothing", "fix": "do", "where": ""}
    candidates = [
        {"interface": "cni0", "address": "10.42.0.1", "detail": "bridge, no NIC below it"},
        {"interface": "eno1", "address": "10.1.0.1", "detail": ""},
    ]
    host = fit_host(
        advertise={"findings": [none, {**none, "code": "advertise_input", "where": "peers"}], "candidates": candidates}
    )

    first, second = judge({"gpu1": host, "gpu2": fit_host("gpu2")}, fit_settings())

    assert (first.where, first.why) == ("gpu1", "cni0 10.42.0.1: bridge, no NIC below it")
    assert (second.where, second.why) == ("gpu1:peers", "")


def test_a_choice_that_only_the_name_decided_is_the_operators_to_confirm() -> None:
    found = {
        "code": "advertise_ambiguous",
        "severity": "warning",
        "message": "two are fit",
        "fix": "Name one.",
        "where": "eno1",
    }
    host = fit_host(advertise={"findings": [found], "candidates": []})

    assert said(
        judge({"gpu1": host}, fit_settings(hosts=["gpu1"], groups={"k3s_cluster": ["gpu1"], "k3s_server": ["gpu1"]}))
    ) == [("advertise_ambiguous", "error", "gpu1:eno1")]
