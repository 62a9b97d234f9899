#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: advertise_address_info
short_description: Which address a node advertises, and why no other
description:
  - Decides the address that others are told (C(node-ip) and C(flannel-iface) of k3s, handshakes between workers) from structure and
    routes, never from names. Every address of O(family) is listed with the reason it was taken or refused.
  - Taken is what is a NIC (it has a device), or a bond, team or VLAN of nothing but NICs, is up, and whose routes reach all of O(peers)
    by that very interface. Never taken are veth, tunnels, VXLAN, dummies, VRFs, and bridges with no NIC among their ports (C(cni0),
    C(docker0)).
  - Taken only when named by O(interface) or O(address) - a bridge, macvlan or ipvlan over a NIC, an SR-IOV virtual function, which a
    pod or a machine may take away, and a NIC on USB, which is mostly the BMC's.
  - What is named is checked like any other. There is no fallback to the default route's interface.
  - Of several that are fit, first are those with an address that is neither deprecated nor tentative, then those in O(prefer_cidrs),
    then private before CGNAT before public, then natural order of names (C(enp9s0) before C(enp105s0)); of one interface, primary
    before secondary and temporary addresses. Where only the name decided, there is a warning C(advertise_ambiguous).
  - Needs iproute2 on the host. Sources are C(ip -j -d address show), C(/sys/class/net) and rtnetlink.
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
    description: Where sysfs is mounted. It has to be of the same network namespace; otherwise every interface counts as virtual.
    type: path
    default: /sys
  family:
    description: The family of the address, and of O(address) and O(peers).
    type: str
    choices: [ipv4, ipv6]
    default: ipv4
  interface:
    description: The operator's answer, by name or alternative name. Empty leaves the choice to the module.
    type: str
    default: ""
  address:
    description: The operator's answer as an address. The host, or O(interface) where that is set, has to hold it.
    type: str
    default: ""
  prefer_cidrs:
    description: Networks whose addresses come first, such as V(10.1.0.0/16).
    type: list
    elements: str
    default: []
  exclude_cidrs:
    description: Networks whose addresses are refused - the pod and the service CIDR, whether or not the cluster stands.
    type: list
    elements: str
    default: []
  allow_public:
    description: Whether a public address may be advertised. Then ports 30000 and 8998 of the workers are open to it.
    type: bool
    default: false
  allow_cgnat:
    description: Whether an address of 100.64.0.0/10 may be advertised, which carriers and overlay VPNs use.
    type: bool
    default: false
  peers:
    description:
      - Addresses of the other nodes, of O(family). Empty texts and addresses of this host are ignored, so the list of a whole
        play can be passed.
      - The route to each is looked up from the candidate's address, and has to leave by its interface with that source.
    type: list
    elements: str
    default: []
"""

EXAMPLES = r"""
- name: Choose the address of this node
  infera.baremetal.advertise_address_info:
    exclude_cidrs: [10.42.0.0/16, 10.43.0.0/16]
  register: advertised

- name: Check what the inventory says, against all hosts of the play
  infera.baremetal.advertise_address_info:
    interface: "{{ cluster_interface }}"
    address: "{{ cluster_address }}"
    exclude_cidrs: [10.42.0.0/16, 10.43.0.0/16]
    peers: "{{ ansible_play_hosts | map('extract', hostvars, 'cluster_address') }}"
"""

RETURN = r"""
interface:
  description: The interface that holds RV(address); empty on failure.
  type: str
  returned: always
  sample: enp65s0f0
address:
  description: The address to advertise, without prefix; empty on failure.
  type: str
  returned: always
  sample: 10.1.0.1
prefix_length:
  description: Its prefix length in bits; null on failure.
  type: int
  returned: always
  sample: 24
reason:
  description: What decided between those that are fit, as a phrase; empty on failure.
  type: str
  returned: always
  sample: the only interface that reaches every peer
candidates:
  description: One entry an address of O(family), in natural order of interfaces; an interface without one has one entry too.
  type: list
  elements: dict
  returned: always
  contains:
    interface:
      description: Its name.
      type: str
    address:
      description: The address; empty where the interface has none.
      type: str
    accepted:
      description: Whether it is fit and not set aside by O(interface) or O(address).
      type: bool
    reason:
      description:
        - Fit are V(chosen) and V(lower_preference).
        - Refused for what the interface is - V(loopback), V(virtual), V(usb), V(enslaved) (a port of a bond or bridge), V(down).
        - Refused for the address - V(link_local), V(excluded_cidr), V(public), V(cgnat), V(duplicate) (another host holds it too),
          V(no_address); also V(multicast), V(unspecified), V(ipv4_mapped).
        - Refused for the routes - V(no_route_to_peer).
        - V(not_requested) is fit, but O(interface) or O(address) names another.
      type: str
    detail:
      description: The same for people, with the peer, CIDR or state that it is about; empty for what is fit.
      type: str
findings:
  description:
    - Warnings C(advertise_ambiguous) and C(advertise_unstable) (only a deprecated or tentative address is left).
    - Errors, with which the module fails - C(advertise_none), C(advertise_refused) (what is named is not fit),
      C(advertise_interface_missing), C(advertise_address_missing), C(advertise_input), C(interfaces_unreadable) (no iproute2 or no
      sysfs), C(routes_unreadable).
  type: list
  elements: dict
  returned: always
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.advertise import decide
from ansible_collections.infera.baremetal.plugins.module_utils.findings import summary


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "sysfs_root": {"type": "path", "default": "/sys"},
            "family": {"type": "str", "choices": ["ipv4", "ipv6"], "default": "ipv4"},
            "interface": {"type": "str", "default": ""},
            "address": {"type": "str", "default": ""},
            "prefer_cidrs": {"type": "list", "elements": "str", "default": []},
            "exclude_cidrs": {"type": "list", "elements": "str", "default": []},
            "allow_public": {"type": "bool", "default": False},
            "allow_cgnat": {"type": "bool", "default": False},
            "peers": {"type": "list", "elements": "str", "default": []},
        },
        supports_check_mode=True,
    )
    decision = decide(module.params["sysfs_root"], module.params)
    result = decision.to_dict()
    if decision.chosen is None:
        module.fail_json(msg="\n".join([summary(result["findings"]), *decision.refusals()]), **result)
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
