#!/usr/bin/env python3
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What rail_probe costs, against fping and against a loop of ping, in one run.

    tests/bench/probe.py [--peers N] [--rounds N]

One host with 8 rails, a router, and N peers (128), as network namespaces; 3 echoes to each of the 8 x N targets, 200 ms apart,
at most 1,000 packets per second from a rail. In turn, as many rounds as asked for:

- what the module calls (routes, echoes, verdicts), in a Python of its own;
- fping with the same targets, count, interval and pace: one a rail, bound to device and source, all at once.

Then a loop of ping, bound, over 32 of the targets, scaled up; the same call with 16, 64 and 256 peers, which should grow in line
with the targets; and how long the module takes to start as Ansible sends it (AnsiballZ), asked nothing.

It prints ratios and never fails for being slow. The aim is at most 1.2 times fping's time, and 50 times less than the loop's. fping
and ping come from Debian into the cache folder and are not installed. Needs root; takes about a minute.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "infera-lab/bench-probe"
RAILS, COUNT, INTERVAL_MS, PACE_MS, TIMEOUT_MS = 8, 3, 200, 1, 1000
LOOP = 32
GROWTH = (16, 64, 256)
HOST, ROUTER, PEERS = (f"il-t-b{os.getpid()}-{part}" for part in ("host", "router", "peers"))
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / ".collections"), "LC_ALL": "C.UTF-8"}


