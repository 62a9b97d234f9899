# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What may stand in k3s's config.yaml, and what the k3s role is given.

k3s skips an unknown config key with one line in its log, and a server's key in an agent's config likewise: a typo silently
loses a setting. So keys are checked here, before anything changes.
"""

from __future__ import annotations

import difflib
import hashlib
import ipaddress
import re
from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding

# Long flags are config keys. Names from the k3s sources (server: 1.3x; agent: 1.2x).
COMMON_KEYS = frozenset(
    """
    config debug v vmodule log alsologtostderr data-dir token token-file server node-name with-node-id node-label node-taint
    node-ip node-external-ip image-credential-provider-bin-dir image-credential-provider-config docker
    container-runtime-endpoint default-runtime image-service-endpoint disable-default-registry-endpoint pause-image
    snapshotter private-registry airgap-extra-registry resolv-conf flannel-iface flannel-conf flannel-cni-conf vpn-auth
    vpn-auth-file kubelet-arg kube-proxy-arg protect-kernel-defaults selinux lb-server-port rootless prefer-bundled-bin
    node-internal-dns node-external-dns
    """.split()
)
SERVER_KEYS = frozenset(
    """
    bind-address https-listen-port advertise-address advertise-port tls-san tls-san-security cluster-cidr service-cidr
    service-node-port-range cluster-dns cluster-domain flannel-backend flannel-ipv6-masq flannel-external-ip
    egress-selector-mode servicelb-namespace write-kubeconfig write-kubeconfig-mode write-kubeconfig-group helm-job-image
    agent-token agent-token-file cluster-init cluster-reset cluster-reset-restore-path kube-apiserver-arg etcd-arg
    kube-controller-manager-arg kube-scheduler-arg kube-cloud-controller-manager-arg datastore-endpoint datastore-cafile
    datastore-certfile datastore-keyfile etcd-expose-metrics etcd-disable-snapshots etcd-snapshot-name
    etcd-snapshot-schedule-cron etcd-snapshot-retention etcd-snapshot-dir etcd-snapshot-compress etcd-s3 etcd-s3-endpoint
    etcd-s3-endpoint-ca etcd-s3-skip-ssl-verify etcd-s3-access-key etcd-s3-secret-key etcd-s3-bucket etcd-s3-region
    etcd-s3-folder etcd-s3-insecure etcd-s3-timeout etcd-s3-config-secret default-local-storage-path disable
    disable-scheduler disable-cloud-controller disable-kube-proxy disable-network-policy disable-helm-controller
    embedded-registry supervisor-metrics system-default-registry secrets-encryption enable-pprof disable-apiserver
    disable-controller-manager disable-etcd disable-agent
    """.split()
)
# Keys that the role writes itself, with the variable to set instead.
OWNED_KEYS = {
    "data-dir": "k3s_data_dir",
    "node-name": "k3s_node_name",
    "node-ip": "k3s_node_ip",
    "flannel-iface": "k3s_flannel_iface",
    "token": "k3s_token",
    "token-file": "k3s_token",
    "server": "the k3s_server group",
    "cluster-cidr": "k3s_cluster_cidr",
    "service-cidr": "k3s_service_cidr",
    "write-kubeconfig-mode": "nothing: the kubeconfig is 0600",
    "node-label": "k3s_node_labels",
    "node-taint": "k3s_node_taints",
}

_VERSION = re.compile(r"v(\d+)\.(\d+)\.(\d+)(?:[-+][0-9A-Za-z.+-]+)?")
_TOKEN = re.compile(r"[A-Za-z0-9._:~-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LABEL_NAME = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_LABEL_KEY = re.compile(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_LABEL_NAME}")
_LABEL_VALUE = re.compile(rf"({_LABEL_NAME})?")
_TAINT = re.compile(rf"[^=:]+(=({_LABEL_NAME})?)?:(NoSchedule|PreferNoSchedule|NoExecute)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CLUSTER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
# What `disable` takes.
PACKAGED = ("coredns", "servicelb", "traefik", "local-storage", "metrics-server", "runtimes")
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


def config_findings(config: Any, server: bool, allowed: Iterable[str] = ()) -> list[Finding]:
    """What is wrong with the keys of C(k3s_config) for a server or an agent. A C(+) at a key's end (append) is k3s's own."""
    if not isinstance(config, Mapping):
        return [_not_a_mapping("k3s_config", "k3s's long flags to values")]
    known = COMMON_KEYS | (SERVER_KEYS if server else frozenset())
    findings = []
    for key in config:
        name = str(key).removesuffix("+")
        where = f"k3s_config: {key}"
        if name in OWNED_KEYS:
            findings.append(
                _error("k3s_config_owned", f"the role writes {name} itself", f"Use {OWNED_KEYS[name]}.", where)
            )
        elif name in known or name in allowed:
            continue
        elif name in SERVER_KEYS:
            findings.append(
                _error(
                    "k3s_config_server_key",
                    f"{name} is a server's key; an agent skips it in silence",
                    "Set it in the group vars of k3s_server.",
                    where,
                )
            )
        else:
            nearest = difflib.get_close_matches(name, sorted(COMMON_KEYS | SERVER_KEYS), n=1, cutoff=0.6)
            hint = f"Did you mean {nearest[0]}? " if nearest else ""
            findings.append(
                _error(
                    "k3s_config_unknown",
                    f"k3s has no key {name} and would skip it in silence",
                    f"{hint}A key that a newer k3s has goes into k3s_config_allow.",
                    where,
                )
            )
    return findings


def input_findings(given: Mapping[str, Any], server: bool) -> list[Finding]:
    """Everything that is wrong with what the role is given, at once; keys are the role's variables without C(k3s_)."""
    findings = config_findings(given.get("config") or {}, server, given.get("config_allow") or ())
    if not server and not given.get("server"):
        findings.append(
            _error(
                "k3s_no_server",
                "has no host",
                "Put one host into the group k3s_server; agents join it.",
                "group k3s_server",
            )
        )
    elif not server and not given.get("server_in_run", True) and not given.get("server_address"):
        findings.append(
            _error(
                "k3s_server_unknown",
                f"the address of {given['server']} is not known: it is no part of this run, and no earlier run from here has recorded it",
                f"Run without --limit first, or set cluster_address of {given['server']}.",
                "group k3s_server",
            )
        )
    findings += artifact_findings(given.get("artifacts") or ())
    findings += option_findings(given)
    findings += _data_dir_findings(str(given.get("data_dir") or ""))
    findings += _address_findings(str(given.get("node_ip") or ""), str(given.get("flannel_iface") or ""))
    name = str(given.get("node_name") or "")
    if not _NODE_NAME.fullmatch(name):
        findings.append(
            _error(
                "k3s_node_name",
                f"{name!r} is not a Kubernetes node name",
                "Use lower-case letters, digits, '-' and '.'.",
                "k3s_node_name",
            )
        )
    if not _VERSION.fullmatch(str(given.get("version") or "")):
        findings.append(
            _error(
                "k3s_version_form",
                f"{given.get('version')!r} is not a version",
                "Write it as k3s does: v1.36.2+k3s1.",
                "k3s_version",
            )
        )
    for key, required in (("binary_sha256", True), ("airgap_sha256", bool(given.get("airgap_archive")))):
        value = str(given.get(key) or "")
        if (value or required) and not _SHA256.fullmatch(value):
            findings.append(
                _error(
                    "k3s_sha256",
                    f"{value!r} is not a sha256",
                    "Take it from the release's sha256sum-amd64.txt (64 lower-case hex digits).",
                    f"k3s_{key}",
                )
            )
    token = str(given.get("token") or "")
    if token and not _TOKEN.fullmatch(token):
        # The value stays out of the message: it is a secret.
        bad = "white space" if re.search(r"\s", token) else "a character other than letters, digits and . _ : ~ -"
        findings.append(
            _error(
                "k3s_token_characters",
                f"the token holds {bad}, which breaks systemd's and k3s's files",
                "Use letters, digits and . _ : ~ - only.",
                "k3s_token",
            )
        )
    elif token.startswith("K10"):
        findings.append(
            _error(
                "k3s_token_form",
                "is in the secure form (K10...), which the first server refuses",
                "Set the password alone; agents get the secure form from the server.",
                "k3s_token",
            )
        )
    return findings


