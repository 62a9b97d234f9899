# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Keys and configuration of ssh. Users, Ansible and the lab itself reach a node in one and the same way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from .network import within
from .plan import Lab, Node
from .shell import run


def key(lab: Lab) -> Path:
    """The private key that root of every node accepts."""
    return lab.state / "ssh" / "id_ed25519"


def public_key(lab: Lab) -> str:
    """The line for authorized_keys."""
    return key(lab).with_suffix(".pub").read_text().strip()


def host_key(lab: Lab, node: Node) -> Path:
    """The private host key of a node."""
    return lab.state / "ssh" / f"{node.name}_host_ed25519_key"


def known_hosts(lab: Lab) -> Path:
    """The public host keys of all nodes a lab can have."""
    return lab.state / "ssh" / "known_hosts"


def config(lab: Lab) -> Path:
    """Aliases lab1 to lab5, for `ssh -F`."""
    return lab.state / "ssh_config"


def up(lab: Lab) -> None:
    """Make the keys that are missing, and the configuration."""
    key(lab).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lab.runtime.mkdir(exist_ok=True, mode=0o700)
    _ensure_key(key(lab), "infera lab")
    for node in lab.nodes():
        _ensure_key(host_key(lab, node), node.name)
    known_hosts(lab).write_text(
        known_hosts_text(lab.nodes(), [host_key(lab, node).with_suffix(".pub").read_text() for node in lab.nodes()])
    )
    config(lab).write_text(config_text(lab))


def command(lab: Lab, node: Node) -> list[str]:
    """ssh to a node without a shared connection, to be followed by the remote command."""
    return [
        *within(lab.controller_namespace),
        "ssh",
        "-F",
        str(config(lab)),
        "-o",
        "ControlMaster=no",
        "-o",
        "ControlPath=none",
        "-o",
        "ConnectTimeout=3",
        node.name,
    ]


def close_connections(lab: Lab) -> None:
    """End the connections that ssh and Ansible keep open for re-use, and remove their sockets."""
    if not lab.runtime.exists():
        return
    for socket in lab.runtime.rglob("*"):
        if socket.is_socket():
            run("ssh", "-o", f"ControlPath={socket}", "-O", "exit", "lab", check=False, timeout=10)
            socket.unlink(missing_ok=True)


def config_text(lab: Lab) -> str:
    """The ssh configuration file."""
    blocks = [
        f"Host {node.name} {node.management.ip}\n    HostName {node.management.ip}\n    HostKeyAlias {node.management.ip}\n"
        for node in lab.nodes()
    ]
    common = f"""Host *
    User root
    IdentityFile {key(lab)}
    IdentitiesOnly yes
    UserKnownHostsFile {known_hosts(lab)}
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking yes
    LogLevel ERROR
    ConnectTimeout 5
    ServerAliveInterval 5
    ServerAliveCountMax 2
    ControlMaster auto
    ControlPath {lab.runtime}/%C
    ControlPersist 60
"""
    return "\n".join([*blocks, common])


def known_hosts_text(nodes: Sequence[Node], public_keys: Sequence[str]) -> str:
    """One line per node, by name and address."""
    return "".join(
        f"{node.name},{node.management.ip} {' '.join(public.split()[:2])}\n"
        for node, public in zip(nodes, public_keys, strict=True)
    )


def _ensure_key(path: Path, comment: str) -> None:
    if path.exists() and path.with_suffix(".pub").exists():
        return
    # ssh-keygen writes the public half last: both or nothing.
    path.unlink(missing_ok=True)
    path.with_suffix(".pub").unlink(missing_ok=True)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f", path)
