# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host as it is: what the preflight needs to know of it, and nothing that judges it.

Everything is read below a root folder that a test can replace, and through one runner for commands. What is absent is
None or empty; what is there and cannot be read is listed under C(problems). Nothing is raised and nothing is changed.

This file avoids what Python 3.9 brought at run time, so that a host with 3.8 is told so instead of failing on it.
"""

from __future__ import annotations

import ctypes
import errno
import ipaddress
import itertools
import json
import os
import re
import struct
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple

Runner = Callable[[Sequence[str]], Tuple[int, str]]
# Unit name -> its properties, as systemctl shows them.
Units = Dict[str, Dict[str, str]]

# A file of /proc or /etc that is longer than this is cut: mount tables of hosts with many containers reach a few MiB.
PIECE_BYTES, MAX_PIECES = 64 * 1024, 512
COMMAND_SECONDS = 10

DEFAULT_DATA_DIR = "/var/lib/rancher/k3s"
# What says that a unit or a config file was written by this collection.
OWN_MARK = "infera.baremetal"
# Process name of the listener of port_probe.
PROBE_NAME = "infera-probe"

K3S_UNITS = ("k3s.service", "k3s-agent.service")
OTHER_KUBERNETES_UNITS = (
    "kubelet.service",
    "rke2-server.service",
    "rke2-agent.service",
    "snap.microk8s.daemon-kubelite.service",
    "k0scontroller.service",
    "k0sworker.service",
)
OTHER_KUBERNETES_FILES = ("/etc/kubernetes/kubelet.conf", "/etc/rancher/rke2/config.yaml", "/etc/k0s/k0s.yaml")
FIREWALL_UNITS = ("firewalld.service", "ufw.service", "nftables.service")
TIME_UNITS = (
    "chronyd.service",
    "chrony.service",
    "systemd-timesyncd.service",
    "ntpd.service",
    "ntp.service",
    "ntpsec.service",
)
RUNNING = ("active", "activating", "reloading")
KUBELET_NAMES = ("kubelet", "kubelite")
# What k3s calls itself once it runs; plain "k3s" is also the first moment of `k3s kubectl` and the like.
K3S_NAMES = ("k3s-server", "k3s-agent")
NETWORK_FILESYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "9p", "afs")

_SYMLINK_LIMIT = 40


def run_command(command: Sequence[str]) -> Tuple[int, str]:
    """Exit status and standard output; 127 where the program cannot be started, 124 after COMMAND_SECONDS."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=COMMAND_SECONDS,
            check=False,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin", "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        return 124, ""
    except OSError:
        return 127, ""
    return done.returncode, done.stdout.decode("utf-8", "replace")


@dataclass(frozen=True)
class Mount:
    """One line of the mount table; C(options) are the mount's own, not the file system's."""

    target: str
    source: str
    fstype: str
    options: Tuple[str, ...]


@dataclass(frozen=True)
class Listener:
    """A socket that takes connections (TCP) or datagrams (UDP).

    C(process) and C(unit) are empty where no process holds it (the kernel's own, such as VXLAN's) or none may be seen.
    """

    protocol: str
    address: str
    port: int
    inode: int
    pid: Optional[int] = None
    process: str = ""
    unit: str = ""


@dataclass(frozen=True)
class Wanted:
    """What to look at: the data-dir, ports as C(6443/tcp), kernel modules, digests of images (C(sha256:...))."""

    data_dir: str = ""
    ports: Tuple[str, ...] = ()
    modules: Tuple[str, ...] = ("overlay", "br_netfilter", "vxlan")
    digests: Tuple[str, ...] = ()


