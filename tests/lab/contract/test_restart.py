# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Restarts: pods outlive the service, its own components do not."""

from __future__ import annotations

import pytest
from lab_node import eventually

_COMPONENTS = {
    "k3s",
    "k3s-server",
    "k3s-agent",
    "containerd",
    "etcd",
    "kubelet",
    "kube-apiserver",
    "kube-controller",
    "kube-scheduler",
    "kube-proxy",
}


def _pod_process(k3s):
    """The process id of the contract pod's container on this node."""
    labels = f'labels."io.kubernetes.pod.name"=={k3s.node_name},labels."io.kubernetes.container.name"==sleep'
    container = k3s.node.output(f"k3s ctr containers ls -q '{labels}'")
    tasks = dict(line.split()[:2] for line in k3s.node.output("k3s ctr tasks ls").splitlines()[1:])
    return int(tasks[container])


@pytest.fixture(name="service", params=["server", "agent"])
def fixture_service(request, server, agent, pod):
    """Each service in turn, with a pod on its node."""
    return {"server": server, "agent": agent}[request.param]


def test_a_restart_keeps_the_pods_processes(server, service):
    before = _pod_process(service)
    restarts = server.get(f"pod {service.node_name}")["status"]["containerStatuses"][0]["restartCount"]

    service.start()

    assert _pod_process(service) == before
    assert server.get(f"pod {service.node_name}")["status"]["containerStatuses"][0]["restartCount"] == restarts


def test_stopped_it_leaves_pods_and_nothing_else(service):
    process = _pod_process(service)
    assert "containerd" in service.node.output("ps -eo comm=").split()

    service.stop()

    assert service.node.exists(f"/proc/{process}")
    assert not _COMPONENTS & set(service.node.output("ps -eo comm=").split())
    service.start()
    assert _pod_process(service) == process


def test_killed_it_comes_back_without_doubles(service):
    process, main = _pod_process(service), service.main_pid()

    service.node.run(f"kill -9 {main}")

    eventually(lambda: service.main_pid() not in (0, main), 30, "systemd starts it again")
    service.wait()
    assert service.node.output("pgrep -c -x containerd") == "1"
    assert _pod_process(service) == process


def test_containerd_killed_the_service_recovers(service):
    process = _pod_process(service)

    service.node.run("kill -9 $(pgrep -x containerd)")

    eventually(lambda: service.node.run("k3s ctr version", check=False).returncode == 0, 60, "containerd answers again")
    service.wait()
    assert service.node.exists(f"/proc/{process}")


def test_the_server_is_ready_when_systemd_says_so(server, agent):
    server.start()

    assert server.kubectl("get --raw /readyz").strip() == "ok"