def file_sha256(path: str) -> str | None:
    """sha256 of a file on this machine in lower-case hex; None where it cannot be read."""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except OSError:
        return None


def option_findings(given: Mapping[str, Any]) -> list[Finding]:
    """Labels, taints, packaged components, CIDRs, registries, environment, timeout: what k3s or systemd would choke on."""
    findings = _label_findings(given.get("node_labels") or {}) + _taint_findings(given.get("node_taints") or [])
    disabled = given.get("disable") or []
    for name in disabled if isinstance(disabled, list) else [disabled]:
        if name not in PACKAGED:
            findings.append(
                _error(
                    "k3s_disable_unknown",
                    f"k3s has no packaged component {name!r}",
                    f"Known are {', '.join(PACKAGED)}.",
                    "k3s_disable",
                )
            )
    for key in ("cluster_cidr", "service_cidr"):
        for network in str(given[key]).split(",") if key in given else []:
            try:
                ipaddress.ip_network(network)
            except ValueError as error:
                findings.append(
                    _error("k3s_cidr", f"is no network: {error}", "Write it like 10.42.0.0/16.", f"k3s_{key}")
                )
    if not isinstance(given.get("registries") or {}, Mapping):
        findings.append(_not_a_mapping("k3s_registries", "what registries.yaml holds"))
    findings += _environment_findings(given.get("environment") or {})
    if not re.fullmatch(r"[1-9][0-9]*", str(given.get("ready_timeout", 300))):
        findings.append(
            _error(
                "k3s_ready_timeout",
                f"{given['ready_timeout']!r} is no number of seconds",
                "Write it like 300.",
                "k3s_ready_timeout",
            )
        )
    name = str(given.get("cluster_name", "cluster"))
    if not _CLUSTER_NAME.fullmatch(name):
        findings.append(
            _error(
                "cluster_name_invalid",
                f"{name!r} cannot be the name of a folder and of a context",
                "Use letters, digits, '.', '_' and '-'.",
                "cluster_name",
            )
        )
    return findings


