# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a machine must have to host the lab, and the Debian packages that are installed when they are missing."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from .shell import LabError, run, succeeds

PACKAGES = ("podman", "runc", "conmon", "iproute2", "e2fsprogs", "openssh-client", "procps", "mount")
FREE_BYTES = 10 << 30
MEMORY_BYTES = 6 << 30
# A kernel without modules lists them in /proc/filesystems; one with modules loads them on the first mount.
FILE_SYSTEMS = ("ext4", "overlay", "cgroup")


class Unfit(Exception):
    """This machine cannot host the lab."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__("; ".join(missing))
        self.missing = list(missing)


def missing(checkout: Path, cache: Path) -> list[str]:
    """What this machine lacks, each with what to do; needs no package of the lab and changes nothing."""
    if os.geteuid() != 0:
        return ["root: the lab makes containers, namespaces and mounts; run it as root (sudo make demo)"]
    found = []
    release = platform.freedesktop_os_release() if Path("/etc/os-release").exists() else {}
    if (release.get("ID"), release.get("VERSION_ID")) != ("debian", "12") or not shutil.which("apt-get"):
        name = release.get("PRETTY_NAME", "unknown")
        found.append(
            f"Debian 12: this is {name}, and the lab is built from Debian 12's packages; "
            "use a Debian 12 machine or virtual machine"
        )
    if platform.machine() != "x86_64":
        found.append(f"x86_64: this is {platform.machine()}, and the lab's images are built for x86_64")
    if not succeeds("unshare", "--net", "--mount", "--pid", "--ipc", "--uts", "--fork", "true"):
        found.append(
            "namespaces: `unshare --net --mount --pid true` fails; "
            "in a container, run that one privileged (docker run --privileged), or use a virtual machine"
        )
    if not Path("/dev/loop-control").exists() and not succeeds("modprobe", "-q", "loop"):
        found.append(
            "loop devices: /dev/loop-control is not there; "
            "load the module `loop`, or pass /dev/loop-control and /dev/loop* to this container"
        )
    found += [
        f"{name}: the kernel does not know this file system; load the module `{name}`"
        for name in FILE_SYSTEMS
        if not _file_system(name)
    ]
    for place in (checkout, cache):
        free = _free(place)
        if free < FREE_BYTES:
            found.append(
                f"disk space: {free >> 30} GiB are free at {place}, and the lab takes up to {FREE_BYTES >> 30} GiB there; "
                "free some, or set XDG_CACHE_HOME"
            )
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory < MEMORY_BYTES:
        found.append(f"memory: {memory >> 30} GiB, and compiling Kubernetes takes about {MEMORY_BYTES >> 30} GiB")
    return found


def missing_packages(names: Sequence[str]) -> list[str]:
    """Those of the Debian packages that are not installed."""
    done = run("dpkg-query", "--show", "--showformat=${Package} ${db:Status-Status}\n", *names, check=False)
    installed = {line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")}
    return [name for name in names if name not in installed]


def install(names: Sequence[str]) -> None:
    """Install Debian packages on the machine, with apt's own output shown when it fails."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "-qq", "update"],
        ["apt-get", "-qq", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "install", *names],
    ):
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0 and command[-1] != "update":
            raise LabError(f"apt could not install {' '.join(names)}:\n{done.stdout.strip()}")


def _file_system(name: str) -> bool:
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    return name in known or succeeds("modprobe", "-q", name)


def _free(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free