class Host:
    """The edge: files below C(root), commands through C(run), a file system's size through C(statvfs)."""

    def __init__(
        self,
        root: str = "/",
        run: Runner = run_command,
        statvfs: Callable[[str], Any] = os.statvfs,
        clock_synchronized: Optional[Callable[[], Optional[bool]]] = None,
    ) -> None:
        self.root = root
        self.run = run
        self.statvfs = statvfs
        self.clock_synchronized = clock_synchronized or kernel_clock_synchronized
        self.problems: List[Dict[str, str]] = []

    def path(self, path: str) -> str:
        return os.path.join(self.root, path.lstrip("/"))

    def problem(self, what: str, error: OSError) -> None:
        self.problems.append({"what": what, "error": error.strerror or str(error)})

    def read(self, path: str, quiet: bool = False) -> Optional[str]:
        """Text of a file; None where it is absent or cannot be read. Bytes that are not UTF-8 become U+FFFD."""
        try:
            with open(self.path(path), "rb") as handle:
                # Piecewise: /proc/sys answers a large read with ENOMEM.
                pieces = itertools.takewhile(len, (handle.read(PIECE_BYTES) for _piece in range(MAX_PIECES)))
                return b"".join(pieces).decode("utf-8", "replace")
        except OSError as error:
            if not quiet and error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.problem(path, error)
            return None

    def line(self, path: str) -> str:
        return (self.read(path) or "").strip()

    def number(self, path: str) -> Optional[int]:
        text = self.line(path)
        return int(text) if text.isdigit() else None

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.path(path))

    def names(self, path: str, quiet: bool = False) -> List[str]:
        """Names in a folder, sorted; empty where it is absent or cannot be read."""
        try:
            return sorted(os.listdir(self.path(path)))
        except OSError as error:
            if not quiet and error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self.problem(path, error)
            return []

    def link(self, path: str) -> Optional[str]:
        try:
            return os.readlink(self.path(path))
        except OSError:
            return None


def read_host(wanted: Wanted, host: Optional[Host] = None) -> Dict[str, Any]:
    """Everything the preflight judges a host by, in types that JSON has. See the module host_info for the shape."""
    host = host or Host()
    first_seen = time.time()
    units = read_units(host)
    mounts = parse_mountinfo(host.read("/proc/self/mountinfo") or "")
    interfaces = read_interfaces(host)
    processes = _kubernetes_processes(host)
    k3s = read_k3s(host, units, processes)
    facts = {
        "hostname": host.line("/proc/sys/kernel/hostname"),
        "machine_id": host.line("/etc/machine-id").replace("uninitialized", ""),
        "product_uuid": (host.read("/sys/class/dmi/id/product_uuid", quiet=True) or "").strip().lower(),
        "os": parse_os_release(host.read("/etc/os-release") or host.read("/usr/lib/os-release") or ""),
        "kernel": host.line("/proc/sys/kernel/osrelease"),
        "architecture": os.uname().machine,
        "python": ".".join(str(part) for part in sys.version_info[:3]),
        "root": os.geteuid() == 0,
        "init": host.line("/proc/1/comm"),
        "cgroup": read_cgroup(host, mounts),
        "data_dir": read_path(host, mounts, wanted.data_dir) if wanted.data_dir else None,
        "stored_digests": stored_digests(host, wanted.data_dir, wanted.digests),
        "interfaces": interfaces,
        "listeners": [asdict(entry) for entry in read_listeners(host, wanted.ports)],
        "swap": parse_swaps(host.read("/proc/swaps") or ""),
        "modules": {name: module_state(host, name) for name in wanted.modules},
        "inotify": {
            "max_user_watches": host.number("/proc/sys/fs/inotify/max_user_watches"),
            "max_user_instances": host.number("/proc/sys/fs/inotify/max_user_instances"),
        },
        "firewall": read_firewall(host, units),
        "selinux": read_selinux(host),
        "k3s": k3s,
        "joined": k3s["own"] and k3s["active"] and _same_path(k3s["data_dir"], wanted.data_dir),
        "other_kubernetes": read_other_kubernetes(host, units, processes),
        "leftovers": read_leftovers(host, k3s, wanted.data_dir),
    }
    facts["clock"] = {
        "first_seen": first_seen,
        "synchronized": host.clock_synchronized(),
        "service": next((name for name in TIME_UNITS if units.get(name, {}).get("ActiveState") == "active"), ""),
    }
    facts["problems"] = host.problems
    facts["clock"]["last_seen"] = time.time()
    return facts


