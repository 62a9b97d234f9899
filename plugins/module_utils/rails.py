# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rails as the kernel shows them: one RDMA port with its netdev, its GID table and its address.

Rails come from RDMA, never from a scan of addresses, and every vendor's are read alike. C(read) only looks, C(judge_rail)
and C(judge_host) only think.
Layouts: Documentation/ABI/stable/sysfs-class-infiniband, and what ionic, mlx5 and rxe were seen to show.
"""

from __future__ import annotations

import ipaddress
import json
import os
import re
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Iterable, Optional, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils import addresses, sysfs
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding

ROCE_V2 = "RoCE v2"
# The smallest MTU of a netdev that carries the largest RDMA MTU: 4096 and 96 bytes of headers (iboe_get_mtu, rdma/ib_addr.h).
FULL_MTU, RDMA_MTUS, RDMA_HEADERS = 4192, (4096, 2048, 1024, 512, 256), 96
# What the rails of one vendor should have in common: attribute, its word in the codes, its name in sentences.
UNIFORM = (("rate_gbps", "rate", "rate in Gb/s"), ("mtu", "mtu", "MTU"), ("fw_version", "firmware", "firmware"))
ALIKE = {
    "rate": "check its cable, and the speed of its switch port: ethtool {netdev}",
    "mtu": "ip link set {netdev} mtu {value}",
    "firmware": "bring {device} to firmware {value}",
}
ONE_VENDOR = "limit the rails to one vendor with rails_vendor_ids (0x1dd8 is ionic), or leave this host out"

_PCI_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
# Netdev -> address -> prefix length; None where it could not be read.
Prefixes = Optional[dict[str, dict[str, int]]]


@dataclass(frozen=True)
class Gid:
    """A GID that is not zero, as canonical text. C(type) and C(netdev) are empty where the kernel does not say."""

    index: int
    gid: str
    type: str
    netdev: str
    scope: str


@dataclass(frozen=True)
class Rail:
    """One RDMA port. Text that is not there is empty, a number that is not there is None.

    C(index) counts the host's rails from 0. C(gid_index), C(address) and C(prefix) (a network, C(fd00:a:0:1::/64)) are of the
    GID that traffic should use, and None where there is none; C(prefix) also where the address is not on the netdev.
    """

    index: int
    rdma_device: str
    port: int
    netdev: str
    pci_address: str
    vendor_id: str
    numa_node: Optional[int]
    link_layer: str
    state: str
    phys_state: str
    rate_gbps: Optional[float]
    fw_version: str
    mtu: Optional[int]
    physical: bool
    abi_version: Optional[int]
    gids: tuple[Gid, ...]
    gid_index: Optional[int] = None
    address: Optional[str] = None
    prefix: Optional[str] = None

    @property
    def name(self) -> str:
        """As C(rdma link show) calls it."""
        return f"{self.rdma_device}/{self.port}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


# --- reading ---------------------------------------------------------------------------------------------------------


def read(root: str = sysfs.ROOT, vendors: Iterable[int] = (), prefixes: Prefixes = None) -> tuple[list[Rail], bool]:
    """The host's rails, sorted naturally by device, and whether the tree held still while it was read, once or once more.

    C(vendors) (PCI ids) limits them. Never raises: what is gone or unreadable is empty.
    """
    wanted = {f"{vendor:#06x}" for vendor in vendors}
    for _attempt in range(2):
        ports = _ports(root)
        abis = _abi_versions(root)
        found = [_read_port(root, device, port, abis) for device, port in ports]
        steady = _ports(root) == ports
        if steady:
            break
    kept = [port for port in found if not wanted or port["vendor_id"] in wanted]
    return [Rail(index=index, **port, **_chosen(port, prefixes)) for index, port in enumerate(kept)], steady


def _ports(root: str) -> list[tuple[str, int]]:
    folder = os.path.join(root, "class/infiniband")
    return [
        (device, int(port))
        for device in sysfs.names(folder)
        for port in sysfs.names(folder, device, "ports")
        if port.isdecimal()
    ]


def _abi_versions(root: str) -> dict[str, Optional[int]]:
    """RDMA device -> its driver's kernel ABI. The C(abi_version) of the class itself is the uverbs core's."""
    folder = os.path.join(root, "class/infiniband_verbs")
    entries = [entry for entry in sysfs.names(folder) if entry.startswith("uverbs")]
    return {
        sysfs.read_text(folder, entry, "ibdev") or "": sysfs.read_int(folder, entry, "abi_version") for entry in entries
    }


def _read_port(root: str, device: str, port: int, abis: dict[str, Optional[int]]) -> dict[str, Any]:
    base = os.path.join(root, "class/infiniband", device)
    folder = os.path.join(base, "ports", str(port))
    pci = _pci_function(sysfs.link_path(base, "device") or "")
    gids = _gids(folder)
    netdev = _netdev(base, pci, port, gids)
    numa_node = sysfs.read_int(pci, "numa_node") if pci else None
    real = sysfs.link_path(root, "class/net", netdev) if netdev else None
    return {
        "rdma_device": device,
        "port": port,
        "netdev": netdev,
        "pci_address": os.path.basename(pci),
        "vendor_id": (sysfs.read_text(pci, "vendor") or "").lower() if pci else "",
        "numa_node": numa_node if numa_node is not None and numa_node >= 0 else None,
        "link_layer": sysfs.read_text(folder, "link_layer") or "",
        "state": _word(sysfs.read_text(folder, "state")),
        "phys_state": _word(sysfs.read_text(folder, "phys_state")),
        "rate_gbps": _rate(sysfs.read_text(folder, "rate")),
        "fw_version": sysfs.read_text(base, "fw_ver") or "",
        "mtu": sysfs.read_int(real, "mtu") if real else None,
        "physical": bool(real) and "/devices/virtual/" not in real and os.path.exists(os.path.join(real, "device")),
        "abi_version": abis.get(device),
        "gids": gids,
    }


def _pci_function(path: str) -> str:
    """The folder of the PCI function at or above a device, which may hang below an auxiliary one; empty for a virtual one."""
    while path not in ("", "/"):
        if _PCI_ADDRESS.fullmatch(os.path.basename(path)):
            return path
        path = os.path.dirname(path)
    return ""


def _netdev(base: str, pci: str, port: int, gids: Sequence[Gid]) -> str:
    """The port's netdev: its PCI function's, else what it was made on (rxe and siw say C(parent)), else what its GIDs name."""
    named = [gid.netdev for gid in gids if gid.netdev]
    for folder in [os.path.join(base, "device/net")] + ([os.path.join(pci, "net")] if pci else []):
        found = sysfs.names(folder)
        # Of several netdevs (two ports, virtual functions' ports) it is the one that the GIDs name, or that counts alike, from 0.
        own = [name for name in found if name in named]
        own += [name for name in found if sysfs.read_int(folder, name, "dev_port") == port - 1]
        if found:
            return (own + found)[0]
    return sysfs.read_text(base, "parent") or (named + [""])[0]


def _gids(folder: str) -> tuple[Gid, ...]:
    found = []
    for slot in sysfs.names(folder, "gids"):
        try:
            value = ipaddress.IPv6Address(sysfs.read_text(folder, "gids", slot) or "::")
            index = int(slot)
        except ValueError:
            continue
        # An empty slot reads as zero, and its attributes answer EINVAL.
        if not value.is_unspecified:
            kind = sysfs.read_text(folder, "gid_attrs/types", slot) or ""
            netdev = sysfs.read_text(folder, "gid_attrs/ndevs", slot) or ""
            found.append(Gid(index, _canonical(value), kind, netdev, addresses.scope(value)))
    return tuple(found)


def _canonical(value: ipaddress.IPv6Address) -> str:
    """RFC 5952; Python before 3.13 writes a mapped IPv4 address in hexadecimal."""
    return f"::ffff:{value.ipv4_mapped}" if value.ipv4_mapped else str(value)


def _word(text: Optional[str]) -> str:
    """C(ACTIVE) of C(4: ACTIVE)."""
    return (text or "").partition(": ")[2]


def _rate(text: Optional[str]) -> Optional[float]:
    """400.0 of C(400 Gb/sec (4X NDR))."""
    match = re.match(r"([0-9]+(?:\.[0-9]+)?) Gb/sec", text or "")
    return float(match.group(1)) if match else None


def usable_gids(gids: Iterable[Gid], netdev: str) -> list[Gid]:
    """RoCE v2 GIDs of the rail's own netdev that a router forwards, in the table's order."""
    own = [gid for gid in gids if gid.netdev and gid.netdev == netdev]
    return [gid for gid in own if gid.type == ROCE_V2 and gid.scope != "link-local"]


def _chosen(port: dict[str, Any], prefixes: Prefixes) -> dict[str, Any]:
    """The first usable GID: its place differs per node and device, so it is looked for and never assumed."""
    for gid in usable_gids(port["gids"], port["netdev"]):
        address = gid.gid[len("::ffff:") :] if gid.scope == "ipv4-mapped" else gid.gid
        length = (prefixes or {}).get(port["netdev"], {}).get(address)
        prefix = None if length is None else str(ipaddress.ip_network(f"{address}/{length}", strict=False))
        return {"gid_index": gid.index, "address": address, "prefix": prefix}
    return {}


def parse_prefixes(text: str) -> Prefixes:
    """Netdev -> address -> prefix length, of what C(ip -j address show) prints; None where it is not that."""
    try:
        return {
            str(entry["ifname"]): {
                str(addresses.parse(item["local"])): int(item["prefixlen"])
                for item in entry.get("addr_info", [])
                if "local" in item
            }
            for entry in json.loads(text)
            if "ifname" in entry
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def parse_vendor(text: str) -> int:
    """A PCI vendor id, C(0x1dd8), or decimal as YAML makes of it without quotes. Raises ValueError."""
    try:
        value = int(str(text).strip(), 0)
    except ValueError:
        value = -1
    if not 0 < value <= 0xFFFF:
        raise ValueError(f"{text!r} is not a PCI vendor id; write it as '0x1dd8'")
    return value


# --- judging ---------------------------------------------------------------------------------------------------------


def judge_rail(rail: Rail, prefixes: Prefixes = None) -> list[Finding]:
    """What is wrong with one rail by itself."""
    if rail.link_layer == "InfiniBand":
        message = "its link layer is InfiniBand, which is no RoCE rail"
        return [_finding(rail, "rail_not_roce", message, ONE_VENDOR)]
    return [*_judge_port(rail), *_judge_gid(rail, prefixes), *_judge_netdev(rail)]


def _judge_port(rail: Rail) -> Iterable[Finding]:
    if not rail.state:
        path = f"/sys/class/infiniband/{rail.rdma_device}/ports/{rail.port}/state"
        yield _finding(rail, "rail_unreadable", f"{path} could not be read", f"cat {path} as root, and see dmesg")
    elif rail.state != "ACTIVE":
        fix = f"check its cable and switch port, then: ip link show {rail.netdev or 'its netdev'}"
        if rail.phys_state == "Disabled" and rail.netdev:
            # The address goes with the link, and does not come back with it (seen with rxe; addrconf.c).
            fix = (
                f"sysctl net.ipv6.conf.{rail.netdev}.keep_addr_on_down=1; ip link set {rail.netdev} up; "
                "then bring back its address, rule and the routes of its table"
            )
        state = f"{rail.state} ({rail.phys_state})" if rail.phys_state else rail.state
        yield _finding(rail, "rail_down", f"the port of {rail.netdev or 'this rail'} is {state}", fix)


def _judge_gid(rail: Rail, prefixes: Prefixes) -> Iterable[Finding]:
    if not rail.netdev:
        fix = f"rdma link show {rail.name}; where its netdev is in another network namespace, run there"
        yield _finding(rail, "rail_netdev_missing", "it has no netdev here", fix)
        return
    if rail.address is None:
        yield _judge_missing_gid(rail)
        return
    if prefixes is not None and rail.address not in prefixes.get(rail.netdev, {}):
        yield _finding(
            rail,
            "rail_address_missing",
            f"{rail.netdev} does not have {rail.address}, the address of GID {rail.gid_index}",
            f"ip address show {rail.netdev}; where the address is in another network namespace, run there",
        )
    if ":" not in rail.address:
        yield _judge_ipv4(rail)


def _judge_ipv4(rail: Rail) -> Finding:
    routed = f"its first routed GID, {rail.gid_index}, is the IPv4-mapped {rail.address}"
    for gid in usable_gids(rail.gids, rail.netdev):
        if gid.scope != "ipv4-mapped":
            # A new GID takes the first free slot, so the order in which addresses come decides.
            fix = f"take {rail.address} and {gid.gid} from {rail.netdev} and add the IPv6 one first, unless the fabric is IPv4"
            message = f"{routed}; its IPv6 one comes later, at {gid.index}"
            return _finding(rail, "rail_gid_ipv4", message, fix, "warning")
    fix = f"ip -6 address add ADDRESS/64 dev {rail.netdev}, unless the fabric is IPv4"
    return _finding(rail, "rail_gid_ipv4", f"{routed}; it has no IPv6 one", fix, "warning")


def _judge_missing_gid(rail: Rail) -> Finding:
    add = f"ip -6 address add ADDRESS/64 dev {rail.netdev}"
    keep = f"sysctl net.ipv6.conf.{rail.netdev}.keep_addr_on_down=1 keeps it when the link goes down"
    own = [gid for gid in rail.gids if gid.netdev == rail.netdev]
    others = {gid.netdev for gid in rail.gids if gid.netdev} - {rail.netdev}
    if any(gid.type == ROCE_V2 for gid in own):
        message = f"{rail.netdev} has a link-local GID only, which no router forwards"
        return _finding(rail, "rail_gid_link_local", message, f"{add}; {keep}")
    if own:
        kinds = ", ".join(sorted({gid.type or "unreadable" for gid in own}))
        message = f"{rail.netdev} has no GID of type {ROCE_V2}, only: {kinds}"
        return _finding(rail, "rail_gid_missing", message, "update driver and firmware, or read as root")
    if others:
        message = f"its GIDs are of {', '.join(sorted(others, key=sysfs.natural_key))}, none is of {rail.netdev}"
        return _finding(rail, "rail_gid_elsewhere", message, f"give {rail.netdev} an address of its own: {add}")
    fix = f"ip link set {rail.netdev} up; {add}; {keep}"
    return _finding(rail, "rail_gid_missing", f"{rail.netdev} has no GID", fix)


def _judge_netdev(rail: Rail) -> Iterable[Finding]:
    if rail.netdev and not rail.physical:
        message = f"{rail.netdev} is not backed by a device; this is software, not a NIC"
        fix = f"rdma link delete {rail.rdma_device}, unless this is a test"
        yield _finding(rail, "rail_virtual", message, fix, "warning")
    if rail.mtu is not None and rail.mtu < FULL_MTU:
        carried = next((mtu for mtu in RDMA_MTUS if mtu + RDMA_HEADERS <= rail.mtu), 0)
        message = f"MTU {rail.mtu} of {rail.netdev} carries an RDMA MTU of {carried}, not of {RDMA_MTUS[0]}"
        fix = f"ip link set {rail.netdev} mtu 9000, after the switches allow it"
        yield _finding(rail, "rail_mtu_small", message, fix, "warning")


def judge_unlike(rails: Sequence[Rail]) -> dict[str, list[Finding]]:
    """Rail's name -> where it differs from most rails of its vendor on this host; at a tie the first rail is right."""
    found: dict[str, list[Finding]] = {}
    for vendor in sorted({rail.vendor_id for rail in rails}):
        for attribute, word, title in UNIFORM:
            known = [rail for rail in rails if rail.vendor_id == vendor and getattr(rail, attribute)]
            counted = Counter(getattr(rail, attribute) for rail in known)
            usual = max(counted, key=lambda value: counted[value], default=None)
            for rail in known:
                value = getattr(rail, attribute)
                # A small MTU is a finding already.
                if value != usual and not (attribute == "mtu" and value < FULL_MTU):
                    most = f"{counted[usual]} of {len(known)} rails have {_plain(usual)}"
                    message = f"its {title} is {_plain(value)}; {most}"
                    fix = ALIKE[word].format(netdev=rail.netdev, device=rail.rdma_device, value=_plain(usual))
                    finding = _finding(rail, f"rail_{word}_unlike_others", message, fix, "warning")
                    found.setdefault(rail.name, []).append(finding)
    return found


