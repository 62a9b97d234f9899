# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One k3s node as it is: what is installed, what runs, whether it is Ready, and if not, why."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import time
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Optional
from urllib.parse import urlsplit

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.systemd import (
    Runner,
    Unit,
    last_log_lines,
    read_unit,
    run,
)

BINARY = "/usr/local/bin/k3s"
CONFIG = "/etc/rancher/k3s/config.yaml"
# Settings that k3s takes when it starts and that its datastore, its files or its nodes' routes contradict later.
FIXED = ("data-dir", "cluster-cidr", "service-cidr")

# What k3s says, what it is, and what to do. The first rule that matches the newest log line wins.
# Sources: k3s issue tracker and docs; the messages are k3s's and the kubelet's own.
CAUSES: tuple[tuple[str, str, str, str], ...] = (
    (
        r"[Nn]ode password rejected|duplicate hostname",
        "k3s_node_password",
        "the server knows another node of this name (its password differs)",
        "Give the host a k3s_node_name of its own; if it is the same machine reinstalled, delete the node and the secret"
        " <node>.node-password.k3s in kube-system, then run again.",
    ),
    (
        r"token CA hash does not match",
        "k3s_token_ca",
        "the token was made by another cluster's CA",
        "Point the host at its own cluster's server, or run playbooks/reset.yml on it first.",
    ),
    (
        r"not authorized|[Uu]nauthorized|invalid token|token is not valid",
        "k3s_token_refused",
        "the server refused the token",
        "Run the k3s stage without --limit, so that the token is read from the server again.",
    ),
    (
        r"encrypted with different token|bootstrap data already found",
        "k3s_token_changed",
        "the datastore was made with another server token",
        "Set k3s_token back to what the cluster was made with.",
    ),
    (
        r"flag provided but not defined: (\S+)",
        "k3s_flag_unknown",
        "this k3s does not know an argument",
        "Remove it, or install a k3s that has it (k3s_version).",
    ),
    (
        r"failed to find interface|unable to find interface|no such network interface|route ip\+net",
        "k3s_interface_missing",
        "flannel-iface names an interface that this host does not have",
        "Set cluster_interface (k3s_flannel_iface) to the interface that holds cluster_address.",
    ),
    (
        r"[Aa]ddress already in use",
        "k3s_port_taken",
        "a port that k3s needs is taken",
        "`ss -lntp` on the host names the holder; stop it, or move it.",
    ),
    (
        r"no space left on device",
        "k3s_disk_full",
        "the disk is full",
        "Make room on the file system of k3s_data_dir.",
    ),
    (
        r"overlay.*(not supported|invalid argument)|failed to mount overlay",
        "k3s_snapshotter",
        "the file system of the data-dir does not carry overlayfs",
        "Put k3s_data_dir on a local ext4 or xfs file system.",
    ),
    (
        r"failed to get CA certs|connection refused|i/o timeout|no route to host|network is unreachable|context deadline exceeded",
        "k3s_server_unreachable",
        "the server does not answer",
        "Open 6443/tcp from this host to the server, and check the route to it.",
    ),
)


@dataclass(frozen=True)
class Node:
    """A snapshot. C(ready) is None where the API does not know the node or cannot be asked."""

    unit: Unit
    installed_version: Optional[str]
    config: dict[str, str]
    ready: Optional[bool]
    version: Optional[str]
    address: Optional[str]
    message: str = ""
    selinux: bool = False


@dataclass(frozen=True)
class Target:
    """The node to look at: its unit, its name in the API, and what it should be like once it is Ready."""

    unit: str
    name: str
    data_dir: str
    server_url: str = ""
    version: str = ""
    address: str = ""

    @property
    def kubeconfig(self) -> str:
        if self.unit == "k3s":
            return "/etc/rancher/k3s/k3s.yaml"
        return os.path.join(self.data_dir, "agent/kubelet.kubeconfig")


def read_node(target: Target, runner: Runner = run) -> Node:
    """Look once; never fails."""
    unit = read_unit(target.unit, runner)
    ready = version = address = None
    message = ""
    if unit.running:
        # By its path: looked up by its kind, kubectl would ask for all kinds and leave a cache in root's home.
        path = f"/api/v1/nodes/{target.name}"
        status, text = runner([BINARY, "kubectl", "--kubeconfig", target.kubeconfig, "get", "--raw", path])
        if status == 0:
            ready, version, address, message = parse_node(text)
        else:
            message = text.strip().splitlines()[-1] if text.strip() else ""
    selinux = os.path.exists("/sys/fs/selinux/enforce")
    return Node(unit, _installed_version(runner), _configured(), ready, version, address, message, selinux)


def differing(files: Iterable[tuple[str, str]]) -> list[str]:
    """Those paths whose content has not the sha256 beside them. A file that cannot be read differs, and so does a binary that cannot be run."""
    return [
        path for path, sha256 in files if _sha256(path) != sha256 or (path == BINARY and not os.access(path, os.X_OK))
    ]


def _sha256(path: str) -> str:
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as handle:
            for block in iter(lambda: handle.read(1 << 20), b""):
                digest.update(block)
    except OSError:
        return ""
    return digest.hexdigest()


