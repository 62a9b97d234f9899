# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lab's network. Every link is made inside a namespace of the lab: the machine's own never sees one.

ctl   bridge mgmt0 10.77.0.1, one port per node's eth0                    (Ansible and kubectl run here)
fab   bridge wan0 203.0.114.1, one port per node's pub0; it leads nowhere
      one veth per rail, fd00:77:RAIL:NODE::1, and the only routes between rails: one plane per rail index
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .plan import DOCKER, Lab, Node, Rail, mac
from .shell import lines, output, output_json, run, succeeds

NAMESPACES = Path("/run/netns")


def up(lab: Lab, nodes: Sequence[Node]) -> None:
    """Bring every namespace, link, address, route and rule to what the plan says; what stands already stays."""
    for namespace in (lab.controller_namespace, lab.fabric_namespace, *(node.namespace for node in nodes)):
        _ensure_namespace(namespace)
    _bridge(lab.controller_namespace, "mgmt0", mac(0, 0, 1), str(lab.controller_address))
    _bridge(lab.fabric_namespace, "wan0", mac(0, 0, 2), str(lab.decoy_gateway))
    # The fabric routes between rails, and says "unreachable" to what a node sends to the world: failures are quick.
    _sysctl(lab.fabric_namespace, "net.ipv6.conf.all.forwarding=1", "net.ipv4.ip_forward=1")
    for node in nodes:
        _connect(lab, node)
        _configure(lab, node)


def down(lab: Lab) -> None:
    """Remove the lab's namespaces and all links in them."""
    remove(namespaces(lab))
    # `ip netns add` mounted the folder on itself when it made the machine's first namespace. With another one in it, this fails.
    if NAMESPACES.exists() and not any(NAMESPACES.iterdir()):
        run("umount", NAMESPACES, check=False)


def within(namespace: str) -> list[str]:
    """What to put before a command that shall run in the namespace.

    `ip netns exec` would do more: it copies the machine's mounts for the command (a connection that ssh keeps open would then
    hold the nodes' disks) and mounts a /sys.
    """
    return ["nsenter", f"--net={NAMESPACES / namespace}", "--"]


def remove(names: Iterable[str]) -> None:
    """Remove these namespaces, as far as they exist."""
    for name in names:
        if not (NAMESPACES / name).exists():
            continue
        # A shell that is still open in the namespace would keep it alive; it shall not keep the links.
        if _usable(name):
            for link in _links(name) - {"lo"}:
                run("ip", "-n", name, "link", "delete", link, check=False)
        run("ip", "netns", "delete", name, check=False)
        (NAMESPACES / name).unlink(missing_ok=True)


def namespaces(lab: Lab) -> list[str]:
    """The names of the lab's namespaces that exist."""
    return sorted(path.name for path in NAMESPACES.glob(f"{lab.id}-*"))


def set_rail(lab: Lab, node: Node, rail: int, *, plugged: bool) -> None:
    """The cable of a rail, at the fabric's end. Without it the node's netdev has no carrier and keeps its address."""
    port = node.rails[rail].fabric_port
    mine = node.rails[rail]
    _batch(lab.fabric_namespace, _fabric_port(mine, mine) if plugged else [f"link set {port} down"])
    if plugged:  # Its routes went with it.
        _batch(lab.fabric_namespace, [_plane_route(mine, mine)], "-6")


def set_rail_route(node: Node, rail: int, *, present: bool) -> None:
    """The default route of the rail's table."""
    if present:
        _batch(node.namespace, [_rail_route(node.rails[rail], node.rails[rail])], "-6")
    else:
        run("ip", "-6", "-n", node.namespace, "route", "flush", "table", str(node.rails[rail].table), check=False)


