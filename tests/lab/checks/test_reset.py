# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reset takes nodes back to what they were before the collection came, and nothing that is somebody else's."""

from __future__ import annotations

from lab_places import ARTIFACTS
from lab_site import Site

THEIRS = (
    "/mnt/data/theirs/keep",
    "/etc/rancher/theirs.yaml",
    "/etc/systemd/system/theirs.service",
    "/usr/local/bin/theirs",
)

# The node's password: a node that rejoins a cluster with another one is refused (roles/reset/README.md).
STAYS = {"/etc/rancher d", "/etc/rancher/node d", "/etc/rancher/node/password f"}


def test_reset_needs_the_cluster_s_name(site: Site) -> None:
    site.standing()
    for node in site.nodes.values():
        node.mark()
    message = site.play("reset.yml").refused()
    assert [word for word in ("reset_confirm", "lab", "Fix:") if word not in message] == [], message
    for node in site.nodes.values():
        assert node.run("systemctl is-active k3s k3s-agent; true").split().count("active") == 1


def test_reset_nodes_are_fresh(site: Site) -> None:
    site.standing()
    site.spoiled()
    for node in site.nodes.values():
        for path in THEIRS:
            node.run(f"mkdir -p $(dirname {path}) && echo theirs > {path}")
    site.play("reset.yml", variables={"reset_confirm": "lab"}).succeeded()

    for node in site.nodes.values():
        assert [path for path in THEIRS if node.run(f"cat {path}; true") != "theirs\n"] == [], node.name
        node.run(f"rm -rf {' '.join(THEIRS)} /mnt/data/theirs")
        before, after = set(site.fresh_files[node.name]), set(node.inventory_of_files())
        assert (before - after, after - before) == (set(), STAYS), node.name
        assert _traces(node) == [], node.name
    assert not (ARTIFACTS / "kubeconfig").exists()

    site.play("preflight.yml").unchanged()
    site.play("reset.yml", variables={"reset_confirm": "lab"}).unchanged()
    site.was_reset()


def _traces(node) -> list[str]:
    """Processes, mounts, links, rules and users that k3s left."""
    return node.lines(
        "pgrep -af 'k3s|kube|containerd|etcd|lab-device-plugin|infera' | grep -v pgrep;"
        " grep -E 'k3s|kubelet|containerd' /proc/mounts;"
        " ip -o link | grep -oE '(cni0|flannel[^:]*|veth[^:@]*)';"
        " iptables-save 2>/dev/null | grep -E 'KUBE-|CNI-|FLANNEL' | head;"
        " ip route | grep -E '10\\.42\\.';"
        " ls -d /var/lib/kubelet /var/lib/rancher /run/k3s /var/log/pods /var/lib/cni /etc/cni 2>/dev/null; true"
    )
