# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs in the guest: two hosts of two rails each and a router between them, as network namespaces with real RDMA devices.

Rail R of host N is fd00:a:R:N::2/64 on netdev railR and RDMA device hNrxeR, with a rule and a table of its own, as on a routed
fabric. Each scene changes one thing, looks, and is put right again. C(results.json) gets what was seen; nothing is judged here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import traceback
from typing import Any

HOSTS, RAILS = (1, 2), (0, 1)
SHARE = "/share/"


def sh(*commands: str, check: bool = True, seconds: float = 60) -> str:
    """Each command's words; what the last one printed."""
    done = None
    for command in commands:
        done = subprocess.run(
            command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=seconds, check=False
        )
        if check and done.returncode:
            raise RuntimeError(f"{command}: {done.stdout.strip()}")
    return done.stdout if done else ""


# --- the hosts and the router ----------------------------------------------------------------------------------------


def lay_out() -> None:
    # Before any namespace exists, as the kernel wants it.
    sh("rdma system set netns exclusive")
    for name in ("h1", "h2", "router"):
        sh(f"ip netns add {name}", f"ip -n {name} link set lo up")
        sh(f"ip netns exec {name} busybox sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.all.accept_dad=0")
    sh("ip netns exec router busybox sysctl -qw net.ipv6.conf.all.forwarding=1")
    # The tools exchange their parameters over TCP, apart from the rails.
    sh("ip link add mgmt netns h1 type veth peer name mgmt netns h2")
    for host in HOSTS:
        sh(f"ip -n h{host} address add 10.9.0.{host}/24 dev mgmt", f"ip -n h{host} link set mgmt up")
        for rail in RAILS:
            near, far = f"rail{rail}", f"h{host}r{rail}"
            sh(f"ip link add {near} netns h{host} mtu 9000 type veth peer name {far} netns router mtu 9000")
            sh(f"ip -n router address add fd00:a:{rail}:{host}::1/64 dev {far}", f"ip -n router link set {far} up")
            sh(f"ip -n h{host} address add fd00:a:{rail}:{host}::2/64 dev {near}", f"ip -n h{host} link set {near} up")
            route(host, rail)
            sh(f"ip netns exec h{host} rdma link add h{host}rxe{rail} type rxe netdev {near}")
            sh(f"rdma dev set h{host}rxe{rail} netns h{host}", check=False)


def route(host: int, rail: int) -> None:
    rule(host, rail, "add")
    sh(f"ip -n h{host} -6 route add default via fd00:a:{rail}:{host}::1 dev rail{rail} table {100 + rail}")


def rule(host: int, rail: int, verb: str) -> None:
    sh(f"ip -n h{host} -6 rule {verb} from fd00:a:{rail}:{host}::/64 table {100 + rail}")


def router_packets() -> dict[str, int]:
    """What came into the router from each rail so far."""
    links = json.loads(sh("ip -n router -j -s link show"))
    return {link["ifname"]: link["stats64"]["rx"]["packets"] for link in links if link["ifname"] != "lo"}


# --- looking ---------------------------------------------------------------------------------------------------------


def look(pings: tuple[int, ...] = (), jumbo: bool = False) -> dict[str, Any]:
    """Both hosts' rails, their probes of each other, and a ping-pong over each of C(pings) from h1 to h2."""
    started = time.monotonic()
    hosts = ask({name: {} for name in ("h1", "h2")})
    peers = [{"host": name, "rails": entry["rails"]} for name, entry in hosts.items()]
    asked = {name: {"host": name, "rails": hosts[name]["rails"], "peers": peers, "jumbo": jumbo} for name in hosts}
    for name, probes in ask(asked).items():
        hosts[name].update(probes)
    exchanges = [pingpong(rail, hosts) for rail in pings]
    return {"hosts": hosts, "pingpong": exchanges, "seconds": round(time.monotonic() - started, 1)}


