# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One side of C(ibv_rc_pingpong) and C(ib_write_bw) over pairs of rails: what they measured, or why they could not.

Every tool runs below C(timeout) of coreutils, so that it ends even when whoever started it was killed. A server's words are kept in a
folder until they are asked for, since a failure is often told by the server alone (its queue pair, its GID, its route back).
What the tools print: rdma-core C(libibverbs/examples/rc_pingpong.c), perftest C(src/write_bw.c), C(src/perftest_resources.c).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import sysfs

TOOLS = {"pingpong": "ibv_rc_pingpong", "bandwidth": "ib_write_bw"}
FOLDER = "/run/infera-rdma-test"
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"
MAX_OUTPUT = 1 << 16
ITERATIONS = 100
# How long a client waits for a server that does not listen yet: opening a device takes a moment.
CONNECT_SECONDS, CONNECT_PAUSE = 10.0, 0.5
# Drivers bring their counters up to date now and then.
COUNTER_SECONDS, COUNTER_PAUSE = 1.0, 0.2
KILL_SECONDS = 2

# What a tool prints -> cause, and what that means for people. The first that matches counts.
CAUSES = (
    (r"Failed to modify QP (\d+ )?to RTR", "queue_pair", "the queue pair could not be set up (RTR)"),
    (r"sgid of index|GID index|Incompatibility issue with GID", "gid", "the GID cannot be used"),
    (
        r"IB device .* not found|Did not detect devices|Unable to find the Infiniband|Failed to get IB devices|No IB devices",
        "device",
        "libibverbs does not show the device",
    ),
    (r"allocate MR|register MR|create mr\b|Couldn't allocate work buf", "memory", "memory could not be registered"),
    (
        r"transport retry counter exceeded|Failed status \D*12\b|RNR retry",
        "unacknowledged",
        "packets were sent and not acknowledged",
    ),
    (r"Failed status|syndrom", "completion", "the exchange ended with an error"),
    (r"Couldn't listen to port|Failed to bind socket", "port_in_use", "the TCP port is taken"),
    (r"Couldn't connect to \S+:\d+", "connection", "the server's TCP port cannot be reached"),
    (
        r"Couldn't (read|send)|(from|to) socket/rdma_cm|Failed to exchange|accept\(\) failed",
        "peer",
        "the other end gave up",
    ),
)


@dataclass(frozen=True)
class RailTest:
    """A rail of this host and its partner. C(peer_address) and C(tcp_port) (and the next port) are where the tools agree over TCP.

    C(bandwidth): whether both ends have perftest.
    """

    rail: int
    rdma_device: str
    port: int
    gid_index: int
    netdev: str
    peer: str
    peer_rail: int
    peer_address: str
    tcp_port: int
    bandwidth: bool = True

    @property
    def kinds(self) -> List[str]:
        return list(TOOLS) if self.bandwidth else ["pingpong"]

    def command(self, kind: str, seconds: int, client: bool) -> List[str]:
        if kind == "pingpong":
            # Events instead of polling: on few cores polling takes the time that the other end needs.
            own = f"-e -g {self.gid_index} -n {ITERATIONS} -p {self.tcp_port}"
        else:
            own = f"-F --report_gbits -x {self.gid_index} -D {seconds} -p {self.tcp_port + 1}"
        device = ["-d", self.rdma_device, "-i", str(self.port)]
        return [TOOLS[kind], *device, *own.split(), *([self.peer_address] if client else [])]


@dataclass(frozen=True)
class Outcome:
    """What one tool said. C(bytes) is what this end sent at least, C(sent) by how much the rail's own C(counter) rose meanwhile."""

    ok: bool
    cause: str = ""
    error: str = ""
    usec: Optional[float] = None
    gbps: Optional[float] = None
    bytes: Optional[int] = None
    sent: Optional[int] = None
    counter: str = ""

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)


def parse_tests(given: Iterable[Mapping[str, Any]]) -> List[RailTest]:
    """Entries with the keys and types of RailTest; ValueError for what a tool would take for something else."""
    tests = [RailTest(**entry) for entry in given]
    for test in tests:
        for name in ("rdma_device", "peer_address"):
            if not getattr(test, name) or getattr(test, name).startswith("-"):
                raise ValueError(f"tests: {name} is {getattr(test, name)!r}")
        if not 1 <= test.tcp_port < 65535:
            raise ValueError(
                f"tests: tcp_port is {test.tcp_port}; it must be from 1 to 65534: the next one is used, too"
            )
    return tests


def missing_tools(path: str = PATH) -> List[str]:
    return [tool for tool in TOOLS.values() if shutil.which(tool, path=path) is None]


