# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The pod network: Debian's bridge plugin on each node, and routes between the nodes.

# stand-in: k3s's flannel wraps pod traffic into VXLAN by default; this is flannel's host-gw, which needs neighbours on one link.
"""

from __future__ import annotations

import ipaddress
import json
import subprocess
from pathlib import Path
from typing import Any

from .log import log

# Marks the routes made here, so that those of nodes that went away can be told from everybody else's.
ROUTE_PROTOCOL = "86"
_BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")


def cni_configuration(pod_cidr: str) -> dict[str, Any]:
    """The CNI chain for one node."""
    bridge = {
        "type": "bridge",
        "bridge": "cni0",
        "isGateway": True,
        "forceAddress": True,
        "hairpinMode": True,
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": pod_cidr}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    return {
        "cniVersion": "0.4.0",
        "name": "cbr0",
        "plugins": [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}],
    }


def missing_pod_cidrs(nodes: list[dict[str, Any]], cluster_cidr: str) -> dict[str, str]:
    """A free /24 of the cluster's network by name, for every node that has none.

    # stand-in: the controller manager does this too, but in 1.20 only ten seconds after its start.
    """
    taken = {node["spec"].get("podCIDR") for node in nodes}
    free = (
        str(subnet) for subnet in ipaddress.IPv4Network(cluster_cidr).subnets(new_prefix=24) if str(subnet) not in taken
    )
    return {node["metadata"]["name"]: next(free) for node in nodes if not node["spec"].get("podCIDR")}


def wanted_routes(nodes: list[dict[str, Any]], own_name: str) -> dict[str, str]:
    """Gateway by pod CIDR, for every other node that has both."""
    routes = {}
    for node in nodes:
        addresses = [a["address"] for a in node.get("status", {}).get("addresses", ()) if a["type"] == "InternalIP"]
        pod_cidr = node["spec"].get("podCIDR")
        if node["metadata"]["name"] != own_name and pod_cidr and addresses:
            routes[pod_cidr] = addresses[0]
    return routes


def route_commands(current: dict[str, str], wanted: dict[str, str], interface: str) -> list[list[str]]:
    """The `ip route` commands that lead from the one to the other."""
    gone = [["ip", "route", "del", cidr, "proto", ROUTE_PROTOCOL] for cidr in sorted(current.keys() - wanted.keys())]
    device = ["dev", interface] if interface else []
    new = [
        ["ip", "route", "replace", cidr, "via", gateway, *device, "proto", ROUTE_PROTOCOL]
        for cidr, gateway in sorted(wanted.items())
        if current.get(cidr) != gateway
    ]
    return gone + new


def apply_routes(nodes: list[dict[str, Any]], own_name: str, interface: str) -> None:
    """Make the routes to the other nodes' pods what the API says."""
    listed = json.loads(
        subprocess.run(
            ["ip", "-j", "-4", "route", "show", "proto", ROUTE_PROTOCOL], capture_output=True, check=True
        ).stdout
        or b"[]"
    )
    current = {route["dst"]: route.get("gateway", "") for route in listed}
    for command in route_commands(current, wanted_routes(nodes, own_name), interface):
        log("info", " ".join(command))
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            log("error", f"{' '.join(command)}: {done.stderr.strip()}")


def prepare_kernel(cluster_cidr: str) -> bool:
    """Forwarding, and flannel's masquerading of what pods send beyond the cluster's pods.

    Returns whether bridged traffic passes iptables; where it does not, kube-proxy has to masquerade everything.
    """
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    for rule in (["-d", cluster_cidr, "-j", "RETURN"], ["!", "-d", "224.0.0.0/4", "-j", "MASQUERADE"]):
        rule = ["-s", cluster_cidr, *rule, "-m", "comment", "--comment", "flanneld masq"]
        if subprocess.run(
            ["iptables", "-w", "-t", "nat", "-C", "POSTROUTING", *rule], capture_output=True, check=False
        ).returncode:
            subprocess.run(["iptables", "-w", "-t", "nat", "-A", "POSTROUTING", *rule], check=True)
    try:
        _BRIDGE_FILTER.write_text("1", encoding="ascii")
    except OSError:
        log("info", f"stand-in: this kernel has no {_BRIDGE_FILTER}; kube-proxy masquerades all service traffic")
        return False
    return True


def interface_exists(name: str) -> bool:
    """Whether this host has the interface."""
    return Path("/sys/class/net", name).exists()


def default_route_interface() -> str:
    """The interface of the IPv4 default route, which k3s and flannel take when they are told none; empty without one."""
    for line in Path("/proc/net/route").read_text(encoding="ascii").splitlines()[1:]:
        fields = line.split()
        if fields[1] == "00000000":
            return fields[0]
    return ""


def first_address(interface: str) -> str:
    """The interface's first global IPv4 address, or empty."""
    command = ["ip", "-j", "-4", "address", "show", "dev", interface, "scope", "global"]
    done = subprocess.run(command, capture_output=True, check=False)
    addresses = [item for link in json.loads(done.stdout or b"[]") for item in link.get("addr_info", ())]
    return addresses[0]["local"] if addresses else ""