def _label_findings(labels: Any) -> list[Finding]:
    if not isinstance(labels, Mapping):
        return [_not_a_mapping("k3s_node_labels", "label to value")]
    return [
        _error(
            "k3s_node_label",
            f"{key}={value} is no label (the kubelet would not start)",
            "Use letters, digits, '.', '_' and '-', beginning and ending with a letter or digit.",
            f"k3s_node_labels: {key}",
        )
        for key, value in labels.items()
        if value is None or not _LABEL_KEY.fullmatch(str(key)) or not _LABEL_VALUE.fullmatch(str(value))
    ]


def _taint_findings(taints: Any) -> list[Finding]:
    return [
        _error("k3s_node_taint", f"{taint!r} is no taint", "Write it like key=value:NoSchedule.", "k3s_node_taints")
        for taint in (taints if isinstance(taints, list) else [taints])
        if not _TAINT.fullmatch(str(taint))
    ]


def _environment_findings(environment: Any) -> list[Finding]:
    if not isinstance(environment, Mapping):
        return [_not_a_mapping("k3s_environment", "name to value")]
    # Values stay out of the message: a proxy's URL may hold a password.
    return [
        _error(
            "k3s_environment",
            "systemd would not read this variable",
            "Name it with letters, digits and '_', and give it a value of one line.",
            f"k3s_environment: {name}",
        )
        for name, value in environment.items()
        if value is None or not _VARIABLE.fullmatch(str(name)) or "\n" in str(value)
    ]


def artifact_findings(files: Iterable[Mapping[str, Any]]) -> list[Finding]:
    """Files on the controller against their pins; each is {path, sha256, variable, found}."""
    findings = []
    for file in files:
        path, wanted, variable, found = (file[key] for key in ("path", "sha256", "variable", "found"))
        if found is None:
            findings.append(
                _error(
                    "k3s_artifact_missing",
                    "cannot be read on the controller",
                    "Put it there, or empty k3s_artifacts_dir to download.",
                    path,
                )
            )
        elif found != wanted:
            findings.append(
                _error(
                    "k3s_artifact_digest",
                    f"has sha256 {found}, and {variable} is {wanted or 'not set'}",
                    f"Get the right file, or set {variable} to its published sha256.",
                    path,
                )
            )
    return findings