def set_rail_rule(node: Node, rail: int, *, present: bool) -> None:
    """The rule of a rail's table. Without it, what is bound to the rail follows a default route that leads out by another rail."""
    wanted, other = node.rails[rail], node.rails[(rail + 1) % len(node.rails)]
    run("ip", "-6", "-n", node.namespace, "rule", "del", "from", str(wanted.prefix), check=False)
    default = ["default", "via", str(other.gateway.ip), "dev", other.netdev]
    if present:
        run("ip", "-6", "-n", node.namespace, "route", "del", *default, check=False)
        _batch(node.namespace, [_rail_rule(wanted, wanted)], "-6")
    else:
        run("ip", "-6", "-n", node.namespace, "route", "replace", *default)


def set_hop_mtu(lab: Lab, node: Node, rail: int, mtu: int) -> None:
    """The MTU of the fabric's port, as on a switch where one port was forgotten."""
    run("ip", "-n", lab.fabric_namespace, "link", "set", node.rails[rail].fabric_port, "mtu", str(mtu))


def set_cables(lab: Lab, node: Node, cables: Mapping[int, int]) -> None:
    """Which rail's port of the fabric each netdev is plugged into: netdev's index -> rail. Addresses, rules and routes follow the port."""
    for netdev in cables:
        mine = node.rails[netdev]
        run("ip", "-6", "-n", lab.fabric_namespace, "rule", "del", "iif", mine.fabric_port, check=False)
        run("ip", "-6", "-n", lab.fabric_namespace, "address", "flush", "dev", mine.fabric_port, "scope", "global")
        run("ip", "-6", "-n", node.namespace, "rule", "del", "table", str(mine.table), check=False)
        run("ip", "-6", "-n", node.namespace, "address", "flush", "dev", mine.netdev, "scope", "global")
    for netdev, rail in cables.items():
        mine, wanted = node.rails[netdev], node.rails[rail]
        _batch(lab.fabric_namespace, _fabric_port(mine, wanted))
        _batch(lab.fabric_namespace, _plane(mine, wanted), "-6")
        _batch(node.namespace, [f"address replace {wanted.address} dev {mine.netdev} nodad"])
        _batch(node.namespace, [_rail_route(mine, wanted), _rail_rule(mine, wanted)], "-6")


def set_management(lab: Lab, node: Node, state: str) -> None:
    """`state` is up or down: the node's port on the management bridge."""
    run("ip", "-n", lab.controller_namespace, "link", "set", node.management_port, state)


def _usable(namespace: str) -> bool:
    return succeeds("ip", "-n", namespace, "link", "set", "lo", "up")


def _ensure_namespace(name: str) -> None:
    if _usable(name):
        return
    # A run that was killed inside `ip netns add` leaves a file with no namespace behind it.
    remove([name])
    run("ip", "netns", "add", name)
    run("ip", "-n", name, "link", "set", "lo", "up")


def _links(namespace: str) -> set[str]:
    return {link["ifname"] for link in output_json("ip", "-n", namespace, "-j", "link")}


def _batch(namespace: str, commands: Sequence[str], *options: str) -> None:
    if commands:
        run("ip", *options, "-n", namespace, "-batch", "-", stdin=lines(commands))


def _sysctl(namespace: str, *settings: str) -> None:
    run(*within(namespace), "sysctl", "-q", "-w", *settings)


def _bridge(namespace: str, name: str, address: str, ip: str) -> None:
    if name not in _links(namespace):
        run("ip", "-n", namespace, "link", "add", name, "address", address, "type", "bridge")
    _batch(namespace, [f"address replace {ip} dev {name}", f"link set {name} up"])


