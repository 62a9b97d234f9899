# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nodes: systemd containers that boot, run sshd and look like hosts."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import resource
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from . import ssh, sysfs
from .plan import Lab, Node
from .shell import LabError, output, run, succeeds

DISK_BYTES = 40 << 30  # sparse: it takes what is written to it
BOOT_SECONDS = 90
INOTIFY_INSTANCES = 12  # of a node: 6 for systemd and D-Bus, 6 to 7 for kubelet, containerd and controllers
SPECIFICATION = "infera-lab.specification"


def disk_directory(lab: Lab, node: Node) -> Path:
    """Where the node's large disk is mounted on the machine."""
    return lab.state / "nodes" / node.name / "data"


def sysfs_directory(lab: Lab, node: Node) -> Path:
    """The node's fixture tree."""
    return lab.state / "nodes" / node.name / "sysfs"


def up(lab: Lab, nodes: Sequence[Node], image: str, kubernetes: Path) -> list[str]:
    """Start what does not run, make anew what cannot be used, and wait until each node has booted; returns the names made anew."""
    made = []
    for node in nodes:
        disk_up(lab, node)
        sysfs.write(sysfs_directory(lab, node), node)
        if _container_up(lab, node, image, kubernetes):
            made.append(node.name)
    for node in nodes:
        # A node that was in use may have failed units of its user's making; that is not for the lab to judge.
        _wait(lab, node, ("running",) if node.name in made else ("running", "degraded"))
    return made


def down(lab: Lab, nodes: Sequence[Node]) -> None:
    """Remove the containers and disks of these nodes."""
    for node in nodes:
        _remove(node)
        disk_down(lab, node)


@dataclass(frozen=True)
class Container:
    """What podman knows about a node's container; `status` is "broken" when podman was killed while it made or removed it."""

    status: str
    pid: int = 0
    specification: str = ""


def inspect(node: Node) -> Container | None:
    """None when there is no container."""
    if not succeeds("podman", "container", "exists", node.container):
        return None
    done = run("podman", "container", "inspect", node.container, check=False)
    if done.returncode != 0:
        return Container("broken")
    known = json.loads(done.stdout)[0]
    return Container(
        known["State"]["Status"], known["State"]["Pid"], (known["Config"]["Labels"] or {}).get(SPECIFICATION, "")
    )


def disk_up(lab: Lab, node: Node) -> None:
    """An ext4 file system of its own on a loop device: the data-dir has to be on one, since overlay does not mount on overlay."""
    directory = disk_directory(lab, node)
    directory.mkdir(parents=True, exist_ok=True)
    if os.path.ismount(directory):
        _model_up(directory)
        return
    file = directory.with_name("data.ext4")
    if not file.exists():
        partial = file.with_suffix(".partial")
        partial.unlink(missing_ok=True)
        with partial.open("wb") as handle:
            handle.truncate(DISK_BYTES)
        run(
            "mkfs.ext4",
            "-q",
            "-F",
            "-m",
            "0",
            "-E",
            "lazy_itable_init=1,lazy_journal_init=1,nodiscard",
            "-L",
            f"{node.name}-data",
            partial,
        )
        partial.rename(file)
    _detach(file)
    # discard: what the node deletes goes back to the machine.
    run("mount", "-o", "loop,discard", file, directory)
    _model_up(directory)


def _model_up(disk: Path) -> None:
    """The folder of the lab's model (tests/lab/recipes), which needs no weights."""
    (disk / "models" / "lab-model").mkdir(parents=True, exist_ok=True)


def disk_down(lab: Lab, node: Node) -> None:
    """Unmount the disk, which detaches its loop device, and remove it."""
    directory = disk_directory(lab, node)
    for _attempt in range(20):
        if not os.path.ismount(directory):
            break
        if not succeeds("umount", directory):
            time.sleep(0.5)
    else:
        raise LabError(
            f"{directory} is in use and cannot be unmounted: close what has files open there (fuser -vm {directory}) and run it again"
        )
    _detach(directory.with_name("data.ext4"))
    for leftover in directory.parent.glob("data.*"):
        leftover.unlink()


def _detach(file: Path) -> None:
    """Free the loop devices that a killed `mount` left attached to the file."""
    if file.exists():
        for device in output("losetup", "--noheadings", "--output", "NAME", "--associated", file).split():
            run("losetup", "--detach", device)


def _container_up(lab: Lab, node: Node, image: str, kubernetes: Path) -> bool:
    """True when the container was made anew."""
    command = _create_command(lab, node, image, kubernetes)
    specification = hashlib.sha256("\0".join([*command, ssh.public_key(lab)]).encode()).hexdigest()[:16]
    known = inspect(node)
    if known and known.specification == specification:
        if known.status == "running" and _in_namespace(node, known.pid):
            return False
        if known.status in ("running", "exited", "stopped"):
            run("podman", "stop", "--time", "5", node.container, check=False)
            run("podman", "start", node.container)
            return False
    # A new node gets an empty disk, else it would wake up in the middle of another's cluster.
    down(lab, [node])
    disk_up(lab, node)
    run(*command[:2], "--label", f"{SPECIFICATION}={specification}", *command[2:])
    # Written between creation and start: a container in the state "created" may be half made, a started one is not.
    run("podman", "cp", "-", f"{node.container}:/", stdin=_identity(lab, node))
    run("podman", "start", node.container)
    return True


