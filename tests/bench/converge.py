#!/usr/bin/env python3
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a converge of the whole site costs in the lab, against the published steps in a plain shell script.

    tests/bench/converge.py [--rounds N] [--keep]

Brings new nodes up for each measurement, then takes, in turn and in the same lab with the same files:

- plain.sh: install the server, join the agent, import the images, apply the manifests, wait, one completion;
- the first converge of playbooks/site.yml, from nodes that hold nothing to the same completion;
- the second converge, which has nothing to change.

Before that comes one run that is not timed: it counts tasks and ssh round trips per host (ssh and sftp commands over the
open connection, from Ansible's own -vvv), and hands the objects that the roles build to plain.sh.

It prints times, ratios, and where the time of the site run goes; it never fails for being slow. The aim is a first converge
of at most 1.5 times the script, and a second of at most 0.25 times the first. Rounds alternate in order; with several, the
ratios are medians. Raw numbers are left in .cache/bench/. Needs root, as the lab does; takes about five minutes a round.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / ".cache/bench"
ENTER = str(ROOT / "tests/lab/enter")
INVENTORY = "inventories/lab"
SITE = ["ansible-playbook", "-i", INVENTORY, "playbooks/site.yml"]
# What goes over a connection that is already open, as the ssh plugin writes it with -vvv.
ROUND_TRIP = re.compile(r"^<([^>]+)> SSH: EXEC (\S+)", re.MULTILINE)
TOP = 12


def main() -> int:
    options = parser().parse_args()
    say(f"machine: {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    fresh_nodes()
    OUT.mkdir(parents=True, exist_ok=True)
    hosts = inventory()
    say("counting run (not timed)")
    counted = {"first": converge("count-first", count=True), "second": converge("count-second", count=True)}
    plan = write_plan(counted["first"]["facts"], hosts)
    rounds = [measure(number, plan) for number in range(1, options.rounds + 1)]
    (OUT / "result.json").write_text(json.dumps(rounds, indent=2))
    report(rounds, counted, hosts)
    if not options.keep:
        lab("down")
    return 0


def parser() -> argparse.ArgumentParser:
    main_parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    main_parser.add_argument("--rounds", type=int, default=1, help="how often each is measured")
    main_parser.add_argument("--keep", action="store_true", help="leave the lab up")
    return main_parser


def measure(number: int, plan: Path) -> dict[str, Any]:
    """One round: both ways from new nodes, in an order that alternates."""
    result: dict[str, Any] = {}

    def plain() -> None:
        fresh_nodes()
        result["plain"] = run_plain(plan)

    def site() -> None:
        fresh_nodes()
        result["first"] = converge("first")
        result["second"] = converge("second")

    for step in (plain, site) if number % 2 else (site, plain):
        step()
    say(
        f"round {number}: plain {seconds(result['plain'])}, first {seconds(result['first'])}, second {seconds(result['second'])}"
    )
    return result


def run_plain(plan: Path) -> dict[str, Any]:
    load, start, cpu = os.getloadavg()[0], time.monotonic(), cpu_seconds()
    done = subprocess.run(
        ["bash", ENTER, str(ROOT / "tests/bench/plain.sh"), str(plan)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    took = time.monotonic() - start
    if done.returncode:
        raise SystemExit(f"plain.sh failed:\n{done.stdout}{done.stderr}")
    steps = [line.split(maxsplit=2)[1:] for line in done.stdout.splitlines() if line.startswith("step ")]
    return {
        "seconds": took,
        "cpu": cpu_seconds() - cpu,
        "load": load,
        "steps": [{"name": name, "seconds": float(spent)} for spent, name in steps],
    }


def converge(name: str, *, count: bool = False) -> dict[str, Any]:
    """One run of site.yml. Counting takes -vvv, which costs time of its own."""
    file = OUT / f"{name}.json"
    file.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "tests/bench/callback"),
        "ANSIBLE_CALLBACKS_ENABLED": "bench",
        "ANSIBLE_FORCE_COLOR": "0",
        "BENCH_FILE": str(file),
    }
    load, start, cpu = os.getloadavg()[0], time.monotonic(), cpu_seconds()
    command = ["bash", ENTER, *SITE, *(["-vvv"] if count else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    took = time.monotonic() - start
    if done.returncode:
        raise SystemExit(f"{shlex.join(SITE)} failed:\n{done.stdout[-6000:]}{done.stderr[-2000:]}")
    result = {**json.loads(file.read_text()), "seconds": took, "cpu": cpu_seconds() - cpu, "load": load}
    if count:
        trips = ROUND_TRIP.findall(done.stdout)
        result["round_trips"] = collections.Counter(address for address, _program in trips)
        result["transfers"] = collections.Counter(
            address for address, program in trips if os.path.basename(program) in ("sftp", "scp")
        )
    return result


def cpu_seconds() -> float:
    """CPU time of the commands that have ended: what they cost on this side of ssh."""
    times = os.times()
    return times.children_user + times.children_system


def fresh_nodes() -> None:
    lab("up", "--fresh", "--nodes", "2")


def lab(*arguments: str) -> None:
    """The lab's own command, without its progress."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests/lab")}
    done = subprocess.run(
        [sys.executable, "-m", "infera_lab", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the lab: {done.stdout[-2000:]}{done.stderr}")


def inventory() -> dict[str, dict[str, Any]]:
    """Variables by host, groups merged in."""
    done = subprocess.run(
        ["bash", ENTER, "ansible-inventory", "-i", INVENTORY, "--list"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        check=True,
    )
    listed = json.loads(done.stdout)
    return {
        host: {**values, "server": host in listed["k3s_server"]["hosts"]}
        for host, values in listed["_meta"]["hostvars"].items()
    }


def write_plan(facts: dict[str, Any], hosts: dict[str, dict[str, Any]]) -> Path:
    """The file of shell variables for plain.sh, and the manifests beside it."""
    for name, fact in (("device-plugin", "_gpu_plugin_objects"), ("serving", "_serving_objects")):
        (OUT / f"{name}.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": facts[fact]}))
    server, agent = sorted(hosts, key=lambda host: not hosts[host]["server"])
    values, deployed = hosts[server], facts["_serving_plan"]
    images = [values["lab_images"][key] for key in ("engine", "overlay", "device_plugin")]
    variables = {
        "SERVER": server,
        "AGENT": agent,
        "SERVER_ADDRESS": values["ansible_host"],
        "AGENT_ADDRESS": hosts[agent]["ansible_host"],
        "INTERFACE": "eth0",  # The management card of every node of the lab.
        "DATA_DIR": values["k3s_data_dir"],
        "K3S": f"{values['lab_k3s']['directory']}/k3s",
        "AIRGAP": f"{values['lab_k3s']['directory']}/{values['lab_k3s']['airgap']}",
        "IMAGES": "\n".join(f"{image['name']} {image['archive']}" for image in images),
        "MANIFESTS": str(OUT),
        "KUBECONFIG": str(OUT / "kubeconfig"),
        "NAMESPACE": deployed["namespace"],
        "DEPLOYMENTS": " ".join(pod["instance"] for pod in deployed["pods"]),
        "SERVICE": deployed["service"],
        "PORT": str(deployed["port"]),
        "MODEL": deployed["model"],
        "PROMPT": "What is the capital of France?",
    }
    path = OUT / "plan.sh"
    path.write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in variables.items()))
    return path


def report(rounds: list[dict[str, Any]], counted: dict[str, dict[str, Any]], hosts: dict[str, dict[str, Any]]) -> None:
    print("\nPlain script, last round")
    for step in rounds[-1]["plain"]["steps"]:
        print(f"  {step['seconds']:7.1f} s  {step['name']}")
    for which in ("first", "second"):
        print(f"\nWhere the {which} converge's time goes, last round ({seconds(rounds[-1][which])})")
        for spent, name in wall_times(rounds[-1][which])[:TOP]:
            print(f"  {spent:7.1f} s  {name}")
        for host in hosts:
            print(
                f"  on {host}: "
                + ", ".join(f"{spent:.1f} s {name}" for spent, name in host_times(rounds[-1][which], host)[:5])
            )
    print("\nTasks and ssh round trips per host (transfers among them)")
    for which, run in counted.items():
        for host, values in hosts.items():
            address = values.get("ansible_host", host)
            tasks = collections.Counter(entry["status"] for entry in run["results"] if entry["host"] == host)
            changed = sum(entry["changed"] for entry in run["results"] if entry["host"] == host)
            print(
                f"  {which:6} {host}: {tasks['ok']} tasks ({changed} changed, {tasks['skipped']} skipped), "
                f"{run['round_trips'][address]} round trips ({run['transfers'][address]})"
            )
    print("\nTimes (CPU seconds on the controller; load when it began)")
    for number, result in enumerate(rounds, 1):
        print(
            "  "
            + f"round {number}: "
            + ", ".join(
                f"{which} {seconds(result[which])} ({result[which]['cpu']:.1f} s; {result[which]['load']:.1f})"
                for which in ("plain", "first", "second")
            )
        )
    first = statistics.median(result["first"]["seconds"] / result["plain"]["seconds"] for result in rounds)
    second = statistics.median(result["second"]["seconds"] / result["first"]["seconds"] for result in rounds)
    print(f"\nfirst converge / plain script: {first:.2f}   (aim: at most 1.5)")
    print(f"second converge / first:       {second:.2f}   (aim: at most 0.25)")


def wall_times(run: dict[str, Any]) -> list[tuple[float, str]]:
    """(seconds, task), the longest first: from a task's start to the next one's, since hosts go in step."""
    begins = [*(task["at"] for task in run["tasks"]), run["end"]]
    spent: collections.Counter[str] = collections.Counter()
    for task, begin, end in zip(run["tasks"], begins, begins[1:]):
        spent[task["name"]] += end - begin
    return sorted(((value, name) for name, value in spent.items()), reverse=True)


def kind_times(run: dict[str, Any]) -> list[tuple[float, int, str]]:
    """(seconds, tasks, action), the longest first."""
    action_of = {entry["task"]: entry["action"] for entry in run["results"]}
    begins = [*(task["at"] for task in run["tasks"]), run["end"]]
    spent: collections.Counter[str] = collections.Counter()
    number: collections.Counter[str] = collections.Counter()
    for task, begin, end in zip(run["tasks"], begins, begins[1:]):
        action = action_of.get(task["name"], "meta")
        spent[action] += end - begin
        number[action] += 1
    return sorted(((value, number[action], action) for action, value in spent.items()), reverse=True)


def host_times(run: dict[str, Any], host: str) -> list[tuple[float, str]]:
    spent: collections.Counter[str] = collections.Counter()
    for entry in run["results"]:
        if entry["host"] == host:
            spent[entry["task"]] += entry["seconds"]
    return sorted(((value, name) for name, value in spent.items()), reverse=True)


def seconds(result: dict[str, Any]) -> str:
    return f"{result['seconds']:.1f} s"


def say(text: str) -> None:
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