def judge_host(rails: Sequence[Rail], expected: int = 0, steady: bool = True, others: int = 0) -> list[Finding]:
    """What is wrong with the host's rails together. C(others): RDMA ports of vendors that were not asked for."""
    found = []
    if not rails:
        message = (
            f"no RDMA device is of the vendors asked for, {others} are of others"
            if others
            else "there is no RDMA device"
        )
        fix = "lspci -nn -d 1dd8: and modprobe ionic_rdma (another vendor's NIC has another driver), then see dmesg"
        found.append(Finding("rails_none", "error", message, fix))
    elif expected and len(rails) != expected:
        names = ", ".join(rail.rdma_device for rail in rails)
        fix = "rdma link show; lspci -nn -d 1dd8: and dmesg tell which card is missing, else mend rails_expected"
        found.append(Finding("rails_count", "error", f"{len(rails)} rails, {expected} expected: {names}", fix))
    if outside_namespace(rails):
        message = "ports are ACTIVE and every GID reads zero: this is not the host's network namespace"
        fix = "run on the host itself, and give pods that use RDMA hostNetwork: true"
        found.append(Finding("rails_namespace", "error", message, fix))
    vendors = sorted({rail.vendor_id or "none" for rail in rails})
    if len(vendors) > 1:
        message = f"rails are of several vendors: {', '.join(vendors)}"
        found.append(Finding("rails_mixed_vendors", "warning", message, ONE_VENDOR))
    if not steady:
        message = "RDMA devices came or went while they were read, twice"
        found.append(Finding("rails_changed", "warning", message, "wait until the driver has settled, then run again"))
    return found


