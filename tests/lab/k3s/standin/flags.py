# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command-line flags of k3s, which are its configuration keys too. Names from the k3s sources."""

from __future__ import annotations

COMMON = frozenset(
    """
    config debug v vmodule log alsologtostderr data-dir token token-file server node-name with-node-id node-label
    node-taint node-ip node-external-ip image-credential-provider-bin-dir image-credential-provider-config docker
    container-runtime-endpoint default-runtime image-service-endpoint disable-default-registry-endpoint pause-image
    snapshotter private-registry airgap-extra-registry resolv-conf flannel-iface flannel-conf flannel-cni-conf vpn-auth
    vpn-auth-file kubelet-arg kube-proxy-arg protect-kernel-defaults selinux lb-server-port rootless prefer-bundled-bin
    node-internal-dns node-external-dns
    """.split()
)

SERVER_ONLY = frozenset(
    """
    bind-address https-listen-port advertise-address advertise-port tls-san tls-san-security cluster-cidr service-cidr
    service-node-port-range cluster-dns cluster-domain flannel-backend flannel-ipv6-masq flannel-external-ip
    egress-selector-mode servicelb-namespace write-kubeconfig write-kubeconfig-mode write-kubeconfig-group
    helm-job-image agent-token agent-token-file cluster-init cluster-reset cluster-reset-restore-path
    kube-apiserver-arg etcd-arg kube-controller-manager-arg kube-scheduler-arg kube-cloud-controller-manager-arg
    datastore-endpoint datastore-cafile datastore-certfile datastore-keyfile etcd-expose-metrics etcd-disable-snapshots
    etcd-snapshot-name etcd-snapshot-schedule-cron etcd-snapshot-retention etcd-snapshot-dir etcd-snapshot-compress
    etcd-s3 etcd-s3-endpoint etcd-s3-endpoint-ca etcd-s3-skip-ssl-verify etcd-s3-access-key etcd-s3-secret-key
    etcd-s3-bucket etcd-s3-region etcd-s3-folder etcd-s3-insecure etcd-s3-timeout etcd-s3-config-secret
    default-local-storage-path disable disable-scheduler disable-cloud-controller disable-kube-proxy
    disable-network-policy disable-helm-controller embedded-registry supervisor-metrics system-default-registry
    secrets-encryption enable-pprof disable-apiserver disable-controller-manager disable-etcd disable-agent
    """.split()
)

BOOLEANS = frozenset(
    """
    debug alsologtostderr with-node-id docker disable-default-registry-endpoint protect-kernel-defaults selinux rootless
    prefer-bundled-bin tls-san-security flannel-ipv6-masq flannel-external-ip cluster-init cluster-reset
    etcd-expose-metrics etcd-disable-snapshots etcd-snapshot-compress etcd-s3 etcd-s3-skip-ssl-verify etcd-s3-insecure
    disable-scheduler disable-cloud-controller disable-kube-proxy disable-network-policy disable-helm-controller
    embedded-registry supervisor-metrics secrets-encryption enable-pprof disable-apiserver disable-controller-manager
    disable-etcd disable-agent
    """.split()
)

LISTS = frozenset(
    """
    node-label node-taint node-ip node-external-ip kubelet-arg kube-proxy-arg tls-san cluster-cidr service-cidr
    cluster-dns disable kube-apiserver-arg etcd-arg kube-controller-manager-arg kube-scheduler-arg
    kube-cloud-controller-manager-arg node-internal-dns node-external-dns airgap-extra-registry
    """.split()
)

ALIASES = {"c": "config", "d": "data-dir", "t": "token", "s": "server", "i": "node-ip", "o": "write-kubeconfig"}

# stand-in: what it acts upon; the rest is accepted, and the log says that it has no effect.
HONOURED = frozenset(
    """
    config data-dir token token-file server node-name node-label node-taint node-ip flannel-iface pause-image resolv-conf
    kubelet-arg kube-proxy-arg tls-san cluster-cidr service-cidr service-node-port-range cluster-dns cluster-domain disable
    write-kubeconfig write-kubeconfig-mode kube-apiserver-arg etcd-arg kube-controller-manager-arg kube-scheduler-arg
    """.split()
)


def known(role: str) -> frozenset[str]:
    """The flags of `k3s server` or `k3s agent`."""
    return COMMON | SERVER_ONLY if role == "server" else COMMON
