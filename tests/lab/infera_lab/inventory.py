# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The git-ignored files that connect inventories/lab with the lab that was built: digests, keys, and nodes three to five."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import ssh
from .k3s import K3s, sha256
from .plan import Lab, Node

NOTE = "# Written by tests/lab when the lab comes up; git ignores it."
STATIC_NODES = 2  # those in inventories/lab/hosts.yml


def write(lab: Lab, nodes: Sequence[Node], images: Path, k3s: K3s) -> None:
    """Write both files; the second only when there are nodes that hosts.yml does not name."""
    listed = json.loads((images / "images.json").read_text())
    variables(lab).parent.mkdir(parents=True, exist_ok=True)
    _replace(
        variables(lab),
        variables_of(lab, listed, images, k3s.version, sha256(k3s.binary), k3s.airgap.name, sha256(k3s.airgap)),
    )
    extra = nodes[STATIC_NODES:]
    if extra:
        _replace(hosts(lab), hosts_of(extra))
    else:
        hosts(lab).unlink(missing_ok=True)


def remove(lab: Lab) -> None:
    """Take both files away."""
    variables(lab).unlink(missing_ok=True)
    hosts(lab).unlink(missing_ok=True)


def variables(lab: Lab) -> Path:
    """Variables of all hosts."""
    return lab.checkout / "inventories/lab/group_vars/all/generated.yml"


def hosts(lab: Lab) -> Path:
    """Hosts that hosts.yml does not name."""
    return lab.checkout / "inventories/lab/generated.yml"


def variables_of(
    lab: Lab,
    images: Mapping[str, Mapping[str, str]],
    directory: Path,
    version: str,
    binary_sha256: str,
    airgap: str,
    airgap_sha256: str,
) -> dict[str, Any]:
    """The content of generated.yml. Paths are absolute: playbooks also run from the built collection, in another folder."""
    return {
        "lab_id": lab.id,
        "lab_images": {
            key.replace("-", "_"): {"name": image["name"], "archive": str(directory / image["archive"])}
            for key, image in images.items()
        },
        "lab_k3s": {
            "version": version,
            "directory": str(lab.state / "k3s"),
            "binary_sha256": binary_sha256,
            "airgap": airgap,
            "airgap_sha256": airgap_sha256,
        },
        "lab_ssh_key": str(ssh.key(lab)),
        # Two labs have the same addresses, and Ansible names its sockets by address:
        # in one folder, a task could reach the other lab's node.
        "ansible_control_path_dir": str(lab.runtime),
        "ansible_ssh_common_args": f"-o UserKnownHostsFile={ssh.known_hosts(lab)} -o GlobalKnownHostsFile=/dev/null "
        "-o StrictHostKeyChecking=yes -o IdentitiesOnly=yes",
    }


def hosts_of(nodes: Sequence[Node]) -> dict[str, Any]:
    """Further agents, without a serving role."""
    entries = {
        node.name: {"ansible_host": str(node.management.ip), "cluster_address": str(node.management.ip)}
        for node in nodes
    }
    return {"k3s_agent": {"hosts": entries}}


def yaml_lines(content: Mapping[str, Any], indent: str = "") -> list[str]:
    """Nested mappings of strings as YAML; a JSON string is a YAML string."""
    written: list[str] = []
    for key, value in content.items():
        if isinstance(value, Mapping):
            written += [f"{indent}{key}:", *yaml_lines(value, indent + "  ")]
        else:
            written.append(f"{indent}{key}: {json.dumps(value)}")
    return written


def _replace(path: Path, content: Mapping[str, Any]) -> None:
    beside = path.with_name(f".{path.name}.new")
    beside.write_text("\n".join(["---", NOTE, *yaml_lines(content), ""]))
    beside.replace(path)