def main() -> int:
    options = parser().parse_args()
    if options.child:
        return child()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    say(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    fping, ping = tool("fping", "fping"), tool("iputils-ping", "ping")
    try:
        build(max(options.peers, *GROWTH))
        probe(options.peers)  # Not timed: every neighbour entry is there from now on.
        run_fping(fping, options.peers)
        rounds = []
        for number in range(options.rounds):
            pair = [("probe", lambda: probe(options.peers)), ("fping", lambda: run_fping(fping, options.peers))]
            rounds.append({name: step() for name, step in (pair if number % 2 else reversed(pair))})
        report(options.peers, rounds, run_loop(ping, options.peers))
        for peers in GROWTH:
            taken = probe(peers)
            print(
                f"  {peers:4} peers: {line(taken)}; {taken['call_cpu'] * 1e6 / (peers * RAILS):.0f} us of CPU a target"
            )
        print(f"\nAs Ansible sends it, asked nothing: {ansiballz():.2f} s to start and end")
    except KeyboardInterrupt:
        return 130
    finally:
        for name in (HOST, ROUTER, PEERS):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
    return 0


def parser() -> argparse.ArgumentParser:
    main_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    main_parser.add_argument("--peers", type=int, default=128, help="peers in the comparison")
    main_parser.add_argument("--rounds", type=int, default=3, help="how often each is measured; ratios are medians")
    main_parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    return main_parser


# --- the fabric ------------------------------------------------------------------------------------------------------


def source(rail: int) -> str:
    return f"fd00:a:{rail:x}:1::2"


def destination(rail: int, peer: int) -> str:
    return f"fd00:b:{rail:x}:{peer:x}::2"


def build(peers: int) -> None:
    """Host - 8 links - router - one link - the peers, which are addresses of one namespace."""
    for name in (HOST, ROUTER, PEERS):
        run(["ip", "netns", "add", name])
        run(["ip", "netns", "exec", name, "sh", "-c", "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad"])
    run(["ip", "netns", "exec", ROUTER, "sh", "-c", "echo 1 > /proc/sys/net/ipv6/conf/all/forwarding"])
    host, router = ["link set lo up"], [f"link add peers type veth peer name router netns {PEERS}", "link set peers up"]
    for rail in range(RAILS):
        host += [
            f"link add rail{rail} type veth peer name host{rail} netns {ROUTER}",
            f"link set rail{rail} up",
            f"address add {source(rail)}/64 dev rail{rail} nodad",
            f"route add default via fd00:a:{rail:x}:1::1 dev rail{rail} table {100 + rail}",
            f"rule add from fd00:a:{rail:x}:1::/64 table {100 + rail}",
        ]
        router += [f"link set host{rail} up", f"address add fd00:a:{rail:x}:1::1/64 dev host{rail} nodad"]
    router += ["address add fd00:c::1/64 dev peers nodad", "route add fd00:b::/32 via fd00:c::2"]
    far = ["link set lo up", "link set router up", "address add fd00:c::2/64 dev router nodad"]
    far += ["route add default via fd00:c::1"]
    far += [f"address add {destination(rail, peer)}/128 dev lo nodad" for rail in range(RAILS) for peer in range(peers)]
    for name, lines in ((HOST, host), (ROUTER, router), (PEERS, far)):
        run(["ip", "-6", "-n", name, "-batch", "-"], "\n".join(lines))


def rails(host: int | None) -> list[dict[str, Any]]:
    """As rail_info has them: the measured host's, or a peer's."""
    return [
        {
            "index": rail,
            "netdev": f"rail{rail}",
            "address": source(rail) if host is None else destination(rail, host),
            "prefix": 64,
            "mtu": 1500,
        }
        for rail in range(RAILS)
    ]


# --- what is measured ------------------------------------------------------------------------------------------------


def probe(peers: int) -> dict[str, float]:
    options = {
        "rails": rails(None),
        "peers": [{"host": f"gpu{peer}", "rails": rails(peer)} for peer in range(peers)],
        "host": "",
        "pairing": "same_index",
        "count": COUNT,
        "interval": INTERVAL_MS / 1000,
        "timeout": TIMEOUT_MS / 1000,
        "jumbo": False,
        "concurrency": 1024,
        "rate": 1000 / PACE_MS,
    }
    done = run(["ip", "netns", "exec", HOST, sys.executable, __file__, "--child"], json.dumps(options))
    taken = json.loads(done)
    say_unless(taken["received"] == COUNT * RAILS * peers, f"rail_probe lost echoes: {taken['received']} came back")
    return taken


def child() -> int:
    """The code that the module runs: its time and CPU, and what the process used of CPU and memory, Python's start included."""
    from ansible_collections.infera.baremetal.plugins.modules.rail_probe import run as module_run

    options = json.load(sys.stdin)
    started, cpu_before = time.monotonic(), time.process_time()
    result = module_run(options)
    taken, call_cpu = time.monotonic() - started, time.process_time() - cpu_before
    usage = resource.getrusage(resource.RUSAGE_SELF)
    json.dump(
        {
            "seconds": taken,
            "cpu": usage.ru_utime + usage.ru_stime,
            "call_cpu": call_cpu,
            "mib": usage.ru_maxrss / 1024,
            "received": result["summary"]["received"],
        },
        sys.stdout,
    )
    return 0


def run_fping(program: str, peers: int) -> dict[str, float]:
    before, started = cpu_of_children(), time.monotonic()
    running = []
    for rail in range(RAILS):
        command = ["ip", "netns", "exec", HOST, program, "-6", "-q", "-c", str(COUNT), "-p", str(INTERVAL_MS)]
        command += ["-i", str(PACE_MS), "-t", str(TIMEOUT_MS), "-I", f"rail{rail}", "-S", source(rail)]
        command += [destination(rail, peer) for peer in range(peers)]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    summaries = [line for process in running for line in process.communicate()[1].splitlines()]
    taken = time.monotonic() - started
    received = sum(int(text.split("=")[1].split("/")[1]) for text in summaries if "xmt/rcv" in text)
    say_unless(received == COUNT * RAILS * peers, f"fping lost echoes: {received} came back; {summaries[:1]}")
    return {"seconds": taken, "cpu": cpu_of_children() - before, "received": received}


def run_loop(program: str, peers: int) -> float:
    """Seconds for all targets, from LOOP of them, one after the other."""
    started = time.monotonic()
    for number in range(LOOP):
        rail, peer = number % RAILS, number // RAILS
        command = ["ip", "netns", "exec", HOST, program, "-6", "-q", "-c", str(COUNT), "-i", str(INTERVAL_MS / 1000)]
        run([*command, "-I", f"rail{rail}", "-I", source(rail), destination(rail, peer)])
    return (time.monotonic() - started) / LOOP * RAILS * peers


def ansiballz() -> float:
    """Seconds that the module takes on a node when it has nothing to ask, from the file that Ansible would copy there."""
    with tempfile.TemporaryDirectory() as scratch:
        environment = {
            **ENVIRONMENT,
            "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".collections"),
            "ANSIBLE_KEEP_REMOTE_FILES": "true",
            "ANSIBLE_REMOTE_TMP": scratch,
            "ANSIBLE_LOCALHOST_WARNING": "false",
        }
        ansible = [str(ROOT / ".venv/bin/ansible"), "localhost", "-c", "local", "-m", "infera.baremetal.rail_probe"]
        arguments = ["-a", json.dumps({"rails": [], "peers": []})]
        subprocess.run([*ansible, *arguments], env=environment, check=True, capture_output=True, cwd=ROOT)
        (file,) = Path(scratch).glob("*/AnsiballZ_rail_probe.py")
        taken = []
        for _round in range(3):
            started = time.monotonic()
            run([sys.executable, str(file)])
            taken.append(time.monotonic() - started)
        return statistics.median(taken)


# --- words and tools -------------------------------------------------------------------------------------------------


def report(peers: int, rounds: list[dict[str, dict[str, float]]], loop: float) -> None:
    print(f"\n{RAILS} rails to {peers} peers: {RAILS * peers} targets, {COUNT} echoes each, {INTERVAL_MS} ms apart")
    for number, result in enumerate(rounds, 1):
        print(f"  round {number}: rail_probe {line(result['probe'])}; fping {line(result['fping'])}")
    ours = statistics.median(result["probe"]["seconds"] for result in rounds)
    ratio = statistics.median(result["probe"]["seconds"] / result["fping"]["seconds"] for result in rounds)
    print(f"  loop of ping: {loop:.0f} s, scaled up from {LOOP} targets")
    print(f"\nrail_probe / fping:        {ratio:.2f}   (aim: at most 1.2)")
    print(f"loop of ping / rail_probe: {loop / ours:.0f}   (aim: at least 50)\n")


def line(taken: dict[str, float]) -> str:
    memory = f", {taken['mib']:.0f} MiB" if "mib" in taken else ""
    return f"{taken['seconds']:.2f} s ({taken['cpu']:.2f} s of CPU{memory})"


def tool(package: str, program: str) -> str:
    """A program of a Debian package, unpacked in the cache."""
    for attempt in range(2):
        found = [path for path in CACHE.glob(f"{package}/root/**/{program}") if path.parent.name in ("bin", "sbin")]
        if found or attempt:
            break
        (CACHE / package).mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", package], cwd=CACHE / package, check=True, capture_output=True)
        (archive,) = (CACHE / package).glob("*.deb")
        run(["dpkg", "-x", str(archive), str(CACHE / package / "root")])
    if not found:
        raise SystemExit(f"{package} has no {program}")
    return str(found[0])


def run(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:8])} failed: {done.stdout[-500:]}{done.stderr[-2000:]}")
    return done.stdout


def cpu_of_children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def say(text: str) -> None:
    print(f"== {text}", flush=True)


def say_unless(good: bool, text: str) -> None:
    if not good:
        say(text)


if __name__ == "__main__":
    sys.exit(main())