def pingpong(rail: int, hosts: dict[str, Any]) -> dict[str, Any]:
    """C(ibv_rc_pingpong) over one rail with the GIDs that rail_info chose, and the packets that entered the router by each rail."""
    indexes = {name: entry["rails"][rail]["gid_index"] for name, entry in hosts.items()}
    before = router_packets()
    words = "ip netns exec h{0} ibv_rc_pingpong -e -n 100 -d h{0}rxe{1} -g {2}"
    server = subprocess.Popen(
        words.format(2, rail, indexes["h2"]).split(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_listener()
        client = words.format(1, rail, indexes["h1"]) + " 10.9.0.2"
        done = subprocess.run(
            client.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=40, check=False
        )
        status, output = done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        status, output = 124, "it hung"
    finally:
        server.kill()
        server.wait()
    after = router_packets()
    rose = {link: after[link] - before[link] for link in after}
    return {"rail": rail, "status": status, "output": output[-400:], "router": rose}


def wait_for_listener(port: int = 18515) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        sockets = [line.split() for line in sh("ip netns exec h2 cat /proc/net/tcp /proc/net/tcp6").splitlines()]
        # 0A is a listener; what is left of the last exchange has the port too.
        if any(fields[1].endswith(f":{port:04X}") and fields[3] == "0A" for fields in sockets):
            return
        time.sleep(0.1)


AGENTS: dict[str, subprocess.Popen[str]] = {}


def ask(asked: dict[str, Any]) -> dict[str, Any]:
    """What the collection's code says on each host, side by side. One Python a host stays: starting one takes seconds here."""
    for name, question in asked.items():
        if name not in AGENTS:
            command = ["ip", "netns", "exec", name, sys.executable, __file__, "answer"]
            AGENTS[name] = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        print(json.dumps(question), file=AGENTS[name].stdin, flush=True)
    return {name: json.loads(AGENTS[name].stdout.readline()) for name in asked}


def answer() -> None:
    """In a host's namespace, where sysfs and netlink show that host alone: its rails, or its probes of the peers' rails."""
    from ansible_collections.infera.baremetal.plugins.module_utils import rail_probe, rails
    from ansible_collections.infera.baremetal.plugins.module_utils.host import run_command

    for line in sys.stdin:
        asked = json.loads(line)
        if asked:
            pairs, _unprobed = rail_probe.pair_up(asked["rails"], asked["peers"], "same_index", asked["host"])
            settings = rail_probe.Settings(jumbo=asked["jumbo"], timeout=3)
            result = {"probes": [entry.to_dict() for entry in rail_probe.probe(pairs, settings)]}
        else:
            result = rails.report(prefixes=rails.parse_prefixes(run_command(["ip", "-j", "address", "show"])[1]))
        print(json.dumps(result), flush=True)


# --- scenes ----------------------------------------------------------------------------------------------------------


def healthy() -> dict[str, Any]:
    return look(pings=RAILS, jumbo=True)


def wrong_rail() -> dict[str, Any]:
    """The trap: h1 has no rule for rail 1, and a default route through rail 0 that makes everything look reachable."""
    rule(1, 1, "del")
    sh("ip -n h1 -6 route add default via fd00:a:0:1::1 dev rail0")
    try:
        return look(pings=(1,))
    finally:
        sh("ip -n h1 -6 route del default")
        rule(1, 1, "add")


def no_route() -> dict[str, Any]:
    """The table of h1's rail 1 has lost its default route."""
    sh("ip -n h1 -6 route del default table 101")
    try:
        return look(pings=(1,))
    finally:
        sh("ip -n h1 -6 route add default via fd00:a:1:1::1 dev rail1 table 101")


def small_hop() -> dict[str, Any]:
    """The router's link to h2's rail 1 has MTU 1500."""
    sh("ip -n router link set h2r1 mtu 1500")
    try:
        return look(jumbo=True)
    finally:
        sh("ip -n router link set h2r1 mtu 9000", "ip -n h1 -6 route flush cache")


def gid_order() -> dict[str, Any]:
    """An IPv4 address came while the IPv6 one was away, so that the routed IPv6 GID stands behind it."""
    sh("ip -n h1 address del fd00:a:1:1::2/64 dev rail1", "ip -n h1 address add 10.9.1.2/24 dev rail1")
    sh("ip -n h1 address add fd00:a:1:1::2/64 dev rail1")
    try:
        return look()
    finally:
        sh("ip -n h1 address del 10.9.1.2/24 dev rail1")


def link_down() -> dict[str, Any]:
    sh("ip -n h1 link set rail1 down")
    return look()


def link_up_again() -> dict[str, Any]:
    """The link is back; the address, its GID and the table's route are not."""
    sh("ip -n h1 link set rail1 up")
    return look()


def link_up_again_kept() -> dict[str, Any]:
    """With keep_addr_on_down the address is back with the link; the table's route is not."""
    sh("ip netns exec h1 busybox sysctl -qw net.ipv6.conf.rail1.keep_addr_on_down=1")
    sh("ip -n h1 address add fd00:a:1:1::2/64 dev rail1")
    sh("ip -n h1 -6 route add default via fd00:a:1:1::1 dev rail1 table 101")
    sh("ip -n h1 link set rail1 down", "ip -n h1 link set rail1 up")
    return look()


SCENES = (healthy, wrong_rail, no_route, small_hop, gid_order, link_down, link_up_again, link_up_again_kept)


def main() -> None:
    results: dict[str, Any] = {"kernel": sh("uname -r").strip(), "scenes": {}}
    try:
        lay_out()
        for scene in SCENES:
            results["scenes"][scene.__name__] = scene()
    except Exception:  # Whatever it is, the host is to read it.
        results["error"] = traceback.format_exc()
    with open(SHARE + "results.json", "w") as handle:
        json.dump(results, handle, indent=1)


if __name__ == "__main__":
    answer() if "answer" in sys.argv else main()
