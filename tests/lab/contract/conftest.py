# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One server and one agent on two lab nodes that have no k3s, with the binary of the lab: the stand-in or a real one.

tests/lab/enter .venv/bin/pytest tests/lab/contract

LAB_SSH_CONFIG, LAB_K3S_DIR, LAB_IMAGES and LAB_CONTRACT_NODES name other places and nodes than the lab's own.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lab_node import DATA_DIR, TOKEN_FILE, K3s, LabNode, eventually, remove_k3s

_ROOT = Path(__file__).resolve().parents[3]
_STATE = _ROOT / ".lab"


@dataclass(frozen=True)
class Artifacts:
    """The binary under test, its air-gap archive, and the lab's images."""

    binary: Path
    airgap: Path
    images: Path

    def image(self, key: str) -> tuple[str, Path]:
        """(repo:tag@digest, archive) of one of the lab's images."""
        described = json.loads((self.images / "images.json").read_text(encoding="utf-8"))[key]
        return described["name"], self.images / described["archive"]


def _place(variable: str, default: Path) -> Path:
    path = Path(os.environ.get(variable) or default)
    if not path.exists():
        pytest.skip(f"no lab: {path} does not exist ({variable})")
    return path


@pytest.fixture(scope="session")
def artifacts() -> Artifacts:
    """What the lab holds."""
    folder = _place("LAB_K3S_DIR", _STATE / "k3s")
    archives = sorted(folder.glob("k3s-airgap-images-*.tar*"))
    if not (folder / "k3s").exists() or not archives:
        pytest.skip(f"no lab: {folder} holds no k3s with an air-gap archive")
    return Artifacts(folder / "k3s", archives[0], _place("LAB_IMAGES", _STATE / "images"))


@pytest.fixture(scope="session")
def nodes() -> Iterator[list[LabNode]]:
    """Two nodes without a k3s; they are left so."""
    ssh_config = _place("LAB_SSH_CONFIG", _STATE / "ssh_config")
    # Outside of the lab's namespace its addresses would be sent to this machine's network. Not /sys: it shows the machine's.
    if "mgmt0" not in (name for _index, name in socket.if_nameindex()):
        pytest.skip("no lab: not in its network namespace (tests/lab/enter)")
    names = (os.environ.get("LAB_CONTRACT_NODES") or "lab1,lab2").split(",")
    found = [LabNode(name, ssh_config) for name in names]
    for node in found:
        if node.run("true", check=False).returncode:
            pytest.skip(f"no lab: {node.name} does not answer")
        if node.exists("/usr/local/bin/k3s"):
            pytest.skip(f"{node.name} has a k3s already (playbooks/reset.yml takes it away)")
    yield found
    for node in reversed(found):
        remove_k3s(node)


@pytest.fixture(scope="session")
def password() -> str:
    """The cluster's password."""
    return secrets.token_hex(16)


@pytest.fixture(scope="session")
def server(nodes: list[LabNode], artifacts: Artifacts, password: str) -> K3s:
    """A running server, joined by nobody yet."""
    k3s = K3s(nodes[0], "server")
    config: dict[str, Any] = {
        **_common(k3s),
        "disable": ["coredns", "servicelb", "traefik", "local-storage", "metrics-server"],
        "write-kubeconfig-mode": "0600",
        "tls-san": ["k3s.contract.test"],
        "kublet-arg": ["a-misspelt-key"],
    }
    k3s.install(artifacts.binary, artifacts.airgap, config, password)
    k3s.start()
    _wait_ready(k3s, k3s)
    return k3s


@pytest.fixture(scope="session")
def secure_token(server: K3s) -> str:
    """The token that agents join with."""
    return server.node.output(f"cat {DATA_DIR}/server/node-token")


@pytest.fixture(scope="session")
def agent_config(nodes: list[LabNode], server: K3s) -> dict[str, Any]:
    """The agent's configuration."""
    url = f"https://{server.node.address()}:6443"
    return {**_common(K3s(nodes[1], "agent")), "server": url, "disable": "a key of servers only"}


@pytest.fixture(scope="session")
def agent(
    nodes: list[LabNode], server: K3s, artifacts: Artifacts, agent_config: dict[str, Any], secure_token: str
) -> K3s:
    """A running agent."""
    k3s = K3s(nodes[1], "agent")
    k3s.install(artifacts.binary, artifacts.airgap, agent_config, secure_token)
    k3s.start()
    _wait_ready(server, k3s)
    return k3s


@pytest.fixture
def stopped_agent(agent: K3s) -> Iterator[K3s]:
    """The agent, stopped for the time of one test."""
    agent.stop()
    yield agent
    agent.start()


@pytest.fixture(scope="session")
def pod(server: K3s, agent: K3s, artifacts: Artifacts) -> Iterator[str]:
    """A pod on each node that may not pull, pinned to a digest; its name is that of the node."""
    name, archive = artifacts.image("overlay")
    repository, digest = name.split("@")[0].rsplit(":", 1)[0], name.split("@")[1]
    for k3s in (server, agent):
        k3s.node.write("/tmp/contract-image.tar", archive.read_bytes())
        k3s.node.run(
            f"k3s ctr images import --digests --base-name {repository} /tmp/contract-image.tar; rm /tmp/contract-image.tar"
        )
        names = k3s.node.output("k3s ctr images ls -q").split()
        assert f"{repository}@{digest}" in names
        server.kubectl("create -f -", pod_manifest(k3s.node_name, k3s.node_name, name))
    for k3s in (server, agent):
        server.kubectl(f"wait pod/{k3s.node_name} --for=condition=Ready --timeout=60s")
    yield name
    server.kubectl("delete pod --all --wait=false --grace-period=1")


def pod_manifest(name: str, node_name: str, image: str) -> dict[str, Any]:
    """A pod that sleeps on the node and never pulls."""
    container = {
        "name": "sleep",
        "image": image,
        "imagePullPolicy": "Never",
        "command": ["/bin/sh", "-c", "sleep 3600"],
    }
    spec = {
        "nodeName": node_name,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "automountServiceAccountToken": False,
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _common(k3s: K3s) -> dict[str, Any]:
    return {
        "data-dir": DATA_DIR,
        "token-file": TOKEN_FILE,
        "node-name": k3s.node_name,
        "node-ip": k3s.node.address(),
        "flannel-iface": "eth0",
        "node-label": ["contract=kept", f"side={k3s.role}"],
        "kubelet-arg": ["max-pods=77"],
    }


def _wait_ready(server: K3s, k3s: K3s) -> None:
    """Until the API calls the node Ready, and pods can have a service account."""

    def ready() -> bool:
        done = server.node.run(f"k3s kubectl get node {k3s.node_name} -o json", check=False)
        conditions = json.loads(done.stdout)["status"].get("conditions", []) if done.returncode == 0 else []
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    eventually(ready, 120, f"{k3s.node_name} is Ready\n{k3s.journal()[-2000:]}")
    eventually(
        lambda: server.node.run("k3s kubectl get serviceaccount default", check=False).returncode == 0,
        60,
        "a default service account",
    )