# --- system ----------------------------------------------------------------------------------------------------------


def parse_os_release(text: str) -> Dict[str, Any]:
    """os-release(5): id, version, the ids it is like, and the name for people; empty strings where a key is missing."""
    values = {}
    for line in text.splitlines():
        key, separator, value = line.strip().partition("=")
        if separator and not key.startswith("#"):
            values[key.strip()] = value.strip().strip("'\"")
    return {
        "id": values.get("ID", "").lower(),
        "version": values.get("VERSION_ID", ""),
        "like": values.get("ID_LIKE", "").lower().split(),
        "name": values.get("PRETTY_NAME", ""),
    }


def read_units(host: Host) -> Units:
    """systemd's view of the units that matter, asked once; empty where systemd does not answer."""
    names = K3S_UNITS + OTHER_KUBERNETES_UNITS + FIREWALL_UNITS + TIME_UNITS
    status, text = host.run(["systemctl", "show", "--property=Id,LoadState,ActiveState,FragmentPath", *names])
    return parse_units(text) if status == 0 else {}


def parse_units(text: str) -> Units:
    """Blocks of C(systemctl show), one a unit, keyed by Id."""
    units = {}
    for block in text.split("\n\n"):
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if values.get("Id"):
            units[values["Id"]] = values
    return units


def read_cgroup(host: Host, mounts: Sequence[Mount]) -> Dict[str, Any]:
    """Version (1, 2, or None where no cgroup is mounted), mode (unified, hybrid, legacy) and the enabled controllers.

    Version 2 is what the kubelet sees as such: cgroup2 mounted at /sys/fs/cgroup itself (systemd's "unified").
    """
    at_root = [mount.fstype for mount in mounts if mount.target == "/sys/fs/cgroup"]
    if at_root and at_root[-1] == "cgroup2":
        controllers = host.line("/sys/fs/cgroup/cgroup.controllers").split()
        return {"version": 2, "mode": "unified", "controllers": sorted(controllers)}
    below = [mount.fstype for mount in mounts if mount.target.startswith("/sys/fs/cgroup/")]
    if "cgroup" not in below:
        return {"version": None, "mode": "", "controllers": []}
    return {
        "version": 1,
        "mode": "hybrid" if "cgroup2" in below else "legacy",
        "controllers": parse_proc_cgroups(host.read("/proc/cgroups") or ""),
    }


def parse_proc_cgroups(text: str) -> List[str]:
    """Names of enabled controllers from /proc/cgroups (name, hierarchy, number of cgroups, enabled)."""
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return sorted(row[0] for row in rows if len(row) == 4 and row[3] == "1")


def parse_swaps(text: str) -> List[Dict[str, Any]]:
    """Active swap from /proc/swaps; its sizes are in KiB."""
    rows = [line.split() for line in text.splitlines()[1:]]
    rows = [row for row in rows if len(row) >= 3 and row[2].isdigit()]
    return [{"device": _unescape(row[0]), "bytes": int(row[2]) * 1024} for row in rows]


def kernel_clock_synchronized() -> Optional[bool]:
    """Whether something keeps the clock: adjtimex(2) with a maximum error below 16 s, as timedatectl judges it."""

    class Timex(ctypes.Structure):
        _fields_ = [
            ("modes", ctypes.c_uint),
            ("offset", ctypes.c_long),
            ("freq", ctypes.c_long),
            ("maxerror", ctypes.c_long),
            ("esterror", ctypes.c_long),
            ("status", ctypes.c_int),
            ("rest", ctypes.c_byte * 256),
        ]

    timex = Timex()
    try:
        if ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex)) < 0:
            return None
    except (OSError, AttributeError):
        return None
    return timex.maxerror < 16_000_000