# --- what the tools print ---------------------------------------------------------------------------------------------


def parse(kind: str, text: str) -> Outcome:
    """An outcome that is ok where the tool printed a result, otherwise with the cause as far as its words give one."""
    found = _pingpong(text) if kind == "pingpong" else _bandwidth(text)
    return found or _failure(text)


def _pingpong(text: str) -> Optional[Outcome]:
    moved = re.search(r"(\d+) bytes in [\d.]+ seconds", text)
    each = re.search(r"iters in [\d.]+ seconds = (\d+\.\d+) usec/iter", text)
    if not moved or not each:
        return None
    # It counts both directions.
    return Outcome(True, usec=float(each.group(1)), bytes=int(moved.group(1)) // 2)


def _bandwidth(text: str) -> Optional[Outcome]:
    """The row below the table's head: bytes, iterations, peak, average, message rate. An average of 0 is none: seen on a busy host."""
    match = re.search(r"^ *#bytes .*BW average\[Gb/sec\].*\n *(\d+) +(\d+) +[\d.]+ +(\d+\.\d+)\s", text, re.MULTILINE)
    if not match:
        return None
    size, count, average = match.groups()
    return Outcome(True, gbps=float(average) or None, bytes=int(size) * int(count))


def _failure(text: str) -> Outcome:
    lines = [line.strip() for line in text.splitlines() if line.strip(" -*")]
    for pattern, cause, meaning in CAUSES:
        told = next((line for line in lines if re.search(pattern, line)), None)
        if told:
            return Outcome(False, cause, f"{meaning}: {told}")
    return Outcome(False, "unknown", lines[-1] if lines else "it said nothing")


# --- the client -------------------------------------------------------------------------------------------------------


def run_client(
    tests: Sequence[RailTest],
    seconds: int,
    timeout: float,
    sysfs_root: str = sysfs.ROOT,
    path: str = PATH,
    connect_seconds: float = CONNECT_SECONDS,
) -> List[Dict[str, Any]]:
    """Every test's ping-pong side by side, then the bandwidth of those that came through; one result a test, in their order."""

    def measure(kind: str, test: RailTest, limit: float) -> Outcome:
        counter, before = sent_bytes(sysfs_root, test)
        outcome = _ask(kind, test, seconds, limit, path, connect_seconds)
        if outcome.ok and before is not None:
            sent = _risen(sysfs_root, test, before, outcome.bytes or 0)
            return replace(outcome, sent=sent, counter=counter)
        return outcome

    with ThreadPoolExecutor(max(1, len(tests))) as pool:
        pings = list(pool.map(lambda test: measure("pingpong", test, timeout), tests))
        through = [test for test, ping in zip(tests, pings) if ping.ok and test.bandwidth]
        widths = dict(zip(through, pool.map(lambda test: measure("bandwidth", test, timeout + seconds), through)))
    return [
        {
            "rail": test.rail,
            "peer": test.peer,
            "peer_rail": test.peer_rail,
            "pingpong": ping.to_dict(),
            "bandwidth": widths[test].to_dict() if test in widths else None,
        }
        for test, ping in zip(tests, pings)
    ]


def _ask(kind: str, test: RailTest, seconds: int, limit: float, path: str, connect_seconds: float) -> Outcome:
    """Once, and again while nothing listens yet."""
    deadline = time.monotonic() + connect_seconds
    while True:
        status, text = _run(test.command(kind, seconds, client=True), limit, path)
        outcome = parse(kind, text)
        if outcome.ok or outcome.cause != "connection" or time.monotonic() >= deadline:
            break
        time.sleep(CONNECT_PAUSE)
    # What `timeout` ends with after TERM and after KILL.
    if not outcome.ok and status in (124, 137) and outcome.cause == "unknown":
        return Outcome(False, "hung", f"the exchange did not end within {limit:g} s")
    return outcome


def _run(command: Sequence[str], limit: float, path: str) -> Tuple[int, str]:
    """Exit status and what it printed; 124 where it had to be ended after C(limit) seconds."""
    process = _start(command, limit, path, subprocess.PIPE)
    try:
        output, _none = process.communicate(timeout=limit + 2 * KILL_SECONDS + 1)
    except subprocess.TimeoutExpired:
        # Not even KILL helped: it hangs in the kernel.
        return 124, ""
    return process.returncode, output[:MAX_OUTPUT].decode("utf-8", "replace")


def _start(command: Sequence[str], limit: float, path: str, output: Any) -> subprocess.Popen:
    return subprocess.Popen(
        ["timeout", f"--kill-after={KILL_SECONDS}", f"{limit:g}", *command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        env={"PATH": path, "LC_ALL": "C"},
    )


# --- counters ---------------------------------------------------------------------------------------------------------


def sent_bytes(sysfs_root: str, test: RailTest) -> Tuple[str, Optional[int]]:
    """What the rail has sent so far, with the counter's path below sysfs; ("", None) where it has none.

    ionic counts RDMA's bytes apart; C(port_xmit_data) is in words of 4 bytes (sysfs-class-infiniband). A software device (rxe) counts what
    it hands over, by whichever netdev it leaves, so there the rail's netdev is asked; a NIC's netdev does not see its RDMA.
    """
    device = f"class/infiniband/{test.rdma_device}"
    counters = [
        (f"{device}/ports/{test.port}/hw_counters/tx_rdma_ucast_bytes", 1),
        (f"{device}/ports/{test.port}/counters/port_xmit_data", 4),
    ]
    if not os.path.exists(os.path.join(sysfs_root, device, "device")):
        counters = [(f"class/net/{test.netdev}/statistics/tx_bytes", 1)]
    for counter, unit in counters:
        value = sysfs.read_int(sysfs_root, counter)
        if value is not None:
            return counter, value * unit
    return "", None


def _risen(sysfs_root: str, test: RailTest, before: int, expected: int) -> Optional[int]:
    deadline = time.monotonic() + COUNTER_SECONDS
    while True:
        _counter, now = sent_bytes(sysfs_root, test)
        risen = None if now is None or now < before else now - before
        if risen is None or risen >= expected or time.monotonic() >= deadline:
            return risen
        time.sleep(COUNTER_PAUSE)


# --- the servers ------------------------------------------------------------------------------------------------------


def start_servers(
    tests: Sequence[RailTest], seconds: int, lifetime: int, folder: str = FOLDER, path: str = PATH
) -> None:
    """Start the tools for every test. They end after one client, or after C(lifetime) seconds.

    What an earlier round left running is ended first, and its words are kept. OSError where the folder cannot be written, or C(timeout) is
    not there.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    earlier = _entries(folder)
    for entry in earlier:
        _end(entry)
    wanted = [(test, kind) for test in tests for kind in test.kinds]
    for number, (test, kind) in enumerate(wanted, len(earlier)):
        base = os.path.join(folder, str(number))
        with open(base + ".out", "wb") as output:
            process = _start(test.command(kind, seconds, client=False), lifetime, path, output)
        entry = {"rail": test.rail, "peer": test.peer, "peer_rail": test.peer_rail, "kind": kind}
        with open(base + ".json", "w", encoding="utf-8") as handle:
            json.dump({**entry, "pid": process.pid, "started": _started(process.pid)}, handle)


def stop_servers(folder: str = FOLDER) -> List[Dict[str, Any]]:
    """End what still runs, forget all, and return what each server said: C({rail, peer, peer_rail, kind, ok, cause, error})."""
    told = []
    for entry in _entries(folder):
        outcome = parse(entry["kind"], sysfs.read_text(folder, entry["number"] + ".out") or "")
        if _end(entry) and not outcome.ok and outcome.cause == "unknown":
            outcome = Outcome(False, "waiting", "no client came, or the exchange hung")
        keys = ("rail", "peer", "peer_rail", "kind")
        told.append(
            {**{key: entry[key] for key in keys}, "ok": outcome.ok, "cause": outcome.cause, "error": outcome.error}
        )
    shutil.rmtree(folder, ignore_errors=True)
    return told


def _entries(folder: str) -> List[Dict[str, Any]]:
    found = []
    for name in sysfs.names(folder):
        if name.endswith(".json"):
            try:
                entry = json.loads(sysfs.read_text(folder, name) or "")
                found.append({**entry, "pid": int(entry["pid"]), "number": name[: -len(".json")]})
            except (ValueError, KeyError, TypeError):
                continue
    return found


def _started(pid: int) -> str:
    """When a process started (proc(5), field 22), by which a number that was given again is told; empty where it is gone."""
    fields_after_name = (sysfs.read_text("/proc", str(pid), "stat") or "").rpartition(")")[2].split()
    # A process that has ended and is not yet buried counts as gone.
    return fields_after_name[19] if len(fields_after_name) > 19 and fields_after_name[0] != "Z" else ""


def _end(entry: Mapping[str, Any]) -> bool:
    """End a server with its group, if it is still the one that was started; whether it ran."""

    def runs() -> bool:
        return bool(entry["started"]) and _started(entry["pid"]) == entry["started"]

    if not runs():
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(entry["pid"], number)
        except OSError:
            break
        deadline = time.monotonic() + KILL_SECONDS
        while runs() and time.monotonic() < deadline:
            time.sleep(0.02)
        if not runs():
            break
    return True
