# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Take a node back to what it was before the k3s stage: what is there of it, and how it goes.

The rule of the whole file: nothing is touched that the collection, or the k3s that it installed, did not make. That this
k3s is the collection's is proven first (its unit, its config.yaml); the proof is removed last, so that a reset that was
killed anywhere is completed by the next one.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Optional, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.host import (
    OWN_MARK,
    configured_data_dir,
    parse_mountinfo,
)
from ansible_collections.infera.baremetal.plugins.module_utils.netfilter import leftovers, removal_script

UNITS = ("k3s", "k3s-agent")
BINARY = "/usr/local/bin/k3s"
CONFIG_DIR = "/etc/rancher/k3s"
CONFIG = CONFIG_DIR + "/config.yaml"
SYSTEMD_DIR = "/etc/systemd/system"
RUN_DIR = "/run/k3s"
CONTAINERD_DIR = RUN_DIR + "/containerd"
KUBELET_DIR = "/var/lib/kubelet"
DEFAULT_DATA_DIR = "/var/lib/rancher/k3s"
# What k3s and the collection make in a data-dir. Whatever else lies there is its owner's.
DATA_DIR_ENTRIES = ("agent", "data", "server", "storage")
# What the collection makes there before config.yaml is written: what a killed first run leaves.
EARLY_ENTRIES = ("infera", "images", ".infera-staging")
INTERFACES = ("cni0", "flannel.1", "flannel-v6.1", "flannel-wg", "flannel-wg-v6")
# Temporary files of managed_files, and of the copy of the binary.
_TEMPORARY = ((CONFIG_DIR, r"\.infera-.+"), (SYSTEMD_DIR, r"\.infera-.+"), ("/etc/default", r"\.infera-.+"))
_TEMPORARY_BINARY = (os.path.dirname(BINARY), r"\.ansible_tmp.+k3s")
_POD_FOLDER = r"[^_]+_[^_]+_[0-9a-f]{8,}[0-9a-f-]*"
_SYSTEM_FOLDERS = (
    *(
        "/",
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/lib64",
        "/media",
        "/mnt",
        "/opt",
        "/proc",
        "/root",
        "/run",
    ),
    *("/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib"),
)
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
LOST_AND_FOUND = "lost+found"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_STOP_SECONDS = 180
_POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Process:
    """A line of the process table."""

    pid: int
    parent: int
    state: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class Route:
    """A route to pods of another node."""

    family: int
    destination: str
    gateway: str
    device: str

    @property
    def words(self) -> list[str]:
        via = ["via", self.gateway] if self.gateway else []
        return [self.destination, *via, "dev", self.device]


@dataclass(frozen=True)
class Ruleset:
    """What is left in one kind of iptables: the pair of programs that see it, and the script that removes it."""

    save: str
    restore: str
    script: str
    lines: tuple[str, ...]


@dataclass
class Plan:
    """What is there to remove with k3s and its C(data_dir). C(paths) are in the order of removal; C(keep_root) are those of which only the content goes."""

    data_dir: str = ""
    units: list[str] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    interfaces: list[str] = field(default_factory=list)
    routes: list[Route] = field(default_factory=list)
    rulesets: list[Ruleset] = field(default_factory=list)
    selinux: bool = False
    paths: list[str] = field(default_factory=list)
    keep_root: set[str] = field(default_factory=set)
    stays: list[Finding] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        return not self.lines()

    def lines(self) -> list[str]:
        """One line a thing, for a diff."""
        found = self.to_dict()
        return [
            *(f"unit {unit}.service" for unit in found["units"]),
            *(f"process {process}" for process in found["processes"]),
            *(f"mount {path}" for path in found["mounts"]),
            *(f"interface {name}" for name in found["interfaces"]),
            *(f"route {route}" for route in found["routes"]),
            *found["rules"],
            *(["SELinux equivalence of the data-dir"] if self.selinux else []),
            *(
                f"{path}/* (the folder is a mount point and stays)" if path in self.keep_root else path
                for path in self.paths
            ),
        ]

    def to_dict(self) -> dict[str, list[str]]:
        """What is removed, by kind, as the module returns it."""
        return {
            "units": self.units,
            "processes": [f"{process.pid} {' '.join(process.command)[:120]}" for process in self.processes],
            "mounts": self.mounts,
            "interfaces": self.interfaces,
            "routes": [" ".join(route.words) for route in self.routes],
            "rules": [line for ruleset in self.rulesets for line in ruleset.lines],
            "paths": self.paths,
        }