def _create_command(lab: Lab, node: Node, image: str, kubernetes: Path) -> list[str]:
    # podman's default limits may exceed the hard ones, which a container without CAP_SYS_RESOURCE cannot raise.
    files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], 1 << 20)
    processes = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    processes = 1 << 15 if processes == resource.RLIM_INFINITY else min(processes, 1 << 15)
    return [
        "podman",
        "create",
        "--name",
        node.container,
        "--hostname",
        node.name,
        # crun refuses the hybrid cgroup layout; without a cgroup namespace of its own, runc in the node cannot mount cgroups for pods.
        "--runtime",
        "runc",
        "--privileged",
        "--cgroupns",
        "private",
        # podman's systemd mode binds the machine's own name=systemd hierarchy over the namespace's (podman 4.3, cgroup v1): the node's
        # systemd would then make its cgroups in the machine's root. What else that mode does is written out here.
        "--systemd=false",
        "--stop-signal",
        "SIGRTMIN+3",
        "--env",
        "container=podman",
        "--tmpfs",
        "/run:rw,mode=755",
        "--tmpfs",
        "/run/lock",
        "--tmpfs",
        "/tmp",
        "--ulimit",
        f"nofile={files}:{files}",
        "--ulimit",
        f"nproc={processes}:{processes}",
        # A named namespace outlives the container's restarts, and its links with it.
        "--network",
        f"ns:/run/netns/{node.namespace}",
        "--dns",
        "none",
        "--no-hosts",
        "--volume",
        f"{disk_directory(lab, node)}:/mnt/data",
        "--volume",
        f"{kubernetes}:/opt/lab/kubernetes:ro",
        "--volume",
        f"{sysfs_directory(lab, node)}:/opt/lab/sysfs:ro",
        image,
    ]


def _in_namespace(node: Node, pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}/ns/net").st_ino == os.stat(f"/run/netns/{node.namespace}").st_ino
    except OSError:
        return False


def _identity(lab: Lab, node: Node) -> bytes:
    """What makes a node itself, as a tar archive over its root."""
    hosts = ["127.0.0.1 localhost", "::1 localhost", *(f"{other.management.ip} {other.name}" for other in lab.nodes())]
    files = {
        "etc/machine-id": (node.machine_id, 0o444),
        "etc/hostname": (node.name, 0o644),
        "etc/hosts": ("\n".join(hosts), 0o644),
        # Nothing resolves names in the lab. This address answers "refused" at once, where another would be waited for.
        "etc/resolv.conf": (f"nameserver {lab.controller_address.ip}", 0o644),
        "etc/ssh/ssh_host_ed25519_key": (ssh.host_key(lab, node).read_text().rstrip("\n"), 0o600),
        "root/.ssh/authorized_keys": (ssh.public_key(lab), 0o600),
    }
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (content, mode) in files.items():
            data = (content + "\n").encode()
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), mode, int(time.time())
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _remove(node: Node) -> None:
    for attempt in range(3):
        if not succeeds("podman", "container", "exists", node.container):
            return
        # The first try may find a container half removed, and then only tidies up.
        run("podman", "rm", "--force", "--time", "2", node.container, check=attempt == 2)


def inotify_shortage(nodes: Sequence[Node]) -> str | None:
    """A warning when the nodes that do not run yet will find too few inotify instances; systemd and kubelet die without."""
    starting = 0
    for node in nodes:
        known = inspect(node)
        starting += not (known and known.status == "running")
    if not starting:
        return None
    limit = int(Path("/proc/sys/fs/inotify/max_user_instances").read_text())
    used = sum(1 for descriptor in glob.iglob("/proc/[0-9]*/fd/*") if _link(descriptor) == "anon_inode:inotify")
    if used + starting * INOTIFY_INSTANCES <= limit:
        return None
    return (
        f"warning: {used} of this machine's {limit} inotify instances are in use, "
        f"and {starting} nodes with Kubernetes take {starting * INOTIFY_INSTANCES} more: "
        "take other labs down, or raise fs.inotify.max_user_instances"
    )


def _link(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _wait(lab: Lab, node: Node, accepted: Sequence[str]) -> None:
    deadline = time.monotonic() + BOOT_SECONDS
    answer = "no answer"
    while time.monotonic() < deadline:
        done = run(*ssh.command(lab, node), "systemctl is-system-running --wait", check=False, timeout=BOOT_SECONDS)
        answer = (done.stdout or done.stderr).strip()
        if answer in accepted:
            return
        if answer == "degraded":
            failed = run(*ssh.command(lab, node), "systemctl --failed --no-legend --plain", check=False).stdout.strip()
            raise LabError(f"{node.name} booted with failed units:\n{failed}")
        known = inspect(node)
        if known is None or known.status != "running":
            answer = "its init has ended"
            break
        time.sleep(0.3)
    hint = inotify_shortage([node]) or f"its console: podman logs {node.container}"
    raise LabError(f"{node.name} did not boot ({answer}); {hint}")