def outside_namespace(rails: Iterable[Rail]) -> bool:
    """Whether GIDs are hidden, as they are outside the host's network namespace: a port that is up has one at least."""
    rails = list(rails)
    return any(rail.state == "ACTIVE" for rail in rails) and not any(rail.gids for rail in rails)


def report(
    root: str = sysfs.ROOT, vendors: Sequence[int] = (), expected: int = 0, prefixes: Prefixes = None
) -> dict[str, Any]:
    """{rails: [{..., findings}], findings}: the rails as they cross to Ansible, each with its findings, and the host's.

    A rail's finding says C(where) as C(ionic_3/1). One common cause is said once, by the host: outside the host's network
    namespace no rail is blamed for its GIDs and netdev.
    """
    rails, steady = read(root, vendors, prefixes)
    others = len(_ports(root)) if vendors and not rails else 0
    outside = outside_namespace(rails)
    unlike = judge_unlike(rails)
    entries = []
    for rail in rails:
        found = list(judge_rail(rail, prefixes)) + unlike.get(rail.name, [])
        if outside:
            found = [item for item in found if item.code not in ("rail_gid_missing", "rail_netdev_missing")]
        entries.append(dict(rail.to_dict(), findings=[item.to_dict() for item in found]))
    return {"rails": entries, "findings": [item.to_dict() for item in judge_host(rails, expected, steady, others)]}


def _finding(rail: Rail, code: str, message: str, fix: str, severity: str = "error") -> Finding:
    return Finding(code, severity, message, fix, where=rail.name)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