def module_state(host: Host, name: str) -> str:
    """loaded, builtin, loadable, disabled (modprobe.d replaces it), missing, or unknown (no lists to look in)."""
    kernel = host.line("/proc/sys/kernel/osrelease")
    if _module_active(host, name):
        return "loaded"
    lists = f"/lib/modules/{kernel}"
    builtin, loadable = host.read(lists + "/modules.builtin"), host.read(lists + "/modules.dep")
    if builtin is not None and name in _module_names(builtin.splitlines()):
        return "builtin"
    if loadable is None:
        return "unknown"
    if name not in _module_names(line.split(":", 1)[0] for line in loadable.splitlines()):
        return "missing"
    return "disabled" if _module_disabled(host, name) else "loadable"


def _module_active(host: Host, name: str) -> bool:
    if host.exists("/sys/module/" + name):
        return True
    # Built in and without parameters, a module has no folder in /sys/module; these two show themselves elsewhere.
    if name == "overlay":
        return any(line.split()[-1:] == ["overlay"] for line in (host.read("/proc/filesystems") or "").splitlines())
    return name == "br_netfilter" and host.exists("/proc/sys/net/bridge/bridge-nf-call-iptables")


def _module_names(paths: Iterable[str]) -> set:
    return {os.path.basename(path).split(".ko")[0].replace("-", "_") for path in paths}


def _module_disabled(host: Host, name: str) -> bool:
    pattern = re.compile(rf"^\s*install\s+{re.escape(name)}\s+\S*/(true|false)\b", re.MULTILINE)
    for folder in ("/etc/modprobe.d", "/run/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"):
        for entry in host.names(folder):
            if entry.endswith(".conf") and pattern.search(host.read(folder + "/" + entry) or ""):
                return True
    return False


def read_selinux(host: Host) -> Dict[str, Any]:
    """C(mode) enforcing, permissive or disabled; C(k3s_policy) whether k3s's policy is installed, None where disabled."""
    enforce = host.read("/sys/fs/selinux/enforce")
    if enforce is None:
        return {"mode": "disabled", "k3s_policy": None}
    installed = host.run(["rpm", "-q", "k3s-selinux"])[0] == 0
    return {"mode": "enforcing" if enforce.strip() == "1" else "permissive", "k3s_policy": installed}


# --- paths and mounts ------------------------------------------------------------------------------------------------


def parse_mountinfo(text: str) -> List[Mount]:
    """Lines of /proc/PID/mountinfo in their order (proc_pid_mountinfo(5)); a line of another shape is skipped."""
    mounts = []
    for line in text.splitlines():
        left, separator, right = line.partition(" - ")
        before, after = left.split(" "), right.split(" ")
        if separator and len(before) >= 6 and len(after) >= 2:
            mounts.append(Mount(_unescape(before[4]), _unescape(after[1]), after[0], tuple(before[5].split(","))))
    return mounts


def mount_of(mounts: Sequence[Mount], path: str) -> Optional[Mount]:
    """The mount that holds an absolute path: the longest target, of equal ones the last mounted."""
    best = None
    for mount in mounts:
        if _is_below(path, mount.target) and (best is None or len(mount.target) >= len(best.target)):
            best = mount
    return best


def read_path(host: Host, mounts: Sequence[Mount], path: str) -> Dict[str, Any]:
    """A path that need not exist yet: its symlink components, nearest existing parent, mount, size and free space.

    A network mount is not touched: a dead server would hold the reader for ever.
    """
    result: Dict[str, Any] = {
        "path": path,
        "absolute": path.startswith("/"),
        "exists": False,
        "nearest": "",
        "folder": True,
        "symlinks": [],
        "mount": None,
        "total_bytes": None,
        "free_bytes": None,
    }
    if not result["absolute"]:
        return result
    lexical = os.path.normpath("/" + path.strip("/"))
    named = mount_of(mounts, lexical)
    if named and named.fstype in NETWORK_FILESYSTEMS:
        result["mount"], result["nearest"] = _mount_dict(named), named.target
        return result
    nearest, result["symlinks"], rest = _resolve(host, lexical)
    result["exists"], result["nearest"] = not rest, nearest
    result["folder"] = os.path.isdir(host.path(nearest))
    mount = mount_of(mounts, nearest)
    result["mount"] = _mount_dict(mount) if mount else None
    if mount and mount.fstype in NETWORK_FILESYSTEMS:
        return result
    try:
        size = host.statvfs(host.path(nearest))
        result["total_bytes"], result["free_bytes"] = size.f_blocks * size.f_frsize, size.f_bavail * size.f_frsize
    except OSError as error:
        host.problem(nearest, error)
    return result


