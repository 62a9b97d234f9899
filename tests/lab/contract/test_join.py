# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Joining: only the right agent joins the right server, and the log names what is wrong."""

from __future__ import annotations

import json

import pytest
from lab_node import DATA_DIR, eventually

_PLACE = "/etc/rancher/k3s/contract-wrong"


def _said(agent, config, token, text, seconds=20):
    """Run an agent in the foreground until it says the text, or the time is over; what it said, and whether it ended well."""
    agent.node.write(f"{_PLACE}/token", token)
    agent.node.write(f"{_PLACE}/config.yaml", json.dumps({**config, "token-file": f"{_PLACE}/token"}))
    command = f"timeout {seconds} k3s agent --config {_PLACE}/config.yaml > {_PLACE}/log 2>&1 & while kill -0 $! 2>/dev/null && ! grep -q '{text}' {_PLACE}/log"
    done = agent.node.run(
        f"{command}; do sleep 0.2; done; kill $! 2>/dev/null; wait $!; cat {_PLACE}/log; rm -r {_PLACE}", check=False
    )
    return done.stdout


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param(
            lambda token: token[:-4] + "0000", "401 Unauthorized\\|Unauthorized\\|not authorized", id="password"
        ),
        pytest.param(
            lambda token: "K10" + "0" * 64 + token[67:],
            "token CA hash does not match the Cluster CA certificate hash",
            id="ca",
        ),
    ],
)
def test_a_wrong_token_is_refused_and_named(stopped_agent, agent_config, secure_token, change, text):
    said = _said(stopped_agent, agent_config, change(secure_token), text)

    assert any(word in said for word in text.split("\\|")), said
    assert "up and running" not in said
    assert secure_token.rsplit(":", 1)[1] not in said


def test_an_unreachable_server_is_named(stopped_agent, agent_config, secure_token):
    config = {**agent_config, "server": agent_config["server"].replace(":6443", ":6449")}

    said = _said(stopped_agent, config, secure_token, "failed to get CA certs")

    assert "failed to get CA certs" in said


def test_an_agent_without_a_token_ends(server):
    done = server.node.run("timeout 20 k3s agent --config /dev/null --server https://127.0.0.1:6443", check=False)

    assert done.returncode not in (0, 124)
    assert "--token is required" in done.stdout + done.stderr


def test_another_node_of_the_same_name_is_refused(stopped_agent, agent_config, secure_token):
    stopped_agent.node.run(
        "cp -p /etc/rancher/node/password /root/contract-password; echo another > /etc/rancher/node/password"
    )

    said = _said(stopped_agent, agent_config, secure_token, "Node password rejected")

    stopped_agent.node.run("mv /root/contract-password /etc/rancher/node/password")
    assert "Node password rejected" in said


def test_a_server_refuses_another_token_than_its_data_was_made_with(server, agent):
    config = json.loads(server.node.output("cat /etc/rancher/k3s/config.yaml"))
    server.node.write(f"{_PLACE}/token", "another-token")
    server.node.write(f"{_PLACE}/config.yaml", json.dumps({**config, "token-file": f"{_PLACE}/token"}))
    server.stop()

    done = server.node.run(
        f"timeout 60 k3s server --config {_PLACE}/config.yaml; echo ended $?; rm -r {_PLACE}", check=False
    )

    server.start()
    assert "ended 1" in done.stdout
    assert "encrypted with different token" in done.stdout + done.stderr
    assert server.node.mode(f"{DATA_DIR}/server/token") == "600"
    eventually(lambda: "Ready" in server.kubectl("get nodes"), 60, "the server is back")
