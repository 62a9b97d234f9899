# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where things are, and who may read them."""

from __future__ import annotations

import hashlib
import json

import pytest
from lab_node import DATA_DIR


@pytest.mark.parametrize(
    "path",
    ["server/token", "server/tls", "server/db", "agent/images", "agent/containerd", "agent/etc/containerd", "data"],
)
def test_the_data_dir_of_a_server(server, path):
    assert server.node.exists(f"{DATA_DIR}/{path}")


@pytest.mark.parametrize(
    "path", ["agent/images", "agent/containerd", "agent/etc/containerd", "agent/kubelet.kubeconfig", "data"]
)
def test_the_data_dir_of_an_agent(agent, path):
    assert agent.node.exists(f"{DATA_DIR}/{path}")


@pytest.mark.parametrize("path", ["/var/lib/kubelet", "/run/k3s/containerd", "/etc/rancher/node/password"])
def test_what_does_not_move_with_the_data_dir(server, agent, path):
    assert server.node.exists(path)
    assert agent.node.exists(path)


def test_the_default_data_dir_does_not_come_into_being(server, agent):
    server.node.run("k3s ctr version; k3s kubectl version --client")
    for k3s in (server, agent):
        assert not k3s.node.exists("/var/lib/rancher/k3s")


def test_the_token_is_in_secure_form_and_names_the_ca(server, password):
    ca_pem = server.node.run(f"cat {DATA_DIR}/server/tls/server-ca.crt").stdout.encode()

    token = server.node.output(f"cat {DATA_DIR}/server/token")

    assert token == f"K10{hashlib.sha256(ca_pem).hexdigest()}::server:{password}"


def test_node_token_is_a_link_to_the_token(server):
    assert server.node.output(f"readlink -f {DATA_DIR}/server/node-token") == f"{DATA_DIR}/server/token"


@pytest.mark.parametrize(
    "path", [f"{DATA_DIR}/server/token", "/etc/rancher/k3s/k3s.yaml", "/etc/rancher/node/password"]
)
def test_secrets_are_roots_alone(server, path):
    assert server.node.mode(path) == "600"


def test_the_agents_credentials_are_roots_alone(agent):
    assert agent.node.mode(f"{DATA_DIR}/agent/kubelet.kubeconfig") == "600"


def test_the_kubeconfig_points_at_the_node_itself(server):
    config = json.loads(server.node.output("k3s kubectl config view -o json"))

    assert [cluster["cluster"]["server"] for cluster in config["clusters"]] == ["https://127.0.0.1:6443"]


def test_the_password_is_in_no_argument_and_in_no_log(server, agent, password):
    for k3s in (server, agent):
        assert password not in k3s.node.output("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        assert password not in k3s.journal()