def _resolve(host: Host, path: str) -> Tuple[str, List[Dict[str, str]], List[str]]:
    """Walk a path: the deepest existing part with links followed, the links on the way, and what is missing below."""
    done, todo, links = "", [part for part in path.split("/") if part], []
    while todo:
        part = todo.pop(0)
        if part == "..":
            done = os.path.dirname(done)
            continue
        candidate = done + "/" + part
        target = host.link(candidate)
        if target is not None and len(links) < _SYMLINK_LIMIT:
            links.append({"component": candidate, "target": target})
            done = "" if target.startswith("/") else done
            todo = [piece for piece in target.split("/") if piece not in ("", ".")] + todo
        elif target is None and host.exists(candidate):
            done = candidate
        else:
            return done or "/", links, [part] + todo
    return done or "/", links, []


def stored_digests(host: Host, data_dir: str, digests: Sequence[str]) -> List[str]:
    """Those of C(digests) that containerd's content store below the data-dir holds."""
    if not data_dir.startswith("/"):
        return []
    blobs = data_dir + "/agent/containerd/io.containerd.content.v1.content/blobs/"
    plain = [digest for digest in digests if re.fullmatch(r"[a-z0-9]+:[0-9a-f]+", digest)]
    return [digest for digest in plain if host.exists(blobs + digest.replace(":", "/"))]


def _mount_dict(mount: Mount) -> Dict[str, Any]:
    return {"target": mount.target, "source": mount.source, "fstype": mount.fstype, "options": list(mount.options)}


def _is_below(path: str, folder: str) -> bool:
    return folder == "/" or path == folder or path.startswith(folder + "/")


def _same_path(one: str, other: str) -> bool:
    return bool(one and other) and os.path.normpath(one) == os.path.normpath(other)


