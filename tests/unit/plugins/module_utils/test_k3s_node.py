# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import hashlib
import json

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import k3s_node
from ansible_collections.infera.baremetal.plugins.module_utils.k3s_node import (
    Target,
    differing,
    parse_node,
    wait_until_settled,
)

SERVER = Target(unit="k3s", name="gpu1", data_dir="/data/k3s", version="v1.36.2+k3s1", address="10.1.0.1")


def node(ready="True", version="v1.36.2+k3s1", address="10.1.0.1"):
    return json.dumps(
        {
            "status": {
                "conditions": [
                    {"type": "MemoryPressure", "status": "False"},
                    {"type": "Ready", "status": ready, "message": "container runtime network not ready"},
                ],
                "addresses": [{"type": "Hostname", "address": "gpu1"}, {"type": "InternalIP", "address": address}],
                "nodeInfo": {"kubeletVersion": version},
            }
        }
    )


class Host:
    """A scripted host: what its programs print. It stands for systemd, the journal and k3s; no process is started."""

    def __init__(self, answers, log="", state="active", crashing=False):
        self.answers, self.log, self.state, self.crashing = list(answers), log, state, crashing
        self.commands = []
        self.now = 0.0

    def run(self, command):
        self.commands.append(command)
        if command[0] == "env":
            return (
                0,
                f"LoadState=loaded\nActiveState={self.state}\nMainPID=1\nExecMainStartTimestamp=Mon 2026-11-30 20:11:37 UTC\n"
                f"NRestarts={7 + int(self.now / 2) if self.crashing else 0}\n",
            )
        if command[0] == "journalctl":
            return 0, self.log
        if "get" in command:
            text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            return (0, text) if text.startswith("{") else (1, text)
        return 0, "k3s version v1.36.2+k3s1 (abc)\n"

    def sleep(self, seconds):
        self.now += seconds

    def wait(self, target, seconds=10):
        return wait_until_settled(target, seconds, self.run, lambda: self.now, self.sleep)


def test_reads_ready_version_and_address_of_a_node():
    assert parse_node(node()) == (True, "v1.36.2+k3s1", "10.1.0.1", "container runtime network not ready")


@pytest.mark.parametrize("text", ["", "[]", "{}", "not json", '{"status": null}'])
def test_an_answer_that_is_no_node_is_no_traceback(text):
    assert parse_node(text)[0] in (None, False)


def test_waits_until_the_node_is_ready_at_the_new_version():
    host = Host(["connection refused", node(ready="False"), node(version="v1.35.0+k3s1"), node()])

    found, findings = host.wait(SERVER)

    assert findings == []
    assert found.version == "v1.36.2+k3s1"
    assert host.now == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (
            'level=error msg="Node password rejected, duplicate hostname or contents of /etc/rancher/node/password"',
            "k3s_node_password",
        ),
        ("token CA hash does not match the Cluster CA certificate hash: aa != bb", "k3s_token_ca"),
        ('level=fatal msg="flag provided but not defined: -kublet-arg"', "k3s_flag_unknown"),
        ('failed to find interface with specified node ip: "eth9"', "k3s_interface_missing"),
        ("listen tcp 0.0.0.0:6443: bind: address already in use", "k3s_port_taken"),
        ("write /data/k3s/x: no space left on device", "k3s_disk_full"),
    ],
)
def test_the_log_names_the_cause(log, code):
    host = Host(["Error from server"], log=f"starting\n{log}\n", state="activating", crashing=True)

    _found, findings = host.wait(SERVER)

    assert findings[0].code == code
    assert findings[0].where == "gpu1"
    assert host.now == 6.0, "a service that failed three times more for a known cause is not waited for"


def test_what_was_said_before_this_start_is_no_cause():
    host = Host(["refused"], log="token is not valid\n", state="activating", crashing=True)

    host.wait(SERVER, seconds=8)

    # date -u -d '2026-11-30 20:11:37' +%s
    journal = [command for command in host.commands if command[0] == "journalctl"]
    assert journal and all("@1796069497" in command for command in journal)


def test_a_server_that_misses_its_own_api_is_not_told_to_open_a_port():
    host = Host(
        ["refused"], log="dial tcp [::1]:6443: connect: connection refused\n", state="activating", crashing=True
    )

    _found, findings = host.wait(SERVER, seconds=1)

    assert [finding.code for finding in findings] == ["k3s_not_ready"]


def test_the_wrong_address_is_named_after_the_wait():
    _found, findings = Host([node(address="203.0.114.11")]).wait(SERVER)

    assert [finding.code for finding in findings] == ["k3s_address"]
    assert "203.0.114.11, not 10.1.0.1" in findings[0].message


def test_an_unknown_cause_shows_the_last_lines_of_the_log():
    _found, findings = Host([node(ready="False")], log="one\ntwo\n").wait(SERVER)

    assert [finding.code for finding in findings] == ["k3s_not_ready"]
    assert "container runtime network not ready" in findings[0].message
    assert findings[0].why == "one | two"


def test_an_agent_whose_server_refuses_the_connection_says_so():
    # Port 1 of loopback: nothing listens there.
    agent = Target(unit="k3s-agent", name="gpu2", data_dir="/data/k3s", server_url="https://127.0.0.1:1")

    _found, findings = Host(["no kubeconfig"]).wait(agent)

    assert findings[0].code == "k3s_server_unreachable"
    assert "127.0.0.1:1" in findings[0].message


def test_files_that_are_missing_or_of_another_content_differ_and_so_does_a_binary_that_cannot_be_run(
    tmp_path, monkeypatch
):
    binary, archive = tmp_path / "k3s", tmp_path / "images.tar"
    binary.write_bytes(b"elf")
    binary.chmod(0o755)
    archive.write_bytes(b"old")
    monkeypatch.setattr(k3s_node, "BINARY", str(binary))
    good = hashlib.sha256(b"elf").hexdigest()
    wanted = [(str(binary), good), (str(archive), good), (str(tmp_path / "none"), good)]

    assert differing(wanted) == [str(archive), str(tmp_path / "none")]
    binary.chmod(0o644)
    assert str(binary) in differing(wanted)


def test_what_a_standing_cluster_was_made_with_is_read_from_its_config(tmp_path, monkeypatch):
    config = tmp_path / "config.yaml"
    config.write_text("# ours\ndata-dir: /data/k3s\nnode-name: data-dir\ncluster-cidr: '10.42.0.0/16'\n")
    monkeypatch.setattr(k3s_node, "CONFIG", str(config))

    node = k3s_node.to_dict(k3s_node.read_node(SERVER, lambda command: (1, "")))

    assert node["config"] == {"data-dir": "/data/k3s", "cluster-cidr": "10.42.0.0/16"}
    assert node["data_dir"] == "/data/k3s"
