# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""`k3s server`: etcd, the API server, the controllers and the scheduler; then the node beside them."""

from __future__ import annotations

import base64
import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import certificates, files, node, tokens
from .api import Api, Unreachable
from .children import Children
from .log import log
from .notify import notify_ready
from .settings import Settings

PORT = 6443
LOCAL_URL = f"https://127.0.0.1:{PORT}"
CLUSTER_INFO = "k3s-cluster-info"
_ETCD = "http://127.0.0.1:2379"
_KUBE_PUBLIC = "/api/v1/namespaces/kube-public"
_RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/kube-public"


@dataclass(frozen=True)
class Identity:
    """The cluster's secrets, as files below `$D/server` and the password among them."""

    server_ca: certificates.Authority
    client_ca: certificates.Authority
    service_account_key: Path
    password: str


def run(children: Children, settings: Settings) -> None:
    """Run until stopped. Raises tokens.TokenError, ChildDied, Stopped."""
    identity = prepare(settings)
    token = identity.password
    _start_control_plane(children, settings, identity)
    node.start_runtime(children, settings)
    # Before there is an API: the kubelet takes six seconds to its first call.
    cluster = cluster_information(settings, identity)
    node.start_kubelet(children, settings, cluster, LOCAL_URL, token)
    api = Api(LOCAL_URL, identity.server_ca.pem, token)
    children.wait_for("Kube API server", api.ready)
    _start_controllers(children, settings, identity, token)
    children.wait_for("cluster information published", lambda: _publish(api, cluster))
    _write_admin_kubeconfig(settings, identity)
    log("info", "k3s is up and running")
    notify_ready()
    children.wait_for("node password", lambda: node.password_accepted(api, settings.node_name))

    def assign() -> None:
        node.assign_pod_cidrs(api, settings.cluster_cidr)

    node.join(children, settings, api, cluster, assign)
    node.keep_routes(children, settings, api, assign)


def prepare(settings: Settings) -> Identity:
    """Certificates and token files below `$D/server`."""
    server = files.folder(settings.data_dir / "server", 0o700)
    tls = files.folder(server / "tls", 0o700)
    server_ca, client_ca = certificates.Authority(tls, "server-ca"), certificates.Authority(tls, "client-ca")
    token_file = server / "token"
    stored = token_file.read_text(encoding="utf-8") if token_file.exists() else ""
    password = tokens.server_password(given_token(settings), stored, server_ca.pem)
    files.write(token_file, tokens.secure_form(password, server_ca.pem) + "\n")
    node_token = server / "node-token"
    if not node_token.is_symlink():
        node_token.symlink_to(token_file)
    return Identity(server_ca, client_ca, certificates.service_account_key(tls), password)


def given_token(settings: Settings) -> str:
    """The token of the file or the flag; empty when neither is given. Raises tokens.TokenError."""
    if not settings.token_file:
        return settings.token
    try:
        return Path(settings.token_file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise tokens.TokenError(f"failed to read token-file {settings.token_file}: {error.strerror}") from error


def _start_control_plane(children: Children, settings: Settings, identity: Identity) -> None:
    server = settings.data_dir / "server"
    files.folder(server / "db/etcd", 0o700)
    children.start(
        "etcd",
        [
            "etcd",
            f"--data-dir={server / 'db/etcd'}",
            f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}",
            "--listen-peer-urls=http://127.0.0.1:2380",
            "--logger=zap",
            "--log-level=error",
            *settings.arguments_for("etcd"),
        ],
    )
    # stand-in: in k3s the token is the supervisor's and components have certificates; here it makes its bearer an administrator.
    row = io.StringIO()
    csv.writer(row).writerow([identity.password, "k3s-stand-in:node", "k3s-stand-in", "system:masters"])
    files.write(server / "cred/tokens.csv", row.getvalue())
    names = (
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{settings.cluster_domain}",
        "localhost",
        settings.node_name,
        "127.0.0.1",
        settings.kubernetes_service_ip,
        settings.node_ip,
        *settings.tls_sans,
    )
    certificate, key = identity.server_ca.issue(
        "serving-kube-apiserver", "/CN=kube-apiserver", "serverAuth", certificates.subject_alt_names(names)
    )
    to_kubelet, to_kubelet_key = identity.client_ca.issue(
        "client-kube-apiserver", "/O=system:masters/CN=kube-apiserver", "clientAuth"
    )
    children.start(
        "kube-apiserver",
        [
            str(node.BINARIES / "kube-apiserver"),
            f"--etcd-servers={_ETCD}",
            "--bind-address=0.0.0.0",
            f"--secure-port={PORT}",
            f"--advertise-address={settings.node_ip}",
            f"--tls-cert-file={certificate}",
            f"--tls-private-key-file={key}",
            f"--client-ca-file={identity.client_ca.certificate}",
            f"--token-auth-file={server / 'cred/tokens.csv'}",
            f"--kubelet-client-certificate={to_kubelet}",
            f"--kubelet-client-key={to_kubelet_key}",
            "--kubelet-preferred-address-types=InternalIP,Hostname",
            f"--service-cluster-ip-range={settings.service_cidr}",
            f"--service-node-port-range={settings.node_port_range}",
            f"--service-account-issuer=https://kubernetes.default.svc.{settings.cluster_domain}",
            f"--service-account-key-file={identity.service_account_key}",
            f"--service-account-signing-key-file={identity.service_account_key}",
            "--authorization-mode=Node,RBAC",
            "--allow-privileged=true",
            "--profiling=false",
            *settings.arguments_for("kube-apiserver"),
        ],
    )