def _unescape(text: str) -> str:
    """Mount tables write blanks, tabs, newlines and backslashes as C(\\ooo)."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match.group(1), 8)), text)


# --- network ---------------------------------------------------------------------------------------------------------


def read_interfaces(host: Host) -> Optional[Dict[str, Dict[str, Any]]]:
    """Interfaces as C(ip -j -d address show) lists them; None where iproute2 does not answer."""
    status, text = host.run(["ip", "-j", "-d", "address", "show"])
    return parse_interfaces(text) if status == 0 else None


def parse_interfaces(text: str) -> Optional[Dict[str, Dict[str, Any]]]:
    """Name -> {up, kind, addresses, vxlan_port}.

    C(up): set up, and with carrier. C(kind): as iproute2 names it (bond, vlan, vxlan, ...), empty for a NIC.
    """
    try:
        entries = json.loads(text or "[]")
    except ValueError:
        return None
    interfaces = {}
    for entry in entries:
        if not isinstance(entry, dict) or "ifname" not in entry:
            continue
        link = entry.get("linkinfo") or {}
        flags = entry.get("flags") or []
        interfaces[str(entry["ifname"])] = {
            "up": "UP" in flags and "LOWER_UP" in flags,
            "kind": str(link.get("info_kind") or ""),
            "addresses": [str(item["local"]) for item in entry.get("addr_info") or [] if item.get("local")],
            "vxlan_port": (link.get("info_data") or {}).get("port") if link.get("info_kind") == "vxlan" else None,
        }
    return interfaces


def read_listeners(host: Host, ports: Sequence[str] = ()) -> List[Listener]:
    """Sockets that hold a port, with the process where it can be seen. C(ports) (C(6443/tcp)) limits it."""
    found = _sockets(host, ports)
    owners = _socket_owners(host, {entry.inode for entry in found if entry.inode})
    if any(entry.inode not in owners for entry in found):
        # A socket may have closed, or changed hands, while processes were looked through: look again, once.
        found = _sockets(host, ports)
        owners.update(_socket_owners(host, {entry.inode for entry in found if entry.inode} - set(owners)))
    return [_with_owner(host, entry, owners.get(entry.inode)) for entry in found]


def _sockets(host: Host, ports: Sequence[str]) -> List[Listener]:
    found = []
    for protocol in ("tcp", "udp"):
        for table in (protocol, protocol + "6"):
            found += parse_sockets(host.read("/proc/net/" + table) or "", protocol)
    return [entry for entry in found if not ports or f"{entry.port}/{entry.protocol}" in ports]


def parse_sockets(text: str, protocol: str) -> List[Listener]:
    """Listening TCP sockets (state 0A) or unconnected UDP sockets (07) of a /proc/net table; odd lines are skipped."""
    state = {"tcp": "0A", "udp": "07"}[protocol]
    listeners = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        if len(fields) < 10 or fields[3] != state:
            continue
        try:
            address, port = fields[1].split(":")
            listeners.append(Listener(protocol, _address(address), int(port, 16), int(fields[9])))
        except ValueError:
            continue
    return listeners


def _address(text: str) -> str:
    """An address of /proc/net: words of 32 bits, each printed in host byte order."""
    words = [int(text[start : start + 8], 16) for start in range(0, len(text), 8)]
    return str(ipaddress.ip_address(struct.pack(f"={len(words)}I", *words)))


def _socket_owners(host: Host, inodes: set) -> Dict[int, int]:
    """Socket inode -> pid, by looking through every process's open files until all are found."""
    owners: Dict[int, int] = {}
    missing = {f"socket:[{inode}]": inode for inode in inodes}
    for pid in _pids(host) if missing else ():
        folder = f"/proc/{pid}/fd"
        # A process may end meanwhile, and another user's is not shown: both are normal.
        for descriptor in host.names(folder, quiet=True):
            inode = missing.pop(host.link(folder + "/" + descriptor) or "", None)
            if inode is not None:
                owners[inode] = pid
        if not missing:
            break
    return owners


def _with_owner(host: Host, entry: Listener, pid: Optional[int]) -> Listener:
    if pid is None:
        return entry
    return replace(entry, pid=pid, process=_process_name(host, pid), unit=_process_unit(host, pid))


def _pids(host: Host) -> Iterator[int]:
    for name in host.names("/proc"):
        if name.isdigit():
            yield int(name)


def _process_name(host: Host, pid: int) -> str:
    return (host.read(f"/proc/{pid}/comm", quiet=True) or "").strip()


def _process_unit(host: Host, pid: int) -> str:
    """The systemd unit of a process, from its cgroups; C(kubepods) for a pod's, empty for a login's process."""
    text = host.read(f"/proc/{pid}/cgroup", quiet=True) or ""
    if "kubepods" in text:
        return "kubepods"
    services = re.findall(r"/([^/\n]+\.service)", text)
    return services[0] if services else ""


