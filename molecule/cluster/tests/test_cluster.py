# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the API and the router say after the whole run: GPUs, places, and an answer whose KV cache crossed a rail."""

from __future__ import annotations

import ipaddress
import json
import os
import stat
import sys
from pathlib import Path

import pytest
import testinfra

ROOT = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"])
ARTIFACTS = ROOT / "artifacts/lab"
PROMPT = "Which rail did it take?"


@pytest.fixture(scope="module", name="controller")
def _controller():
    return testinfra.get_host("local://")


@pytest.fixture(scope="module", name="server")
def _server():
    return testinfra.get_host("ssh://lab1", ssh_config=str(ROOT / ".lab/ssh_config"))


@pytest.fixture(scope="module", name="kubectl")
def _kubectl(controller):
    def run(arguments):
        return json.loads(controller.check_output(f"kubectl --kubeconfig {ARTIFACTS}/kubeconfig {arguments} -o json"))[
            "items"
        ]

    return run


@pytest.fixture(scope="module", name="answer")
def _answer(server):
    """The router's whole answer to one chat completion, asked on a node."""
    endpoint = json.loads((ARTIFACTS / "record.json").read_text())["serving"]["endpoint"]
    request = {"model": "lab-model", "messages": [{"role": "user", "content": PROMPT}]}
    script = (
        "import urllib.request as u; "
        f"print(u.urlopen(u.Request({endpoint + '/v1/chat/completions'!r}, {json.dumps(request).encode()!r}, "
        "{'Content-Type': 'application/json'}), timeout=30).read().decode())"
    )
    return json.loads(server.check_output("python3 -c %s", script))


def test_controller_keeps_record_and_kubeconfig_to_itself():
    for name in ("kubeconfig", "record.json"):
        assert stat.S_IMODE((ARTIFACTS / name).stat().st_mode) == 0o600, name


def test_record_holds_every_stage_and_no_secret(server):
    record = (ARTIFACTS / "record.json").read_text()
    stages = {name.split("/")[0] for name in json.loads(record)}
    assert {"preflight", "k3s", "images", "gpu_plugin", "serving", "verify"} <= stages
    assert server.file("/mnt/data/k3s/server/token").content_string.strip().rsplit(":", 1)[-1] not in record
    assert "client-key-data" not in record


def test_nodes_advertise_the_management_address_and_their_gpus(kubectl):
    nodes = {node["metadata"]["name"]: node for node in kubectl("get nodes")}
    assert sorted(nodes) == ["lab1", "lab2"]
    for name, address in (("lab1", "10.77.0.11"), ("lab2", "10.77.0.12")):
        status = nodes[name]["status"]
        assert status["allocatable"]["amd.com/gpu"] == "8"
        # Not pub0's, where the default route is, and not docker0's.
        assert {"type": "InternalIP", "address": address} in status["addresses"]
        assert [item["address"] for item in status["addresses"] if item["type"] == "InternalIP"] == [address]


def test_pods_are_where_the_inventory_says(kubectl):
    pods = kubectl("get pods --namespace infera")
    places = {(pod["metadata"]["labels"]["infera.amd.com/service"], pod["spec"]["nodeName"]) for pod in pods}
    assert places == {("router", "lab1"), ("prefill", "lab1"), ("decode", "lab2")}
    assert all(all(status["ready"] for status in pod["status"]["containerStatuses"]) for pod in pods)


def test_pods_run_pinned_images_that_nobody_pulled(kubectl):
    for namespace in ("infera", "kube-system"):
        for pod in kubectl(f"get pods --namespace {namespace}"):
            for container in pod["spec"].get("initContainers", []) + pod["spec"]["containers"]:
                assert "@sha256:" in container["image"], pod["metadata"]["name"]
        reasons = {event["reason"] for event in kubectl(f"get events --namespace {namespace}")}
        assert not reasons & {"Pulling", "ErrImagePull", "ImagePullBackOff", "Failed"}, reasons


def test_the_answer_is_the_one_that_follows_from_the_prompt(answer):
    sys.path.insert(0, str(ROOT / "tests/lab/images/engine"))
    from infera.answer import expected_answer

    assert answer["choices"][0]["message"]["content"] == expected_answer(PROMPT)


def test_the_kv_cache_went_over_a_rail(answer):
    kv = answer["infera"]["kv"]
    assert kv["source"] == "rail"
    assert kv["bytes"] > 0
    index = int(kv["rail"])
    # Each node has a /64 of its own on each rail: fd00:77:RAIL:NODE::/64.
    local, remote = (
        ipaddress.ip_address(str(kv[end]).removeprefix("[").partition("]")[0]) for end in ("local", "remote")
    )
    assert local in ipaddress.ip_network(f"fd00:77:{index}:2::/64")
    assert remote in ipaddress.ip_network(f"fd00:77:{index}:1::/64")
    assert kv["netdev"] == f"rail{index}"
