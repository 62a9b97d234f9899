# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The state that a run leaves, as text lines that two installations of one site have in common.

Left out is what differs by nature: keys and certificates (their modes and paths count), uids, times, pod names, and what
containerd and etcd keep for themselves.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lab_places import ARTIFACTS, DATA_DIR

if TYPE_CHECKING:
    from lab_site import Node, Site

State = dict[str, list[str]]

# Content that follows from the input alone.
CONTENTS = (
    "/etc/rancher/k3s/config.yaml /etc/rancher/k3s/registries.yaml /etc/default/k3s /etc/default/k3s-agent /usr/local/bin/k3s"
    f" /etc/systemd/system/k3s.service /etc/systemd/system/k3s-agent.service {DATA_DIR}/agent/images/*"
)
FOLDERS = f"/etc/rancher /etc/default /etc/systemd/system /usr/local/bin {DATA_DIR}"
# Below the data-dir: what the runtime, the kubelet and etcd fill as they go.
CHURN = [
    f"{DATA_DIR}/agent/containerd/*",
    f"{DATA_DIR}/server/db/*",
    f"{DATA_DIR}/server/manifests/*",
    f"{DATA_DIR}/data/*",
    f"{DATA_DIR}/agent/pod-manifests/*",
    "*.log",
    "*/cni/*",
]
UNIT = "LoadState ActiveState SubState UnitFileState Type KillMode Delegate FragmentPath DropInPaths NeedDaemonReload"
KINDS = ("deployments", "daemonsets", "services", "serviceaccounts", "roles", "rolebindings", "configmaps")
# Set by the API server, or by an object's own history.
VOLATILE = frozenset(
    """uid resourceVersion generation creationTimestamp managedFields selfLink status clusterIP clusterIPs secrets nodePort
    deployment.kubernetes.io/revision deprecated.daemonset.template.generation""".split()
)


def of(site: Site) -> State:
    """Section -> lines."""
    state: State = {}
    for name, node in site.nodes.items():
        state |= {f"{name}: {section}": lines for section, lines in _node(node).items()}
    for namespace in ("infera", "kube-system"):
        for item in site.objects(KINDS, namespace):
            if item["metadata"]["name"] not in ("kube-root-ca.crt", "default", "extension-apiserver-authentication"):
                title = f"{item['kind']} {namespace}/{item['metadata']['name']}"
                state[title] = json.dumps(_lasting(item), indent=1, sort_keys=True).splitlines()
    state["nodes"] = sorted(_node_object(item) for item in site.kubectl("get", "nodes")["items"])
    state["pods"] = sorted(
        _pod(item) for namespace in ("infera", "kube-system") for item in site.objects(["pods"], namespace)
    )
    state["controller"] = sorted(
        f"{path.relative_to(ARTIFACTS)} {path.stat().st_mode:o}" for path in ARTIFACTS.rglob("*")
    )
    state["record"] = sorted(site.record())
    return state


def difference(expected: State, found: State) -> str:
    """What is not equal, section by section; empty when all is."""
    report: list[str] = []
    for section in sorted({*expected, *found}):
        lines = list(difflib.unified_diff(expected.get(section, []), found.get(section, []), lineterm="", n=0))
        report += [f"== {section}", *lines[2:]] if lines else []
    return "\n".join(report)


def _node(node: Node) -> dict[str, list[str]]:
    unit = "k3s" if "k3s.service" in node.run("ls /etc/systemd/system") else "k3s-agent"
    churn = " ".join(f"-not -path '{pattern}'" for pattern in CHURN)
    properties = " ".join(f"-p {name}" for name in UNIT.split())
    return {
        "files": node.lines(f"find {FOLDERS} {churn} -printf '%p %y %m %u:%g %l\\n' | LC_ALL=C sort"),
        "contents": node.lines(f"sha256sum {CONTENTS} 2>/dev/null; true"),
        "unit": node.lines(f"systemctl show {unit} {properties}; systemctl --failed --no-legend"),
        "images": sorted(_image(line) for line in node.lines("k3s ctr -n k8s.io images ls")[1:]),
        "processes": sorted(
            set(
                node.lines(
                    f"ps -eo args | grep -oE '^(/usr/bin/)?(k3s|etcd|containerd|python3 {_K3S}) .*|kube[a-z-]+' ; true"
                )
            )
        ),
    }


_K3S = "/usr/local/bin/k3s"


def _image(line: str) -> str:
    fields = line.split()
    return " ".join(
        [fields[0], next(field for field in fields if field.startswith("sha256:") and field != fields[0]), fields[-1]]
    )


def _lasting(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _lasting(item) for key, item in value.items() if key not in VOLATILE}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return value


def _node_object(node: Mapping[str, Any]) -> str:
    status = node["status"]
    ready = [condition["status"] for condition in status["conditions"] if condition["type"] == "Ready"]
    kept = {
        "labels": node["metadata"]["labels"],
        "spec": {key: value for key, value in node["spec"].items() if key not in ("podCIDR", "podCIDRs")},
        "addresses": status["addresses"],
        "gpus": [status["capacity"].get("amd.com/gpu"), status["allocatable"].get("amd.com/gpu")],
        "ready": ready,
    }
    return f"{node['metadata']['name']} {json.dumps(kept, sort_keys=True)}"


def _pod(pod: Mapping[str, Any]) -> str:
    labels = pod["metadata"]["labels"]
    owner = (
        labels.get("app.kubernetes.io/instance")
        or labels.get("name")
        or labels.get("k8s-app")
        or pod["metadata"]["generateName"]
    )
    images = _images(pod["spec"].get("initContainers", []) + pod["spec"]["containers"])
    ready = all(status["ready"] for status in pod["status"].get("containerStatuses", [{"ready": False}]))
    return f"{owner} on {pod['spec'].get('nodeName')} {pod['status']['phase']} ready={ready} {images}"


def _images(containers: Iterable[Mapping[str, Any]]) -> list[str]:
    return [container["image"] for container in containers]