def read_firewall(host: Host, units: Units) -> List[Dict[str, str]]:
    """What filters incoming packets: firewalld, ufw, and base chains of nftables (which iptables-nft uses) that drop.

    Chains of firewalld and ufw are not listed a second time. Only looked at, never touched.
    """
    found = []
    if units.get("firewalld.service", {}).get("ActiveState") == "active":
        found.append({"kind": "firewalld", "detail": "firewalld.service is active"})
    if re.search(r"^\s*ENABLED\s*=\s*yes", host.read("/etc/ufw/ufw.conf") or "", re.MULTILINE | re.IGNORECASE):
        found.append({"kind": "ufw", "detail": "/etc/ufw/ufw.conf says ENABLED=yes"})
    known = {entry["kind"] for entry in found}
    for chain in _input_chains(host):
        if ("firewalld" in known and chain["table"] == "firewalld") or ("ufw" in known and chain["name"] == "INPUT"):
            continue
        if chain.get("policy") == "drop":
            found.append(_chain_finding(chain, "policy drop"))
            continue
        where = [str(chain["family"]), str(chain["table"]), str(chain["name"])]
        rules = _nft(host, ["list", "chain"] + where)
        drops = sum(1 for entry in rules if "rule" in entry and _drops(entry["rule"]))
        if drops:
            found.append(_chain_finding(chain, f"{drops} of its rules drop or reject"))
    return found if "ufw" in known else found + _iptables_drops(host)


def _iptables_drops(host: Host) -> List[Dict[str, str]]:
    """Legacy iptables, which nft does not see; and iptables of either kind where nft is not installed.

    The legacy tool is asked only where its table is loaded, since asking would load it.
    """
    tools = []
    if "filter" in (host.read("/proc/net/ip_tables_names") or "").split():
        tools.append("iptables-legacy")
    if not _nft(host, ["list", "chains"]):
        tools.append("iptables-nft")
    found = []
    for tool in tools:
        status, text = host.run([tool, "-S", "INPUT"])
        if status == 0 and re.search(r"^-P INPUT DROP|-j (DROP|REJECT)\b", text, re.MULTILINE):
            found.append({"kind": "iptables", "detail": f"{tool} INPUT: it drops or rejects"})
    return found


def _input_chains(host: Host) -> List[Dict[str, Any]]:
    chains = [entry["chain"] for entry in _nft(host, ["list", "chains"]) if "chain" in entry]
    return [chain for chain in chains if chain.get("hook") == "input" and {"family", "table", "name"} <= set(chain)]


def _nft(host: Host, command: List[str]) -> List[Dict[str, Any]]:
    status, text = host.run(["nft", "-j"] + command)
    try:
        entries = json.loads(text)["nftables"] if status == 0 and text else []
    except (ValueError, KeyError, TypeError):
        return []
    return [entry for entry in entries if isinstance(entry, dict)]


def _drops(rule: Dict[str, Any]) -> bool:
    return any(isinstance(part, dict) and ("drop" in part or "reject" in part) for part in rule.get("expr") or [])


def _chain_finding(chain: Dict[str, Any], what: str) -> Dict[str, str]:
    return {"kind": "nftables", "detail": f"{chain['family']} {chain['table']} {chain['name']}: {what}"}


# --- Kubernetes that is there already --------------------------------------------------------------------------------


def _of_k3s(unit: str) -> bool:
    return unit in K3S_UNITS or unit == "kubepods"


def _kubernetes_processes(host: Host) -> List[Dict[str, Any]]:
    """Processes that are a kubelet or k3s by their name, with their unit."""
    found = []
    for pid in _pids(host):
        name = _process_name(host, pid)
        if name in KUBELET_NAMES + K3S_NAMES:
            found.append({"pid": pid, "process": name, "unit": _process_unit(host, pid)})
    return found


def read_k3s(host: Host, units: Units, processes: Sequence[Dict[str, Any]]) -> Dict[str, Any]:
    """An installed k3s: its unit, whether this collection wrote that, whether it runs, and its configured data-dir."""
    names = [name for name in K3S_UNITS if units.get(name, {}).get("LoadState") == "loaded" or _unit_file(host, name)]
    texts = [_unit_text(host, name, units) for name in names]
    config = _config_texts(host)
    stray = [entry for entry in processes if entry["process"] in K3S_NAMES and not _of_k3s(entry["unit"])]
    states = [units.get(name, {}).get("ActiveState") for name in names]
    installed = bool(names or config or stray)
    marked = texts or config
    return {
        "installed": installed,
        "unit": names[0] if names else "",
        # A service that keeps failing to join is activating for ever: it runs, and is not active.
        "running": bool(stray) or any(state in RUNNING for state in states),
        "active": "active" in states,
        "own": bool(marked) and all(OWN_MARK in text for text in marked) and not stray,
        "data_dir": configured_data_dir(config, texts) if installed else "",
    }


