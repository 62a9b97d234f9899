# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nodes as the API shows them, and the network between them."""

from __future__ import annotations

import ipaddress
import json

from lab_node import DATA_DIR

_TLS_CHECK = """
import socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
with socket.create_connection((sys.argv[2], int(sys.argv[3])), timeout=5) as plain:
    context.wrap_socket(plain, server_hostname=sys.argv[4]).close()
"""


def test_name_address_labels_and_kubelet_arguments_are_those_given(server, agent):
    for k3s in (server, agent):
        node = server.get(f"node {k3s.node_name}")
        addresses = [entry["address"] for entry in node["status"]["addresses"] if entry["type"] == "InternalIP"]
        assert addresses == [k3s.node.address()]
        assert node["metadata"]["labels"]["contract"] == "kept"
        assert node["metadata"]["labels"]["side"] == k3s.role
        assert node["status"]["capacity"]["pods"] == "77"


def test_pod_cidrs_are_apart_and_in_the_clusters_network(server, agent):
    cidrs = [ipaddress.ip_network(item["spec"]["podCIDR"]) for item in server.get("nodes")["items"]]

    assert len(set(cidrs)) == 2
    assert all(cidr.subnet_of(ipaddress.ip_network("10.42.0.0/16")) for cidr in cidrs)


def test_the_apis_certificate_is_good_for_every_name_it_is_reached_by(server, agent):
    agent.node.write("/tmp/contract-ca.crt", server.node.run(f"cat {DATA_DIR}/server/tls/server-ca.crt").stdout)
    agent.node.write("/tmp/contract-tls.py", _TLS_CHECK)
    address = server.node.address()
    for host, port, name in (
        (address, 6443, address),
        (address, 6443, "k3s.contract.test"),
        ("10.43.0.1", 443, "10.43.0.1"),
        (address, 6443, "localhost"),
    ):
        agent.node.run(f"python3 /tmp/contract-tls.py /tmp/contract-ca.crt {host} {port} {name}")
    agent.node.run("rm /tmp/contract-ca.crt /tmp/contract-tls.py")


def test_pods_of_different_nodes_reach_each_other_and_the_api(server, agent, pod):
    by_node = {name: server.get(f"pod {name}")["status"]["podIP"] for name in (server.node_name, agent.node_name)}
    for source, target in ((server.node_name, agent.node_name), (agent.node_name, server.node_name)):
        server.kubectl(f"exec {source} -- ping -c 1 -W 5 {by_node[target]}")
        server.kubectl(f"exec {source} -- nc -w 5 10.43.0.1 443 < /dev/null")


def test_events_tell_what_became_of_a_pod(server, pod):
    events = json.loads(server.kubectl(f"get events --field-selector involvedObject.name={server.node_name} -o json"))

    assert "Started" in {item["reason"] for item in events["items"]}
