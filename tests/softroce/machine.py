# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A virtual machine under software emulation whose kernel has Soft-RoCE: what it is made of, and one run of it.

It needs no KVM and no root, and nothing is installed. The parts come from Debian once and lie in the lab's cache.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ansible_collections.infera.baremetal.tests.lab.infera_lab.build import Build
from ansible_collections.infera.baremetal.tests.lab.infera_lab.shell import LabError

HERE = Path(__file__).resolve().parent
PLUGINS = HERE.parent.parent / "plugins"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "infera-lab"
DISK_BYTES = 2 << 30  # The build's peak: packages, and what they unpack to.
BUILD_SECONDS, RUN_SECONDS = 900, 300


def missing() -> str:
    """Why this machine cannot run it; empty where it can."""
    programs = [program for program in ("apt-get", "dpkg") if not shutil.which(program)]
    if programs:
        return f"{' and '.join(programs)} not found: the guest is made of Debian's packages"
    if platform.machine() != "x86_64":
        return f"the guest is for x86_64, this machine is {platform.machine()}"
    CACHE.mkdir(parents=True, exist_ok=True)
    if not parts().built and shutil.disk_usage(CACHE).free < DISK_BYTES:
        return f"less than {DISK_BYTES >> 30} GiB are free in {CACHE}"
    return ""


def parts() -> Build:
    """Root file system, kernel and initramfs; another build script means another build."""
    script = HERE / "build"
    key = hashlib.sha256(script.read_bytes()).hexdigest()[:12]
    command = ("timeout", str(BUILD_SECONDS), str(script), "{out}")
    return Build("the Soft-RoCE guest", "softroce", key, "1 min", CACHE, command)


def run(share: Path) -> dict[str, Any]:
    """Boot once, with C(share) as the guest's /share, and return the guest's results. Raises LabError."""
    plugins = share / "ansible_collections/infera/baremetal/plugins"
    shutil.copytree(PLUGINS / "module_utils", plugins / "module_utils", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("init", "guest.py"):
        shutil.copy(HERE / name, share)
    console = share / "console.log"
    with console.open("wb") as log:
        process = subprocess.Popen(_command(parts().directory, share), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            process.wait()
        finally:
            # For an interrupted run; timeout passes it on to qemu, and ends it even when this process is killed.
            process.terminate()
            process.wait()
    if process.returncode:
        raise LabError(f"qemu ended with status {process.returncode} (124: after {RUN_SECONDS} s)\n{_tail(console)}")
    try:
        results = json.loads((share / "results.json").read_text())
    except (OSError, ValueError):
        raise LabError(f"the guest left no results\n{_tail(console)}") from None
    if "error" in results:
        raise LabError(f"the guest failed\n{results['error']}")
    return results["scenes"]


def _command(directory: Path, share: Path) -> list[str]:
    root = directory / "root"
    # qemu is the guest's own, under the guest's loader, so that it does not matter what this machine has.
    return [
        *("timeout", "-k", "5", str(RUN_SECONDS)),
        str(root / "lib64/ld-linux-x86-64.so.2"),
        *("--library-path", f"{root}/usr/lib/x86_64-linux-gnu"),
        str(root / "usr/bin/qemu-system-x86_64"),
        *("-L", f"{root}/usr/share/qemu", "-L", f"{root}/usr/share/seabios"),
        *("-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "256"),
        *("-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-monitor", "none", "-serial", "stdio"),
        *("-kernel", str(directory / "vmlinuz"), "-initrd", str(directory / "initrd")),
        *("-append", "console=ttyS0 quiet panic=-1 mitigations=off"),
        *("-virtfs", f"local,path={root},mount_tag=root,security_model=none,readonly=on,multidevs=remap"),
        *("-virtfs", f"local,path={share},mount_tag=share,security_model=none,multidevs=remap"),
    ]


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-30:])
