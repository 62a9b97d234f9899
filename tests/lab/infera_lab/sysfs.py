# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fixture tree of a node: what /sys would show if its eight RDMA cards and eight GPUs were there.

It agrees with the interfaces that the node really has, since both come from the plan. The kernel's layout is kept where
modules depend on it: a physical card's netdev lies below its PCI device and has a `device` link, docker0's does not.
"""

from __future__ import annotations

import os
from ipaddress import IPv6Address
from pathlib import Path

from .plan import GPUS, Nic, Node, Rail, mac

KERNEL_ABI = 1  # of the in-tree ionic driver, which lab images' provider supports
MISMATCHED_ABI = 4  # of AMD's drivers before bundle 25.12
GID_SLOTS = 8
FIRMWARE = "1.117.5-a-77"
ACTIVE = ("4: ACTIVE", "5: LinkUp")
DOWN = ("1: DOWN", "3: Disabled")


def write(root: Path, node: Node) -> None:
    """Make the tree below `root` complete; what is there is overwritten in place, since a running node has it mounted."""
    for nic in node.nics:
        _nic(root, nic)
    _virtual(root, "lo", "00:00:00:00:00:00", 65536)
    _virtual(root, "docker0", mac(7, node.number), 1500)
    _file(root / "class/infiniband_verbs/abi_version", "6")
    for rail in node.rails:
        _rdma_device(root, rail)
        set_link(root, rail, up=True)
    set_abi(root, node, KERNEL_ABI)
    _topology(root)


def set_link(root: Path, rail: Rail, *, up: bool) -> None:
    """The port's state as the driver reports it."""
    state, phys_state = ACTIVE if up else DOWN
    port = root / "class/infiniband" / rail.rdma_device / "ports/1"
    _file(port / "state", state)
    _file(port / "phys_state", phys_state)
    netdev = root / "class/net" / rail.netdev
    _file(netdev / "operstate", "up" if up else "down")
    _file(netdev / "carrier", "1" if up else "0")


def set_abi(root: Path, node: Node, abi: int) -> None:
    """The driver's kernel ABI, which every device of it reports."""
    for rail in node.rails:
        _file(root / "class/infiniband_verbs" / rail.uverbs / "abi_version", str(abi))


def set_gids(root: Path, rail: Rail, *addresses: IPv6Address) -> None:
    """The port's GID table: these, then empty slots, whose attributes cannot be read."""
    port = root / "class/infiniband" / rail.rdma_device / "ports/1"
    for index in range(GID_SLOTS):
        full = index < len(addresses)
        _file(port / f"gids/{index}", gid(addresses[index] if full else IPv6Address(0)))
        for kind, text in (("types", "RoCE v2"), ("ndevs", rail.netdev)):
            attribute = port / f"gid_attrs/{kind}/{index}"
            if full:
                _file(attribute, text)
            else:
                attribute.unlink(missing_ok=True)


def set_device(root: Path, rail: Rail, *, present: bool) -> None:
    """Whether the driver has made the RDMA device of a rail."""
    link = root / "class/infiniband" / rail.rdma_device
    if present:
        _link(link, _pci(root, rail.nic) / "infiniband" / rail.rdma_device)
    else:
        link.unlink(missing_ok=True)


def gid(address: IPv6Address) -> str:
    """The text of a GID: eight groups of four digits, none left out."""
    return address.exploded


def _nic(root: Path, nic: Nic) -> None:
    pci = _pci(root, nic)
    _file(pci / "vendor", nic.vendor)
    _file(pci / "device", nic.device)
    _file(pci / "class", "0x020000")
    _file(pci / "numa_node", str(nic.numa_node))
    _file(pci / "uevent", f"PCI_SLOT_NAME={nic.pci_address}")
    _link(pci / "subsystem", root / "bus/pci")
    netdev = pci / "net" / nic.name
    _netdev(root, netdev, nic.mac, nic.mtu)
    _file(netdev / "speed", str(nic.speed))
    _link(netdev / "device", pci)


def _virtual(root: Path, name: str, address: str, mtu: int) -> None:
    _netdev(root, root / "devices/virtual/net" / name, address, mtu)


def _netdev(root: Path, netdev: Path, address: str, mtu: int) -> None:
    name = netdev.name
    _file(netdev / "address", address)
    _file(netdev / "mtu", str(mtu))
    _file(netdev / "operstate", "unknown" if name == "lo" else "down" if name == "docker0" else "up")
    _file(netdev / "carrier", "0" if name == "docker0" else "1")
    _file(netdev / "type", "772" if name == "lo" else "1")
    _file(netdev / "uevent", f"{'DEVTYPE=bridge' + chr(10) if name == 'docker0' else ''}INTERFACE={name}")
    if name == "docker0":
        _file(netdev / "bridge/bridge_id", f"8000.{address.replace(':', '')}")
    _link(root / "class/net" / name, netdev)


def _rdma_device(root: Path, rail: Rail) -> None:
    pci = _pci(root, rail.nic)
    device = pci / "infiniband" / rail.rdma_device
    _file(device / "fw_ver", FIRMWARE)
    _file(device / "node_type", "1: CA")
    port = device / "ports/1"
    _file(port / "link_layer", "Ethernet")
    _file(port / "rate", "400 Gb/sec (4X NDR)")
    _link(device / "device", pci)
    _link(root / "class/infiniband" / rail.rdma_device, device)
    # On ionic, GID 0 is link-local, 1 the rail's address.
    set_gids(root, rail, rail.link_local, rail.address.ip)
    verbs = pci / "infiniband_verbs" / rail.uverbs
    _file(verbs / "ibdev", rail.rdma_device)
    _file(verbs / "dev", f"231:{192 + rail.index}")
    _link(verbs / "device", pci)
    _link(root / "class/infiniband_verbs" / rail.uverbs, verbs)


def _topology(root: Path) -> None:
    """Two CPU sockets and eight MI355X in KFD's list; a GPU is a node that has SIMD units."""
    nodes = root / "class/kfd/kfd/topology/nodes"
    for index in range(2 + GPUS):
        is_gpu = index >= 2
        properties = {
            "cpu_cores_count": 0 if is_gpu else 64,
            "simd_count": 1024 if is_gpu else 0,
            "gfx_target_version": 90500 if is_gpu else 0,  # gfx950
            "vendor_id": 0x1002 if is_gpu else 0,
            "device_id": 0x75A3 if is_gpu else 0,
            "location_id": (0x05 + 0x10 * (index - 2)) << 8 if is_gpu else 0,
        }
        _file(nodes / str(index) / "properties", "\n".join(f"{key} {value}" for key, value in properties.items()))
        _file(nodes / str(index) / "gpu_id", str(0x1000 + index if is_gpu else 0))


def _pci(root: Path, nic: Nic) -> Path:
    return root / "devices/pci0000:00" / nic.pci_address


def _file(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content + "\n"
    if path.exists() and path.read_text() == text:
        return
    path.write_text(text)


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    target.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(os.path.relpath(target, path.parent))