def parse_node(text: str) -> tuple[Optional[bool], Optional[str], Optional[str], str]:
    """Ready, kubelet version, InternalIP and the Ready condition's message of a Node object as JSON."""
    try:
        status = json.loads(text)["status"]
    except (ValueError, KeyError, TypeError):
        status = None
    if not isinstance(status, dict):
        return None, None, None, "the API's answer is not a Node"
    ready, message = False, ""
    for condition in status.get("conditions", []):
        if condition.get("type") == "Ready":
            ready, message = condition.get("status") == "True", condition.get("message", "")
    addresses = [entry["address"] for entry in status.get("addresses", []) if entry.get("type") == "InternalIP"]
    return ready, status.get("nodeInfo", {}).get("kubeletVersion"), addresses[0] if addresses else None, message


def settled(target: Target, node: Node) -> bool:
    """Whether the node is what was asked for: Ready, at the version, at the address."""
    return bool(
        node.ready
        and node.unit.active == "active"
        and (not target.version or node.version == target.version)
        and (not target.address or node.address == target.address)
    )


def wait_until_settled(
    target: Target,
    seconds: float,
    runner: Runner = run,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[Node, list[Finding]]:
    """Poll until the node is settled. After C(seconds), or as soon as its service keeps failing for a known cause, say why.

    What the service did and said before this start of it is no cause: it may be what was just mended.
    """
    deadline = clock() + seconds
    first = read_unit(target.unit, runner)
    since = first.started if first.started is not None else time.time() - 2
    while True:
        node = read_node(target, runner)
        if settled(target, node):
            return node, []
        failing = node.unit.active == "failed" or node.unit.restarts - first.restarts >= 3
        if clock() >= deadline or (failing and _cause(target, runner, since)):
            return node, explain(target, node, runner, since)
        sleep(0.5)


def explain(target: Target, node: Node, runner: Runner = run, since: Optional[float] = None) -> list[Finding]:
    """Why the node is not what was asked for, the most telling finding first. C(since): when its service was started."""
    where = target.name
    findings = []
    cause = _cause(target, runner, since)
    if cause:
        findings.append(cause)
    if target.server_url:
        findings += _reachability(target)
    if node.ready and target.address and node.address != target.address:
        findings.append(
            Finding(
                "k3s_address",
                "error",
                f"advertises {node.address}, not {target.address}",
                "Check node-ip in k3s_config, and that no other config file sets it.",
                where=where,
            )
        )
    if node.ready and target.version and node.version != target.version:
        findings.append(
            Finding(
                "k3s_version",
                "error",
                f"runs {node.version}, not {target.version}",
                f"See `journalctl -u {target.unit}`: the new binary does not start.",
                where=where,
            )
        )
    if not findings:
        lines = last_log_lines(target.unit, 5, runner, since)
        findings.append(
            Finding(
                "k3s_not_ready",
                "error",
                f"is not Ready: unit {target.unit} is {node.unit.active}, the API says: {node.message or 'nothing'}",
                f"See `journalctl -u {target.unit}` on the host; a slow disk needs a longer k3s_ready_timeout.",
                where=where,
                why=" | ".join(lines),
            )
        )
    return findings


def _cause(target: Target, runner: Runner, since: Optional[float]) -> Optional[Finding]:
    for line in reversed(last_log_lines(target.unit, 60, runner, since)):
        for pattern, code, message, fix in CAUSES:
            # A server's own components miss its API while it starts: that is no cause.
            if code == "k3s_server_unreachable" and not target.server_url:
                continue
            if re.search(pattern, line):
                return Finding(code, "error", message, fix, where=target.name, why=line.strip()[-300:])
    return None


def _reachability(target: Target) -> list[Finding]:
    parts = urlsplit(target.server_url)
    host, port = parts.hostname or "", parts.port or 6443
    try:
        with socket.create_connection((host, port), timeout=3):
            return []
    except OSError as error:
        return [
            Finding(
                "k3s_server_unreachable",
                "error",
                f"cannot connect to {host}:{port}: {error.strerror or error}",
                "Open 6443/tcp from this host to the server, and check the route to it (`ip route get`).",
                where=target.name,
            )
        ]


def _installed_version(runner: Runner) -> Optional[str]:
    if not os.path.exists(BINARY):
        return None
    match = re.search(r"k3s version (v\S+)", runner([BINARY, "--version"])[1])
    return match.group(1) if match else None


def _configured() -> dict[str, str]:
    """Those plain settings of the node's own config.yaml that cannot change under a cluster that stands."""
    try:
        with open(CONFIG, encoding="utf-8") as handle:
            text = handle.read()
    except OSError:
        return {}
    found = re.findall(rf"^({'|'.join(FIXED)}):\s*['\"]?([^'\"\n]+)", text, re.MULTILINE)
    return {key: value.strip() for key, value in found}


def to_dict(node: Node) -> dict[str, Any]:
    """The snapshot as a module returns it."""
    return {
        "installed_version": node.installed_version,
        "loaded": node.unit.loaded,
        "running": node.unit.running,
        "enabled": node.unit.enabled,
        "needs_reload": node.unit.needs_reload,
        "unit_state": node.unit.active,
        "data_dir": node.config.get("data-dir"),
        "config": node.config,
        "ready": node.ready,
        "version": node.version,
        "address": node.address,
        "selinux": node.selinux,
    }
