# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A lab node over ssh, and a k3s on it: installed as the collection's unit does, and removed without a trace."""

from __future__ import annotations

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DATA_DIR = "/mnt/data/k3s-contract"
CONFIG = "/etc/rancher/k3s/config.yaml"
TOKEN_FILE = "/etc/rancher/k3s/token"
SOCKET = "/run/k3s/containerd/containerd.sock"
UNITS = {"server": "k3s", "agent": "k3s-agent"}
START_SECONDS = 300

_UNIT = """\
[Service]
Type=notify
KillMode=process
Delegate=yes
TimeoutStartSec=0
Restart=always
RestartSec=1s
LimitNOFILE=1048576
TasksMax=infinity
ExecStart=/usr/local/bin/k3s {role}
"""

# What k3s leaves running by design, and the traces in the kernel that no file shows.
_REMOVE = r"""
systemctl stop k3s k3s-agent 2>/dev/null
for shim in $(pgrep -f -- '[-]address /run/k3s/containerd/containerd.sock'); do kill -9 "$shim"; done
for procs in $(find /sys/fs/cgroup -path '*kubepods*' -name cgroup.procs); do
  for process in $(cat "$procs" 2>/dev/null); do kill -9 "$process"; done
done
sleep 0.5
awk '$2 ~ "^(/run/k3s|/var/lib/kubelet|/run/netns/cni-|DATA)" {print $2}' /proc/self/mounts | sort -r | xargs -r umount
ip route flush proto 86; ip link delete cni0; ip link delete flannel.1
iptables-save | grep -v -e KUBE- -e CNI- -e FLANNEL -e 'flanneld masq' | iptables-restore
rm -rf DATA /run/k3s /run/flannel /run/netns/cni-* /var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /etc/rancher
rm -f /etc/systemd/system/k3s.service /etc/systemd/system/k3s-agent.service /usr/local/bin/k3s
systemctl daemon-reload; systemctl reset-failed k3s k3s-agent
! ls -d DATA /var/lib/kubelet /run/k3s /sys/class/net/cni0 2>/dev/null && ! iptables-save | grep -e KUBE- -e CNI-
"""


def eventually(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """The condition's first true value; fails when it has none in time."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        assert time.monotonic() < end, f"{what}: not within {seconds:g} s"
        time.sleep(0.5)


@dataclass(frozen=True)
class LabNode:
    """A node by its name in the lab's ssh configuration."""

    name: str
    ssh_config: Path

    def run(
        self, command: str, content: bytes = b"", check: bool = True, seconds: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node; with `check`, a failure fails the test and shows what was said."""
        words = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", self.name, command]
        done = subprocess.run(words, input=content, capture_output=True, timeout=seconds, check=False)
        text = subprocess.CompletedProcess(
            command, done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )
        assert not check or text.returncode == 0, (
            f"{self.name}: {command}: {text.returncode}\n{text.stdout}{text.stderr}"
        )
        return text

    def output(self, command: str) -> str:
        """What the command prints, without the last newline."""
        return self.run(command).stdout.rstrip("\n")

    def write(self, path: str, content: bytes | str, mode: str = "0600") -> None:
        """Make the file with its folder."""
        quoted = shlex.quote(path)
        data = content.encode() if isinstance(content, str) else content
        self.run(f"mkdir -p $(dirname {quoted}) && umask 077 && cat > {quoted} && chmod {mode} {quoted}", data)

    def exists(self, path: str) -> bool:
        """Whether there is such a path."""
        return self.run(f"test -e {shlex.quote(path)}", check=False).returncode == 0

    def mode(self, path: str) -> str:
        """Permission bits, in octal."""
        return self.output(f"stat -L -c %a {shlex.quote(path)}")

    def address(self) -> str:
        """The node's management address."""
        lines = subprocess.run(
            ["ssh", "-F", str(self.ssh_config), "-G", self.name], capture_output=True, text=True, check=True
        ).stdout
        return next(line.split()[1] for line in lines.splitlines() if line.startswith("hostname "))


@dataclass(frozen=True)
class K3s:
    """A k3s service on a node."""

    node: LabNode
    role: str

    @property
    def unit(self) -> str:
        """The service's name."""
        return UNITS[self.role]

    @property
    def node_name(self) -> str:
        """The node's name in the API."""
        return f"contract-{self.role}"

    def install(self, binary: Path, airgap: Path, config: dict[str, Any], token: str) -> None:
        """Everything that the service needs, secrets in 0600 files; nothing is started."""
        self.node.write("/usr/local/bin/k3s", binary.read_bytes(), "0755")
        self.node.write(f"{DATA_DIR}/agent/images/{airgap.name}", airgap.read_bytes(), "0644")
        self.node.write(TOKEN_FILE, token + "\n")
        self.node.write(CONFIG, json.dumps(config))
        self.node.write(f"/etc/systemd/system/{self.unit}.service", _UNIT.format(role=self.role), "0644")
        self.node.run("systemctl daemon-reload")

    def start(self) -> None:
        """Start (or restart) and wait until systemd calls it active."""
        self.node.run(f"systemctl restart --no-block {self.unit}")
        time.sleep(0.5)
        self.wait()

    def wait(self) -> None:
        """Wait until the service is active."""
        eventually(
            lambda: self.state() == "active",
            START_SECONDS,
            f"{self.unit} on {self.node.name} is active\n{self.journal()[-2000:]}",
        )

    def stop(self) -> None:
        """Stop the service; its pods stay."""
        self.node.run(f"systemctl stop {self.unit}")

    def state(self) -> str:
        """systemd's word for the service."""
        return self.node.run(f"systemctl is-active {self.unit}", check=False).stdout.strip()

    def main_pid(self) -> int:
        """The service's main process; 0 when there is none."""
        return int(self.node.output(f"systemctl show -p MainPID --value {self.unit}"))

    def journal(self) -> str:
        """The service's log."""
        return self.node.run(f"journalctl -u {self.unit} -o cat --no-pager", check=False).stdout

    def kubectl(self, arguments: str, manifest: dict[str, Any] | None = None) -> str:
        """Run kubectl on the server's node with the kubeconfig that k3s wrote."""
        return self.node.run(
            f"env -u KUBECONFIG k3s kubectl {arguments}", json.dumps(manifest).encode() if manifest else b""
        ).stdout

    def get(self, arguments: str) -> dict[str, Any]:
        """An object of the API."""
        return json.loads(self.kubectl(f"get {arguments} -o json"))


def remove_k3s(node: LabNode) -> None:
    """Take the node back to one without a k3s."""
    node.run(_REMOVE.replace("DATA", DATA_DIR))
