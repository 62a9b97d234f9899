#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_info
short_description: The RDMA rails of a host, the GID to use on each, and what is wrong with them
description:
  - A rail is one RDMA port with its network device, its GID table and its address. Rails are read from
    C(/sys/class/infiniband), whoever made the NIC, and not from a scan of addresses.
  - The GID to use is the first RoCE v2 one that is not link-local and that belongs to the rail's own network device. Its index
    differs per node and device (on ionic 0 is link-local, 1 the routed IPv6 one), so it is chosen for each.
  - A rail that is down or has no such GID is still listed, with a finding. It fails for wrong options only.
  - It needs no tool. With iproute2 (C(ip -j address show)) it also gives the prefix of the address, and sees an address that is not
    on the network device.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
options:
  sysfs_root:
    description: Where sysfs is.
    type: path
    default: /sys
  vendor_ids:
    description: PCI vendors whose rails count, such as V(0x1dd8) for ionic. Empty takes all.
    type: list
    elements: str
    default: []
  expected:
    description: How many rails the host must have; another number is a finding. V(0) takes any.
    type: int
    default: 0
notes:
  - Findings of a rail - V(rail_down), V(rail_unreadable), V(rail_not_roce), V(rail_netdev_missing), V(rail_gid_missing),
    V(rail_gid_link_local), V(rail_gid_elsewhere) (of another network device, such as a bond or a VLAN), V(rail_address_missing)
    are errors; V(rail_gid_ipv4), V(rail_virtual), V(rail_mtu_small), V(rail_mtu_unlike_others), V(rail_rate_unlike_others),
    V(rail_firmware_unlike_others) are warnings.
  - Findings of the host - V(rails_none), V(rails_count), V(rails_namespace) (GIDs are hidden in another network namespace) are
    errors; V(rails_mixed_vendors), V(rails_changed) (devices came or went meanwhile) are warnings.
seealso:
  - module: infera.baremetal.port_probe
"""

EXAMPLES = r"""
- name: Read the rails
  infera.baremetal.rail_info:
    vendor_ids: ["0x1dd8"]
    expected: 8
  register: rails_read

- name: Stop where a rail is not fit
  infera.baremetal.assert_findings:
    subject: rails
    findings: "{{ rails_read.findings + rails_read.rails | map(attribute='findings') | flatten }}"
"""

RETURN = r"""
rails:
  description: The rails, sorted naturally by device and port (V(ionic_2) before V(ionic_10)).
  type: list
  elements: dict
  returned: always
  contains:
    index:
      description: Place in this list, from 0.
      type: int
    rdma_device:
      description: Name of the RDMA device.
      type: str
    port:
      description: Port of the device, from 1.
      type: int
    netdev:
      description: The port's network device - that of its PCI function, else what the device names; empty where there is none.
      type: str
    pci_address:
      description: Address of the PCI function; empty for a virtual device.
      type: str
    vendor_id:
      description: PCI vendor, as V(0x1dd8); empty for a virtual device.
      type: str
    numa_node:
      description: NUMA node of the PCI function; null where there is none.
      type: int
    link_layer:
      description: V(Ethernet) or V(InfiniBand).
      type: str
    state:
      description: Logical state of the port, such as V(ACTIVE) or V(DOWN); empty where it could not be read.
      type: str
    phys_state:
      description: Physical state of the port, such as V(LinkUp), V(Polling) or V(Disabled).
      type: str
    rate_gbps:
      description: Rate of the port in Gb/s. It does not change when the link goes down.
      type: float
    fw_version:
      description: Firmware, as the driver writes it.
      type: str
    mtu:
      description: MTU of the network device in bytes; 4192 carries the largest RDMA MTU, 4096.
      type: int
    physical:
      description: Whether the network device is backed by a device.
      type: bool
    abi_version:
      description: The driver's kernel ABI, from C(/sys/class/infiniband_verbs/uverbsN/abi_version).
      type: int
    gids:
      description:
        - GIDs that are not zero - C(index), C(gid) (RFC 5952 text), C(type) (V(RoCE v2), V(IB/RoCE v1)), C(netdev) and C(scope)
          (V(link-local), V(ula), V(global), V(ipv4-mapped)).
      type: list
      elements: dict
    gid_index:
      description: Index of the GID to use; null where none can be.
      type: int
    address:
      description: Its address, IPv4 where the GID is IPv4-mapped; null where there is none.
      type: str
    prefix:
      description: The address's network, such as V(fd00:a:0:1::/64); null where iproute2 does not tell it.
      type: str
    findings:
      description: What is wrong with this rail. C(where) is V(device/port), as C(rdma link show) writes it.
      type: list
      elements: dict
findings:
  description: What is wrong with the host's rails together; those of single rails are with them.
  type: list
  elements: dict
  returned: always
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.host import run_command
from ansible_collections.infera.baremetal.plugins.module_utils.rails import parse_prefixes, parse_vendor, report


def run(options: Dict[str, Any]) -> Dict[str, Any]:
    """The module's result; ValueError for what the options say wrongly."""
    if options["expected"] < 0:
        raise ValueError(f"expected is {options['expected']}; it must be 0 or more")
    vendors = [parse_vendor(text) for text in options["vendor_ids"]]
    status, text = run_command(["ip", "-j", "address", "show"])
    return report(options["sysfs_root"], vendors, options["expected"], parse_prefixes(text) if status == 0 else None)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "vendor_ids": {"type": "list", "elements": "str", "default": []},
            "expected": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module.params)
    except ValueError as error:
        module.fail_json(msg=f"rail_info: {error}")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