class System:
    """The edge: files below C(root), commands, signals and time, each replaceable in a test."""

    def __init__(self, root: str = "/") -> None:
        self.root = root

    def path(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def read(self, path: str) -> str:
        """Text, or empty where the file is absent."""
        try:
            with open(self.path(path), "rb") as handle:
                return handle.read().decode("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError, ProcessLookupError):
            return ""

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def names(self, path: str) -> list[str]:
        try:
            return sorted(os.listdir(self.path(path)))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def run(self, command: Sequence[str], text: str = "", seconds: float = 30, path: str = _PATH) -> tuple[int, str]:
        """Exit status and output; 127 where there is no such program, 124 when it does not end in time."""
        try:
            done = subprocess.run(
                list(command),
                input=text.encode(),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=seconds,
                check=False,
                env={"PATH": path, "LC_ALL": "C"},
            )
        except FileNotFoundError:
            return 127, f"{command[0]}: not found"
        except subprocess.TimeoutExpired:
            return 124, f"{command[0]}: did not end within {seconds:.0f} s"
        return done.returncode, done.stdout.decode("utf-8", "replace")

    def which(self, program: str, path: str = _PATH) -> Optional[str]:
        return shutil.which(program, path=path)

    def kill(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    clock: Callable[[], float] = staticmethod(time.monotonic)
    sleep: Callable[[float], None] = staticmethod(time.sleep)


# --- looking ---------------------------------------------------------------------------------------------------------


def survey(data_dir: str, pod_cidrs: Sequence[str], system: System) -> Plan:
    """What a reset would remove; an empty plan on a host where the collection installed nothing. Reads only.

    Raises FindingError where the k3s on the host is not provably the collection's, or its data-dir is another.
    """
    if not _is_ours(data_dir, system):
        return Plan()
    data_dir = os.path.normpath(data_dir)
    plan = Plan(data_dir)
    states = {unit: _unit_state(unit, system) for unit in UNITS}
    plan.units = [
        unit
        for unit in UNITS
        if states[unit].get("ActiveState") in ("active", "activating", "deactivating", "reloading")
    ]
    plan.processes = pod_processes(read_processes(system))
    plan.mounts = pod_mounts([mount.target for mount in _mounts(system)], data_dir)
    plan.interfaces = [name for name in INTERFACES if system.exists(f"/sys/class/net/{name}")]
    plan.routes = [
        route for cidr in pod_cidrs for route in read_routes(cidr, system) if route.device not in plan.interfaces
    ]
    plan.rulesets = list(read_rulesets(data_dir, system))
    plan.selinux = _has_equivalence(data_dir, system)
    _plan_paths(plan, data_dir, system)
    _refuse_foreign_mounts(plan, system)
    return plan


def _is_ours(data_dir: str, system: System) -> bool:
    """Whether the collection's k3s is, or was half, on this host.

    Raises FindingError (C(reset_foreign_k3s), C(reset_data_dir_unsafe), C(reset_data_dir_differs), C(reset_data_dir_unproven)).
    """
    foreign = [path for unit in UNITS for path in [_foreign_unit(unit, system)] if path]
    if foreign:
        raise FindingError(
            Finding(
                "reset_foreign_k3s",
                "error",
                f"{foreign[0]} was not written by this collection, so its k3s is somebody else's",
                "Remove it the way it was installed (k3s-uninstall.sh, k3s-agent-uninstall.sh), or take the host out of k3s_cluster.",
                where=foreign[0],
            )
        )
    units = [path for unit in UNITS for path in [f"{SYSTEMD_DIR}/{unit}.service"] if system.exists(path)]
    config = system.read(CONFIG)
    _refuse_unsafe(data_dir, system)
    if not config:
        return _is_ours_without_config(data_dir, units, system)
    installed = configured_data_dir([config], [])
    if os.path.normpath(installed) != os.path.normpath(data_dir):
        raise FindingError(
            Finding(
                "reset_data_dir_differs",
                "error",
                f"the installed k3s keeps its data in {installed}, the inventory says {data_dir}",
                f"Set k3s_data_dir to {installed} for this host until it is reset.",
                where=CONFIG,
            )
        )
    return True


def _is_ours_without_config(data_dir: str, units: list[str], system: System) -> bool:
    mounted = {mount.target for mount in _mounts(system)}
    present = [name for name in DATA_DIR_ENTRIES if _has_content(f"{data_dir}/{name}", mounted, system)]
    early = present == ["agent"] and set(system.names(f"{data_dir}/agent")) <= {*EARLY_ENTRIES, LOST_AND_FOUND}
    if present and not early:
        raise FindingError(
            Finding(
                "reset_data_dir_unproven",
                "error",
                f"holds {', '.join(present)}, and no {CONFIG} says that it is the data-dir of this collection's k3s",
                "Look at it, and remove it by hand if it is an old cluster's.",
                where=data_dir,
            )
        )
    return bool(units) or early


def _has_content(path: str, mounted: Iterable[str], system: System) -> bool:
    """Whether there is something to remove: a file, a folder, or what is in the root of a mount."""
    return system.exists(path) and not (path in mounted and set(system.names(path)) <= {LOST_AND_FOUND})


def _refuse_unsafe(data_dir: str, system: System) -> None:
    normal = os.path.normpath(data_dir)
    reason = ""
    if not data_dir.startswith("/"):
        reason = "is not an absolute path"
    elif normal in _SYSTEM_FOLDERS:
        reason = "is a folder of the system"
    elif os.path.realpath(system.path(normal)) != os.path.realpath(system.root).rstrip("/") + normal:
        reason = "leads through a symlink"
    if reason:
        raise FindingError(
            Finding(
                "reset_data_dir_unsafe",
                "error",
                f"k3s_data_dir is {data_dir!r}, which {reason}",
                "Name the folder that the k3s stage was given.",
                where=data_dir,
            )
        )


def _foreign_unit(unit: str, system: System) -> str:
    """The unit's file when somebody else wrote it, else empty."""
    path = f"{SYSTEMD_DIR}/{unit}.service"
    if system.exists(path):
        return "" if OWN_MARK in system.read(path) else path
    state = _unit_state(unit, system)
    elsewhere = state.get("FragmentPath", "")
    return elsewhere if state.get("LoadState") == "loaded" and elsewhere not in ("", path) else ""


def _unit_state(unit: str, system: System) -> dict[str, str]:
    text = system.run(["systemctl", "show", f"{unit}.service", "--property=LoadState,ActiveState,FragmentPath"])[1]
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def read_processes(system: System) -> list[Process]:
    """The process table. A process that ends meanwhile is left out."""
    found = []
    for name in system.names("/proc"):
        # pid (name) state ppid ...; the name may hold blanks and brackets.
        fields = system.read(f"/proc/{name}/stat").rpartition(")")[2].split() if name.isdigit() else []
        if len(fields) > 1:
            command = system.read(f"/proc/{name}/cmdline").rstrip("\0").split("\0")
            found.append(Process(int(name), int(fields[1]), fields[0], tuple(command)))
    return found


def pod_processes(processes: Sequence[Process]) -> list[Process]:
    """k3s's containerd-shims and all that descends from them: children before the shims, which keep them findable. No zombies."""
    shims = [process for process in processes if _is_shim(process)]
    pods: list[Process] = []
    parents = {shim.pid for shim in shims}
    while parents:
        children = [process for process in processes if process.parent in parents and process not in pods + shims]
        pods += children
        parents = {child.pid for child in children}
    return [process for process in pods + shims if process.state not in "ZX"]


def _is_shim(process: Process) -> bool:
    name = os.path.basename(process.command[0])
    return name.startswith("containerd-shim") and any(CONTAINERD_DIR in word for word in process.command[1:])


def _mounts(system: System) -> list[Any]:
    return parse_mountinfo(system.read("/proc/self/mountinfo"))


def pod_mounts(targets: Sequence[str], data_dir: str) -> list[str]:
    """Those mount points that k3s, its kubelet or its containerd made, in the order of unmounting: the deepest first.

    C(targets) are in the order of the mount table; of two on one place the later covers the earlier, and goes first.
    """
    above = (RUN_DIR, KUBELET_DIR, f"{data_dir}/agent/containerd")
    own = [
        (target.count("/"), position, target)
        for position, target in enumerate(targets)
        if any(target.startswith(folder + "/") for folder in above)
        or re.fullmatch(r"(/var)?/run/netns/cni-[^/]+", target)
    ]
    return [target for _depth, _position, target in sorted(own, reverse=True)]


def read_routes(cidr: str, system: System) -> list[Route]:
    """Routes of the main table that lie inside the pods' CIDR (flannel's host-gw backend makes them)."""
    network = ipaddress.ip_network(cidr)
    if network.prefixlen < 8:
        return []
    status, text = system.run(["ip", "-j", f"-{network.version}", "route", "show", "root", str(network)])
    try:
        entries = json.loads(text or "[]") if status == 0 else []
    except ValueError:
        entries = []
    return [
        Route(network.version, entry["dst"], entry.get("gateway", ""), entry["dev"])
        for entry in entries
        if entry.get("dev")
    ]


def read_rulesets(data_dir: str, system: System) -> Iterable[Ruleset]:
    """What is Kubernetes' own in iptables and ip6tables, in each backend that this host has; k3s's own programs are the last resort."""
    path = f"{_PATH}:{data_dir}/data/current/bin/aux"
    for family, tables in (("iptables", "ip_tables_names"), ("ip6tables", "ip6_tables_names")):
        seen = set()
        for variant in ("", "-nft", "-legacy"):
            save = system.which(f"{family}{variant}-save", path)
            backend = os.path.realpath(save) if save else None
            # The legacy program loads its kernel modules when it is asked; without them it has no rules.
            if not save or backend in seen or ("legacy" in str(backend) and not system.read(f"/proc/net/{tables}")):
                continue
            seen.add(backend)
            found = leftovers(system.run([save])[1])
            if found:
                restore = save[: -len("save")] + "restore"
                lines = [
                    f"{family}: {entry.table}: {line}"
                    for entry in found
                    for line in (*entry.rules, *(f"chain {name}" for name in entry.chains))
                ]
                yield Ruleset(save, restore, removal_script(found), tuple(lines))


def _has_equivalence(data_dir: str, system: System) -> bool:
    text = system.read("/etc/selinux/targeted/contexts/files/file_contexts.subs")
    return any(line.split() == [data_dir, DEFAULT_DATA_DIR] for line in text.splitlines())


def _plan_paths(plan: Plan, data_dir: str, system: System) -> None:
    """Fill in C(paths), C(keep_root) and C(stays)."""
    # Those that stay: the pods' own are unmounted before anything is removed.
    mounted = {mount.target for mount in _mounts(system)} - set(plan.mounts)
    gone: set[str] = set()

    def add(*paths: str) -> None:
        for path in paths:
            if not _has_content(path, mounted, system):
                continue
            plan.paths.append(path)
            if path in mounted:
                plan.keep_root.add(path)
            else:
                gone.add(path)

    def add_matching(folder: str, pattern: str, accept: Callable[[str], bool] = lambda path: True) -> None:
        add(
            *(
                path
                for name in system.names(folder)
                for path in [f"{folder}/{name}"]
                if re.fullmatch(pattern, name) and accept(path)
            )
        )

    def add_if_emptied(folder: str) -> None:
        if folder not in mounted and all(f"{folder}/{name}" in gone for name in system.names(folder)):
            add(folder)

    def is_log_link(path: str) -> bool:
        target = system.path(path)
        return os.path.islink(target) and os.readlink(target).startswith("/var/log/pods/")

    add_matching(*_TEMPORARY_BINARY)
    add(BINARY)
    add(RUN_DIR)
    add_matching("/run/netns", r"cni-.+")
    add("/run/flannel/subnet.env")
    add_if_emptied("/run/flannel")
    add(KUBELET_DIR)
    add_matching("/var/log/containers", r".+\.log", is_log_link)
    add_if_emptied("/var/log/containers")
    add_matching("/var/log/pods", _POD_FOLDER)
    add_if_emptied("/var/log/pods")
    add("/var/lib/cni/networks/cbr0")
    add_if_emptied("/var/lib/cni/networks")
    for folder in ("results", "cache/results"):
        add_matching(f"/var/lib/cni/{folder}", r"(cbr0|cni-loopback)-.+")
        add_if_emptied(f"/var/lib/cni/{folder}")
    add_if_emptied("/var/lib/cni/cache")
    add_if_emptied("/var/lib/cni")
    add(*(f"{data_dir}/{name}" for name in DATA_DIR_ENTRIES))
    add_if_emptied(data_dir)
    for unit in UNITS:
        add(
            f"/etc/default/{unit}",
            f"{SYSTEMD_DIR}/multi-user.target.wants/{unit}.service",
            f"{SYSTEMD_DIR}/{unit}.service",
        )
    for folder, pattern in _TEMPORARY:
        add_matching(folder, pattern)
    add(*(f"{CONFIG_DIR}/{name}" for name in ("token", "registries.yaml", "k3s.yaml")))
    # The proof that this k3s is the collection's: last.
    add(CONFIG)
    add_if_emptied(CONFIG_DIR)
    add_if_emptied(os.path.dirname(CONFIG_DIR))
    _note_what_stays(plan, gone, data_dir, system)


def _note_what_stays(plan: Plan, gone: set[str], data_dir: str, system: System) -> None:
    for folder in (data_dir, CONFIG_DIR):
        left = [name for name in system.names(folder) if f"{folder}/{name}" not in gone | plan.keep_root]
        others = [name for name in left if name != LOST_AND_FOUND]
        if others:
            plan.stays.append(
                Finding(
                    "reset_stays",
                    "info",
                    f"{', '.join(others)}: not made by the collection, so it stays",
                    "Remove it by hand if nobody needs it.",
                    where=folder,
                )
            )


def _refuse_foreign_mounts(plan: Plan, system: System) -> None:
    """Raises FindingError (C(reset_foreign_mount)): a folder that would be removed holds a mount that k3s did not make."""
    own = set(plan.mounts)
    foreign = [
        mount.target
        for mount in _mounts(system)
        if mount.target not in own
        and any(
            mount.target.startswith(path + "/") or (mount.target == path and path not in plan.keep_root)
            for path in plan.paths
        )
    ]
    if foreign:
        raise FindingError(
            *(
                Finding(
                    "reset_foreign_mount",
                    "error",
                    "is a mount that k3s did not make, inside of what would be removed",
                    "Unmount it first, and take it out of /etc/fstab.",
                    where=target,
                )
                for target in foreign
            )
        )


# --- doing -----------------------------------------------------------------------------------------------------------


def carry_out(plan: Plan, system: System, seconds: float = 30) -> None:
    """Remove what the plan names. C(seconds) is how long pods' processes may take to die, and their mounts to come free.

    Raises FindingError at the first thing that does not go; what was removed until then stays removed, and the next run goes on.
    """
    stop_units(system)
    end_processes(system, seconds)
    unmount(plan.data_dir, system, seconds)
    _remove_network(plan, system)
    if plan.selinux:
        equivalence = ["semanage", "fcontext", "--delete", "--equal", DEFAULT_DATA_DIR, plan.data_dir]
        _command(equivalence, "reset_selinux_stays", plan.data_dir, system, 120)
    _remove_paths(plan, system)


def stop_units(system: System) -> None:
    """Stop both units; one that does not exist is stopped."""
    for unit in UNITS:
        state = _unit_state(unit, system)
        if state.get("ActiveState", "inactive") in ("inactive", "failed"):
            continue
        _command(["systemctl", "stop", f"{unit}.service"], "reset_unit_stays", f"{unit}.service", system, _STOP_SECONDS)


def end_processes(system: System, seconds: float) -> None:
    """Kill the pods' processes, then their shims: a shim that went first would leave its children unknown.

    Raises FindingError (C(reset_process_stays)).
    """
    deadline = system.clock() + seconds
    while True:
        processes = pod_processes(read_processes(system))
        if not processes:
            return
        if system.clock() >= deadline:
            raise FindingError(
                *(
                    Finding(
                        "reset_process_stays",
                        "error",
                        f"process {process.pid} ({' '.join(process.command)[:80]}) does not die (state {process.state})",
                        "A process in state D waits for a device or a file system: free it, or reboot the host, then run again.",
                        where=f"/proc/{process.pid}",
                    )
                    for process in processes
                )
            )
        pods = [process for process in processes if not _is_shim(process)]
        for process in pods or processes:
            system.kill(process.pid)
        system.sleep(_POLL_SECONDS)


def unmount(data_dir: str, system: System, seconds: float) -> None:
    """Unmount all that is k3s's, again while something is busy. Raises FindingError (C(reset_mount_stays))."""
    deadline = system.clock() + seconds
    answers: dict[str, str] = {}
    while True:
        targets = pod_mounts([mount.target for mount in _mounts(system)], data_dir)
        if not targets:
            return
        if answers and system.clock() >= deadline:
            raise FindingError(
                *(
                    Finding(
                        "reset_mount_stays",
                        "error",
                        f"cannot be unmounted: {answers.get(target, 'no reason given')}",
                        "Close what uses it (fuser -vm shows it), then run again. Nothing was deleted.",
                        where=target,
                    )
                    for target in targets
                )
            )
        if answers:
            system.sleep(_POLL_SECONDS * 5)
        for target in targets:
            status, text = system.run(["umount", "--", target])
            answers[target] = text.strip() if status else "it was mounted again"


def _remove_network(plan: Plan, system: System) -> None:
    for name in plan.interfaces:
        if system.exists(f"/sys/class/net/{name}"):
            _command(["ip", "link", "delete", name], "reset_interface_stays", name, system)
    for route in plan.routes:
        # Gone with an interface meanwhile is as good.
        system.run(["ip", f"-{route.family}", "route", "del", *route.words])
    for ruleset in plan.rulesets:
        # Read again: rules of pods' ports may have gone with the pods.
        script = removal_script(leftovers(system.run([ruleset.save])[1]))
        if script:
            _command(
                [ruleset.restore, "--noflush", "--wait", "10"], "reset_rules_stay", ruleset.restore, system, text=script
            )


def _remove_paths(plan: Plan, system: System) -> None:
    proof = plan.paths.index(CONFIG) if CONFIG in plan.paths else len(plan.paths)
    for path in plan.paths[:proof]:
        remove(path, system, keep_root=path in plan.keep_root)
    _command(["systemctl", "daemon-reload"], "reset_unit_stays", "systemd", system)
    # systemd remembers a unit that failed beyond its file; it answers 1 for one that it does not remember.
    system.run(["systemctl", "reset-failed", *(f"{unit}.service" for unit in UNITS)])
    for path in plan.paths[proof:]:
        remove(path, system)


def remove(path: str, system: System, keep_root: bool = False) -> None:
    """Remove a file, or a folder with what is in it; with C(keep_root) only the latter. What is not there is no error.

    Links are not followed and no other file system is entered. Raises FindingError (C(reset_path_stays)).
    """
    target = system.path(path)
    try:
        if not stat.S_ISDIR(os.lstat(target).st_mode):
            os.unlink(target)
            return
        folder = os.open(target, _FOLDER)
        try:
            _empty(folder, os.fstat(folder).st_dev, keep=(LOST_AND_FOUND,) if keep_root else ())
        finally:
            os.close(folder)
        if not keep_root:
            os.rmdir(target)
    except FileNotFoundError:
        return
    except OSError as error:
        raise FindingError(
            Finding(
                "reset_path_stays",
                "error",
                f"cannot be removed: {error.strerror}{f' ({error.filename})' if error.filename else ''}",
                "See what holds it (lsattr, mount, fuser -v), then run again.",
                where=path,
            )
        ) from error


def _empty(folder: int, device: int, keep: Sequence[str] = ()) -> None:
    """Remove what is in an open folder, by descriptors: a name that is swapped for a link meanwhile leads nowhere."""
    with os.scandir(folder) as entries:
        names = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries if entry.name not in keep]
    for name, is_folder in names:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        child = os.open(name, _FOLDER, dir_fd=folder)
        try:
            if os.fstat(child).st_dev != device:
                raise OSError(errno.EXDEV, "another file system is mounted in it", name)
            _empty(child, device)
        finally:
            os.close(child)
        os.rmdir(name, dir_fd=folder)


def _command(command: list[str], code: str, where: str, system: System, seconds: float = 30, text: str = "") -> None:
    status, answer = system.run(command, text=text, seconds=seconds)
    if status:
        raise FindingError(
            Finding(
                code,
                "error",
                f"`{' '.join(command)}` failed: {answer.strip()[-300:]}",
                "Mend what it says, then run again.",
                where=where,
            )
        )