def _connect(lab: Lab, node: Node) -> None:
    """The node's veth pairs, each made in the namespace of its far end with its MAC addresses set at birth.

    Left to itself the kernel draws random MACs and udev derives them from a machine id that all nodes of one image share;
    two equal ones on a bridge lose packets.
    """
    inside, controller, fabric = _links(node.namespace), _links(lab.controller_namespace), _links(lab.fabric_namespace)
    wanted = [
        (lab.controller_namespace, controller, node.management_port, mac(5, node.number), node.eth0),
        (lab.fabric_namespace, fabric, node.decoy_port, mac(6, node.number), node.pub0),
        *((lab.fabric_namespace, fabric, rail.fabric_port, rail.fabric_mac, rail.nic) for rail in node.rails),
    ]
    for namespace, present, port, port_mac, nic in wanted:
        if nic.name in inside and port in present:
            continue
        run("ip", "-n", namespace, "link", "delete", port, check=False)
        run(
            "ip",
            "-n",
            namespace,
            "link",
            "add",
            port,
            "address",
            port_mac,
            "mtu",
            str(nic.mtu),
            "type",
            "veth",
            "peer",
            "name",
            nic.name,
            "address",
            nic.mac,
            "mtu",
            str(nic.mtu),
            "netns",
            node.namespace,
        )
    if "docker0" not in inside:
        run("ip", "-n", node.namespace, "link", "add", "docker0", "address", mac(7, node.number), "type", "bridge")


def _configure(lab: Lab, node: Node) -> None:
    _batch(
        lab.controller_namespace,
        [f"link set {node.management_port} master mgmt0", f"link set {node.management_port} up"],
    )
    _batch(
        lab.fabric_namespace,
        [
            f"link set {node.decoy_port} master wan0",
            f"link set {node.decoy_port} up",
            *(command for rail in node.rails for command in _fabric_port(rail, rail)),
        ],
    )
    _batch(
        node.namespace,
        [
            *(f"link set {nic.name} up" for nic in node.nics),
            f"address replace {node.management} dev eth0",
            f"address replace {node.decoy} dev pub0",
            f"address replace {DOCKER} dev docker0",
            "link set docker0 up",
            f"route replace default via {lab.decoy_gateway.ip} dev pub0",
            *(f"address replace {rail.address} dev {rail.netdev} nodad" for rail in node.rails),
        ],
    )
    _batch(node.namespace, [_rail_route(rail, rail) for rail in node.rails], "-6")
    present = {(rule.get("src"), rule.get("table")) for rule in _rules(node.namespace)}
    missing = [rail for rail in node.rails if (str(rail.prefix.network_address), str(rail.table)) not in present]
    _batch(node.namespace, [_rail_rule(rail, rail) for rail in missing], "-6")
    ports = {rule.get("iif") for rule in _rules(lab.fabric_namespace)}
    planes = [
        command
        for rail in node.rails
        for command in _plane(rail, rail)
        if not (command.startswith("rule") and rail.fabric_port in ports)
    ]
    _batch(lab.fabric_namespace, planes, "-6")


def _rules(namespace: str) -> list[dict[str, Any]]:
    return json.loads(output("ip", "-n", namespace, "-6", "-j", "rule"))


# A netdev is plugged into the port of one rail; `mine` is the netdev's own rail, `wanted` the rail whose cable it has.


def _fabric_port(mine: Rail, wanted: Rail) -> list[str]:
    # In this order: a link that is set down loses its IPv6 addresses.
    return [f"link set {mine.fabric_port} up", f"address replace {wanted.gateway} dev {mine.fabric_port} nodad"]


def _plane(mine: Rail, wanted: Rail) -> list[str]:
    return [
        f"rule add iif {mine.fabric_port} table {wanted.plane}",
        _plane_route(mine, wanted),
        f"route replace unreachable default table {wanted.plane}",
    ]


def _plane_route(mine: Rail, wanted: Rail) -> str:
    return f"route replace {wanted.prefix} dev {mine.fabric_port} table {wanted.plane}"


def _rail_route(mine: Rail, wanted: Rail) -> str:
    return f"route replace default via {wanted.gateway.ip} dev {mine.netdev} table {mine.table}"


def _rail_rule(mine: Rail, wanted: Rail) -> str:
    return f"rule add from {wanted.prefix} table {mine.table}"