def _start_controllers(children: Children, settings: Settings, identity: Identity, token: str) -> None:
    server = settings.data_dir / "server"
    kubeconfig = server / "cred/controllers.kubeconfig"
    files.write_json(kubeconfig, files.kubeconfig(LOCAL_URL, identity.server_ca.pem, {"token": token}))
    common = [
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--port=0",
        "--profiling=false",
    ]
    children.start(
        "kube-controller-manager",
        [
            str(node.BINARIES / "kube-controller-manager"),
            *common,
            f"--service-account-private-key-file={identity.service_account_key}",
            f"--root-ca-file={identity.server_ca.certificate}",
            *settings.arguments_for("kube-controller-manager"),
        ],
    )
    children.start(
        "kube-scheduler", [str(node.BINARIES / "kube-scheduler"), *common, *settings.arguments_for("kube-scheduler")]
    )


def cluster_information(settings: Settings, identity: Identity) -> dict[str, str]:
    """What an agent has to know, all of it public."""
    return {
        "server-ca": identity.server_ca.pem.decode(),
        "client-ca": identity.client_ca.pem.decode(),
        "cluster-cidr": settings.cluster_cidr,
        "cluster-dns": settings.cluster_dns,
        "cluster-domain": settings.cluster_domain,
    }


def _publish(api: Api, cluster: dict[str, str]) -> bool:
    """Let everybody read the cluster information. # stand-in: k3s's supervisor serves it as /cacerts and /v1-k3s/config."""
    metadata = {"name": CLUSTER_INFO, "namespace": "kube-public"}
    rbac: dict[str, Any] = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [CLUSTER_INFO], "verbs": ["get"]}
    everybody = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "system:anonymous"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": CLUSTER_INFO}
    try:
        return (
            api.put(
                f"{_KUBE_PUBLIC}/configmaps",
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": cluster},
            )
            and api.put(f"{_RBAC}/roles", {**rbac, "kind": "Role", "rules": [rule]})
            and api.put(
                f"{_RBAC}/rolebindings", {**rbac, "kind": "RoleBinding", "subjects": [everybody], "roleRef": role}
            )
        )
    except Unreachable as error:
        log("info", str(error))
        return False


def _write_admin_kubeconfig(settings: Settings, identity: Identity) -> None:
    certificate, key = identity.client_ca.issue("client-admin", "/O=system:masters/CN=system:admin", "clientAuth")
    encoded = {
        name: base64.b64encode(path.read_bytes()).decode()
        for name, path in (("certificate", certificate), ("key", key))
    }
    user = {f"client-{name}-data": text for name, text in encoded.items()}
    files.write_json(
        settings.kubeconfig, files.kubeconfig(LOCAL_URL, identity.server_ca.pem, user), settings.kubeconfig_mode
    )