def configured_data_dir(config: Sequence[str], units: Sequence[str]) -> str:
    """The data-dir k3s would use: the command line wins over K3S_DATA_DIR, that over the config files, the last of them."""
    for text in units:
        plain = text.replace("\\\n", " ").replace("'", "").replace('"', "")
        for pattern in (r"(?:--data-dir|\s-d)[=\s]+(/\S+)", r"\bK3S_DATA_DIR=(/\S+)"):
            match = re.search(pattern, plain)
            if match:
                return match.group(1)
    value = DEFAULT_DATA_DIR
    for text in config:
        for match in re.finditer(r"^[\"']?data-dir[\"']?\s*:\s*(.+)$", text, re.MULTILINE):
            value = re.sub(r"\s+#.*$", "", match.group(1)).strip().strip("'\"") or value
    return value


def _unit_file(host: Host, name: str) -> str:
    for folder in ("/etc/systemd/system/", "/usr/local/lib/systemd/system/", "/usr/lib/systemd/system/"):
        if host.exists(folder + name):
            return folder + name
    return ""


def _unit_text(host: Host, name: str, units: Units) -> str:
    """The unit with what adds to it: drop-ins and environment files (upstream's lies beside the unit)."""
    path = units.get(name, {}).get("FragmentPath") or _unit_file(host, name)
    plain = name[: -len(".service")]
    folder = f"/etc/systemd/system/{name}.d"
    drop_ins = [f"{folder}/{entry}" for entry in host.names(folder)]
    files = [path] + drop_ins + [path + ".env", "/etc/default/" + plain, "/etc/sysconfig/" + plain]
    return "\n".join(host.read(file) or "" for file in files)


def _config_texts(host: Host) -> List[str]:
    folder = "/etc/rancher/k3s/config.yaml.d/"
    names = [name for name in host.names(folder) if name.endswith((".yaml", ".yml"))]
    texts = [host.read(path) for path in ["/etc/rancher/k3s/config.yaml"] + [folder + name for name in names]]
    return [text for text in texts if text is not None]


def read_other_kubernetes(host: Host, units: Units, processes: Sequence[Dict[str, Any]]) -> List[str]:
    """Signs of a Kubernetes that is not k3s, each as a phrase: processes, active units, configuration files."""
    signs = [
        f"process {entry['process']} (pid {entry['pid']}{', ' + entry['unit'] if entry['unit'] else ''})"
        for entry in processes
        if entry["process"] in KUBELET_NAMES and not _of_k3s(entry["unit"])
    ]
    signs += [name for name in OTHER_KUBERNETES_UNITS if units.get(name, {}).get("ActiveState") in RUNNING]
    signs += [path for path in OTHER_KUBERNETES_FILES if host.exists(path)]
    return signs


def read_leftovers(host: Host, k3s: Dict[str, Any], wanted_data_dir: str) -> List[str]:
    """What an earlier cluster left on a host whose k3s is not this collection's own: state folders and pods' folders."""
    left = []
    for folder in ("server", "agent"):
        path = DEFAULT_DATA_DIR + "/" + folder
        if not _same_path(DEFAULT_DATA_DIR, wanted_data_dir) and host.exists(path):
            left.append(path)
    if not k3s["installed"]:
        left += ["/var/lib/kubelet/pods/" + name for name in host.names("/var/lib/kubelet/pods")[:1]]
        if wanted_data_dir.startswith("/"):
            left += [path for path in (wanted_data_dir + "/server", wanted_data_dir + "/agent") if host.exists(path)]
    return left
