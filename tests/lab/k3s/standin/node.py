# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What runs on every node: containerd, kubelet, kube-proxy and the pod network."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import files, network, runtime
from .api import Api, Unreachable
from .children import Children
from .log import log
from .settings import Settings

BINARIES = Path("/opt/lab/kubernetes")
PASSWORD_FILE = Path("/etc/rancher/node/password")
ROUTE_SECONDS = 1
_NODES = "/api/v1/nodes"
_SECRETS = "/api/v1/namespaces/kube-system/secrets"


def start_runtime(children: Children, settings: Settings) -> None:
    """The part that needs no server: containerd and the air-gap images."""
    runtime.start(children, settings)
    runtime.import_archives(children, settings)


def start_kubelet(children: Children, settings: Settings, cluster: dict[str, str], url: str, token: str) -> None:
    """Write the node's credentials and start the kubelet, which keeps trying until the server answers.

    `cluster` is what the server publishes, `url` the API as this node reaches it.
    """
    agent = settings.data_dir / "agent"
    for name in ("server-ca", "client-ca"):
        files.write(agent / f"{name}.crt", cluster[name], 0o644)
    for name in ("kubelet", "kubeproxy"):
        files.write_json(
            agent / f"{name}.kubeconfig", files.kubeconfig(url, cluster["server-ca"].encode(), {"token": token})
        )
    _start_kubelet(children, settings, cluster)


def join(
    children: Children, settings: Settings, api: Api, cluster: dict[str, str], poll: Callable[[], None] | None = None
) -> None:
    """Return when the node is registered, and its pod network is set up."""
    bridge_is_filtered = network.prepare_kernel(cluster["cluster-cidr"])

    def pod_cidr() -> str:
        if poll:
            poll()
        node: dict[str, Any] = api.get(f"{_NODES}/{settings.node_name}") or {}
        return node.get("spec", {}).get("podCIDR", "")

    # A node that rejoins is known to the API before its kubelet works.
    children.wait_for("kubelet", _kubelet_healthy)
    children.wait_for(f"node {settings.node_name}", lambda: bool(pod_cidr()))
    files.write_json(
        settings.data_dir / "agent/etc/cni/net.d/10-flannel.conflist", network.cni_configuration(pod_cidr()), 0o644
    )
    _start_kube_proxy(children, settings, cluster, masquerade_all=not bridge_is_filtered)


def keep_routes(children: Children, settings: Settings, api: Api, poll: Callable[[], None] | None = None) -> None:
    """Follow the other nodes until the service is stopped or a component dies."""
    while True:
        if poll:
            poll()
        nodes = api.get(_NODES)
        if nodes:
            network.apply_routes(nodes["items"], settings.node_name, settings.interface)
        children.pause(ROUTE_SECONDS)


def assign_pod_cidrs(api: Api, cluster_cidr: str) -> None:
    """Give every new node its pod CIDR (the server's work)."""
    nodes = api.get(_NODES)
    for name, cidr in network.missing_pod_cidrs(nodes["items"] if nodes else [], cluster_cidr).items():
        with contextlib.suppress(Unreachable):
            status, _answer = api.call("PATCH", f"{_NODES}/{name}", {"spec": {"podCIDR": cidr, "podCIDRs": [cidr]}})
            log("info", f"Set node {name} PodCIDR to {cidr}: {status}")


def password_accepted(api: Api, name: str) -> bool:
    """k3s's guard against a second host with the same name: the first to come leaves a hash of its password.

    # stand-in: the server does this in k3s, with scrypt.
    """
    if not PASSWORD_FILE.exists():
        files.write(PASSWORD_FILE, secrets.token_hex(16) + "\n")
    digest = hashlib.sha256(PASSWORD_FILE.read_bytes()).hexdigest()
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}.node-password.k3s"},
        "stringData": {"hash": digest},
    }
    try:
        status, answer = api.call("POST", _SECRETS, secret)
        if status == 409:
            status, answer = api.call("GET", f"{_SECRETS}/{name}.node-password.k3s")
    except Unreachable as error:
        log("info", f"Waiting to retrieve agent configuration; server is not ready: {error}")
        return False
    if status == 201:
        return True
    if status != 200:
        log("info", f"Waiting to retrieve agent configuration; server is not ready: {status} {answer}")
        return False
    import base64

    if base64.b64decode(answer["data"]["hash"]).decode() == digest:
        return True
    log(
        "info",
        "Waiting to retrieve agent configuration; server is not ready: Node password rejected, duplicate hostname or contents of "
        f"'{PASSWORD_FILE}' may not match server node-passwd entry, try enabling a unique node name with the --with-node-id flag",
    )
    return False


