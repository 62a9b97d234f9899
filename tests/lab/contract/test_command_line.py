# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The command line: what it says, what it refuses, what it skips."""

from __future__ import annotations

import re

import pytest


def test_the_version_line(server):
    assert re.match(r"k3s version v\d+\.\d+\.\d+\S*( \(.+\))?$", server.node.output("k3s --version").splitlines()[0])


def test_the_kubelet_reports_the_version_of_the_binary(server, agent):
    version = server.node.output("k3s --version").split()[2]

    reported = {
        item["metadata"]["name"]: item["status"]["nodeInfo"]["kubeletVersion"] for item in server.get("nodes")["items"]
    }

    assert reported == {server.node_name: version, agent.node_name: version}


@pytest.mark.parametrize("role", ["server", "agent"])
def test_an_unknown_flag_is_fatal(server, role):
    done = server.node.run(f"timeout 20 k3s {role} --kublet-arg=x", check=False)

    assert done.returncode not in (0, 124)
    assert "flag provided but not defined: -kublet-arg" in done.stdout + done.stderr


def test_an_unknown_key_is_skipped_with_a_warning(server):
    assert "Unknown flag --kublet-arg found in config.yaml, skipping" in server.journal()


def test_a_servers_key_is_skipped_by_an_agent(agent):
    assert "Unknown flag --disable found in config.yaml, skipping" in agent.journal()


def test_ctr_finds_k3s_containerd_and_its_namespace(server):
    assert server.node.run("test -S /run/k3s/containerd/containerd.sock", check=False).returncode == 0
    explicit = server.node.output(
        "k3s ctr --address /run/k3s/containerd/containerd.sock --namespace k8s.io images ls -q"
    )
    assert explicit
    assert server.node.output("k3s ctr images ls -q") == explicit


def test_kubectl_finds_its_kubeconfig(server):
    assert server.kubectl("get --raw /readyz").strip() == "ok"