def node_findings(
    node: Mapping[str, Any], wanted: str, data_dir: str, cidrs: Mapping[str, str] | None = None
) -> list[Finding]:
    """What an installed k3s forbids: another data-dir, other CIDRs (key of config.yaml -> value), a downgrade, a skipped minor version."""
    findings = version_findings(node.get("version") or node.get("installed_version"), wanted, "k3s_version")
    installed = node.get("data_dir")
    if node.get("installed_version") and installed and data_dir and installed.rstrip("/") != data_dir.rstrip("/"):
        findings.append(
            _error(
                "k3s_data_dir_changed",
                f"k3s is installed with data-dir {installed}, and k3s_data_dir is {data_dir}",
                f"Set k3s_data_dir back to {installed}; to move it, reset the node first (playbooks/reset.yml).",
                "k3s_data_dir",
            )
        )
    for key, cidr in (cidrs or {}).items():
        variable, standing = f"k3s_{key.replace('-', '_')}", (node.get("config") or {}).get(key, cidr)
        # A file that somebody broke says nothing of the cluster; the run writes it again.
        if node.get("installed_version") and standing != cidr and _is_cidrs(standing):
            findings.append(
                _error(
                    "k3s_cidr_changed",
                    f"the cluster was made with {standing}, and {variable} is {cidr}",
                    f"Set {variable} back to {standing}; another one needs a new cluster (playbooks/reset.yml on every host).",
                    variable,
                )
            )
    return findings


def _is_cidrs(text: str) -> bool:
    try:
        return bool([ipaddress.ip_network(part.strip()) for part in text.split(",")])
    except ValueError:
        return False


def version_findings(installed: str | None, wanted: str, where: str) -> list[Finding]:
    """Refuse what Kubernetes does not support: a downgrade, or an upgrade that skips a minor version."""
    old, new = _parse(installed), _parse(wanted)
    if old is None or new is None or old == new:
        return []
    if new < old:
        return [
            _error(
                "k3s_downgrade",
                f"runs {installed}, and {wanted} is older",
                f"Set k3s_version to {installed} or newer.",
                where,
            )
        ]
    if new[0] == old[0] and new[1] - old[1] > 1:
        step = f"v{old[0]}.{old[1] + 1}"
        return [
            _error(
                "k3s_version_skip",
                f"runs {installed}; going to {wanted} skips a minor version",
                f"Upgrade to a {step} release first.",
                where,
            )
        ]
    return []


def _parse(version: str | None) -> tuple[int, int, int] | None:
    match = _VERSION.fullmatch(version or "")
    return (int(match.group(1)), int(match.group(2)), int(match.group(3))) if match else None


def _data_dir_findings(path: str) -> list[Finding]:
    if not path:
        return [
            _error(
                "k3s_data_dir_unset",
                "is not set",
                "Set it to a folder on the large disk, such as /data/k3s.",
                "k3s_data_dir",
            )
        ]
    if not path.startswith("/") or "//" in path or any(part in (".", "..") for part in path.split("/")):
        return [
            _error(
                "k3s_data_dir_form",
                f"{path!r} is not a plain absolute path",
                "Write it without '.', '..' and '//'.",
                "k3s_data_dir",
            )
        ]
    if re.search(r"[\s%'\"\\]", path) or path.rstrip("/") == "":
        return [
            _error(
                "k3s_data_dir_form",
                f"{path!r} holds a character that breaks units and scripts, or is /",
                "Use a plain folder such as /data/k3s.",
                "k3s_data_dir",
            )
        ]
    return []


def _address_findings(address: str, interface: str) -> list[Finding]:
    findings = []
    try:
        parsed = ipaddress.ip_address(address)
        if parsed.is_loopback or parsed.is_unspecified or parsed.is_link_local or parsed.is_multicast:
            findings.append(
                _error(
                    "k3s_node_ip",
                    f"{address} cannot be advertised",
                    "Name the address that the other nodes reach.",
                    "cluster_address",
                )
            )
    except ValueError:
        findings.append(
            _error(
                "k3s_node_ip",
                f"{address!r} is not an IP address",
                "Set cluster_address for the host in the inventory.",
                "cluster_address",
            )
        )
    if not re.fullmatch(r"[^\s/]{1,15}", interface):
        findings.append(
            _error(
                "k3s_flannel_iface",
                f"{interface!r} is not an interface name",
                "Set cluster_interface for the host in the inventory.",
                "cluster_interface",
            )
        )
    return findings


def _error(code: str, message: str, fix: str, where: str = "k3s_config") -> Finding:
    return Finding(code, "error", message, fix, where=where)


def _not_a_mapping(variable: str, of: str) -> Finding:
    return _error(
        "k3s_not_a_mapping", "is not a mapping", f"Write it as a mapping of {of}, or as its JSON text.", variable
    )