def kubelet_configuration(settings: Settings, cluster: dict[str, str]) -> dict[str, Any]:
    """The kubelet's configuration file."""
    agent = settings.data_dir / "agent"
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(agent / "client-ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "clusterDNS": [cluster["cluster-dns"]],
        "clusterDomain": cluster["cluster-domain"],
        # The lab's disks and memory are small, and shared with other work.
        "evictionHard": {
            "memory.available": "50Mi",
            "nodefs.available": "1%",
            "nodefs.inodesFree": "1%",
            "imagefs.available": "1%",
        },
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 98,
        "imageGCLowThresholdPercent": 97,
        # No CAP_SYS_RESOURCE in the lab: a lower score cannot be set.
        "oomScoreAdj": 0,
        # Ready seconds earlier than with the default of 10 s.
        "nodeStatusUpdateFrequency": "2s",
        "resolvConf": settings.resolv_conf or str(_resolv_conf(agent)),
        "staticPodPath": str(files.folder(agent / "pod-manifests")),
        "serializeImagePulls": False,
    }


def _resolv_conf(agent: Path) -> Path:
    """The node's, if it names a server; k3s then writes one of its own. # stand-in: without a server in it."""
    system = Path("/etc/resolv.conf")
    if system.exists() and "nameserver" in system.read_text(errors="replace"):
        return system
    own = agent / "etc/resolv.conf"
    files.write(own, "", 0o644)
    return own


def _start_kubelet(children: Children, settings: Settings, cluster: dict[str, str]) -> None:
    agent = settings.data_dir / "agent"
    configuration = agent / "etc/kubelet.json"
    files.write_json(configuration, kubelet_configuration(settings, cluster))
    children.start(
        "kubelet",
        [
            str(BINARIES / "kubelet"),
            f"--config={configuration}",
            f"--kubeconfig={agent / 'kubelet.kubeconfig'}",
            "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{runtime.SOCKET}",
            # For cAdvisor, which else waits 5 s for Debian's containerd.
            f"--containerd={runtime.SOCKET}",
            f"--hostname-override={settings.node_name}",
            # So that the image of every sandbox is not collected when the disk fills; newer containerds pin it themselves.
            f"--pod-infra-container-image={settings.pause_image}",
            f"--node-ip={settings.node_ip}",
            f"--node-labels={','.join(settings.node_labels)}",
            f"--register-with-taints={','.join(settings.node_taints)}",
            *settings.arguments_for("kubelet"),
        ],
        # The kubelet's registry credential provider else asks 169.254.169.254, which takes seconds and has no place in a lab.
        environment={"AWS_EC2_METADATA_DISABLED": "true"},
    )


def _kubelet_healthy() -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", 10248, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _start_kube_proxy(children: Children, settings: Settings, cluster: dict[str, str], masquerade_all: bool) -> None:
    children.start(
        "kube-proxy",
        [
            str(BINARIES / "kube-proxy"),
            f"--kubeconfig={settings.data_dir / 'agent/kubeproxy.kubeconfig'}",
            f"--cluster-cidr={cluster['cluster-cidr']}",
            f"--hostname-override={settings.node_name}",
            "--proxy-mode=iptables",
            f"--masquerade-all={str(masquerade_all).lower()}",
            "--healthz-bind-address=127.0.0.1",
            "--metrics-bind-address=127.0.0.1",
            "--oom-score-adj=0",
            # These are the machine's in the lab, not the node's: leave them alone.
            "--conntrack-max-per-core=0",
            "--conntrack-tcp-timeout-established=0",
            "--conntrack-tcp-timeout-close-wait=0",
            *settings.arguments_for("kube-proxy"),
        ],
    )
