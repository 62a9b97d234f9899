# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What one `k3s server` or `k3s agent` was told: flags, environment and config.yaml, in k3s's order of precedence."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass, field
from pathlib import Path

from . import configfile, flags
from .log import log

DEFAULT_CONFIG = Path("/etc/rancher/k3s/config.yaml")
_ENVIRONMENT = {
    "K3S_CONFIG_FILE": "config",
    "K3S_TOKEN": "token",
    "K3S_TOKEN_FILE": "token-file",
    "K3S_URL": "server",
    "K3S_NODE_NAME": "node-name",
    "K3S_DATA_DIR": "data-dir",
    "K3S_KUBECONFIG_OUTPUT": "write-kubeconfig",
    "K3S_KUBECONFIG_MODE": "write-kubeconfig-mode",
}

Values = dict[str, list[str]]


class UsageError(Exception):
    """The command line, the configuration or a value in it is wrong; the message is k3s's."""


@dataclass(frozen=True)
class Settings:
    """The settings that the stand-in acts upon."""

    role: str
    data_dir: Path
    token: str
    token_file: str
    server: str
    node_name: str
    node_ip: str
    interface: str
    node_labels: tuple[str, ...]
    node_taints: tuple[str, ...]
    pause_image: str
    resolv_conf: str
    tls_sans: tuple[str, ...]
    cluster_cidr: str
    service_cidr: str
    node_port_range: str
    cluster_dns: str
    cluster_domain: str
    kubeconfig: Path
    kubeconfig_mode: int
    extra_arguments: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def kubernetes_service_ip(self) -> str:
        """The cluster IP of the service `kubernetes`: the first of the service CIDR."""
        return str(ipaddress.ip_network(self.service_cidr)[1])

    def arguments_for(self, component: str) -> list[str]:
        """`kubelet-arg` and its like, as flags of the component."""
        return [f"--{argument}" for argument in self.extra_arguments.get(component, ())]


def parse_command_line(role: str, arguments: list[str]) -> Values:
    """Values by flag. Raises UsageError for an unknown flag, as k3s does."""
    known, values, words = flags.known(role), Values(), list(arguments)
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word in ("-", "--"):
            raise UsageError(f"unexpected argument: {word}")
        name, has_value, value = word.lstrip("-").partition("=")
        name = flags.ALIASES.get(name, name)
        if name not in known:
            raise UsageError(f"flag provided but not defined: -{name}")
        if not has_value and name in flags.BOOLEANS:
            value = "true"
        elif not has_value:
            if not words:
                raise UsageError(f"flag needs an argument: -{name}")
            value = words.pop(0)
        _add(values, name, value)
    return values


def values_of_file(role: str, text: str) -> Values:
    """Values by key of a config.yaml; keys that are not flags are skipped with k3s's warning."""
    known, values = flags.known(role), Values()
    for key, value in configfile.parse(text).items():
        if key not in known:
            log("warning", f"Unknown flag --{key} found in config.yaml, skipping\n")
            continue
        for item in value if isinstance(value, list) else [value]:
            _add(values, key, item)
    return values


def load(role: str, arguments: list[str], environment: dict[str, str]) -> Settings:
    """Everything the service was told. Raises UsageError."""
    given = parse_command_line(role, arguments)
    from_environment = {
        flag: [environment[name]]
        for name, flag in _ENVIRONMENT.items()
        if environment.get(name) and flag in flags.known(role)
    }
    named = (given.get("config") or from_environment.get("config") or [""])[-1]
    path = Path(named or DEFAULT_CONFIG)
    # stand-in: no role writes drop-ins; refusing them is better than losing them.
    if list(path.parent.glob("config.yaml.d/*.y*ml")):
        raise UsageError(f"the stand-in does not read {path.parent}/config.yaml.d")
    from_file = Values()
    if named or path.exists():
        try:
            from_file = values_of_file(role, path.read_text(encoding="utf-8"))
        except (OSError, configfile.ConfigError) as error:
            raise UsageError(f"failed to read {path}: {error}") from error
    # k3s puts the file's values in front of the command line's, which therefore win; the environment is only a default.
    values = {**from_environment, **from_file, **given}
    for name in sorted(values.keys() - flags.HONOURED):
        log("warning", f"stand-in: --{name} is accepted and has no effect")
    return from_values(role, values)


def from_values(role: str, values: Values) -> Settings:
    """Settings with k3s's defaults where nothing was said. Raises UsageError for values that do not fit."""

    def last(name: str, default: str = "") -> str:
        return (values.get(name) or [default])[-1]

    def one_network(name: str, default: str) -> str:
        text = last(name, default)
        try:
            return str(ipaddress.IPv4Network(text))
        except ValueError as error:
            raise UsageError(f"invalid {name} {text}: {error}") from error

    service_cidr = one_network("service-cidr", "10.43.0.0/16")
    mode = last("write-kubeconfig-mode", "0600")
    try:
        kubeconfig_mode = int(mode, 8)
    except ValueError as error:
        raise UsageError(f"invalid write-kubeconfig-mode {mode}") from error
    if role == "agent" and not last("server"):
        raise UsageError("--server is required")
    if role == "agent" and not (last("token") or last("token-file")):
        raise UsageError("--token is required")
    if role == "server" and last("server"):
        raise UsageError("the stand-in knows one server: --server is for agents")
    components = ("kubelet", "kube-proxy", "kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler")
    return Settings(
        role=role,
        data_dir=Path(last("data-dir", "/var/lib/rancher/k3s")),
        token=last("token"),
        token_file=last("token-file"),
        server=last("server").rstrip("/"),
        node_name=last("node-name", socket.gethostname()).lower(),
        node_ip=last("node-ip"),
        interface=last("flannel-iface"),
        node_labels=tuple(values.get("node-label", ())),
        node_taints=tuple(values.get("node-taint", ())),
        pause_image=last("pause-image", "docker.io/lab/pause:v1"),
        resolv_conf=last("resolv-conf"),
        tls_sans=tuple(name for value in values.get("tls-san", ()) for name in value.split(",")),
        cluster_cidr=one_network("cluster-cidr", "10.42.0.0/16"),
        service_cidr=service_cidr,
        node_port_range=last("service-node-port-range", "30000-32767"),
        cluster_dns=last("cluster-dns", str(ipaddress.ip_network(service_cidr)[10])),
        cluster_domain=last("cluster-domain", "cluster.local"),
        kubeconfig=Path(last("write-kubeconfig", "/etc/rancher/k3s/k3s.yaml")),
        kubeconfig_mode=kubeconfig_mode,
        extra_arguments={component: tuple(values.get(f"{component}-arg", ())) for component in components},
    )


def _add(values: Values, name: str, value: str) -> None:
    if name in flags.LISTS:
        values.setdefault(name, []).append(value)
    else:
        values[name] = [value]
