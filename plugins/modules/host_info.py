#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: host_info
short_description: Everything that the preflight judges a host by, in one call
description:
  - Reads system, paths, ports, clock, kernel, firewall, SELinux and any Kubernetes that is there already. It judges nothing;
    the filter P(infera.baremetal.preflight_findings#filter) does, over all hosts together.
  - What is absent is null or empty. What is there and cannot be read is listed in RV(host.problems). It changes nothing, and
    does not touch a path on a network file system, since a dead server would hold it for ever.
  - Needs root to see which process holds a port, and the rules of nftables.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
  action:
    description: The controller notes its own clock before and after the call, which bounds how far the host's clock is off.
    support: full
options:
  data_dir:
    description: The data-dir that k3s is to have. It need not exist, then its nearest existing parent counts.
    type: str
    default: ""
  ports:
    description: Ports whose holder matters, such as V(6443/tcp). Empty lists every listener, which is slower.
    type: list
    elements: str
    default: []
  modules:
    description: Kernel modules to look for.
    type: list
    elements: str
    default: [overlay, br_netfilter, vxlan]
  digests:
    description: Digests of images (V(sha256:...)); those that containerd holds below O(data_dir) come back.
    type: list
    elements: str
    default: []
  declared:
    description:
      - What the inventory says of this host. It comes back as RV(host.declared), so that facts and the settings they are
        judged against travel together.
      - C(address) and C(interface) are checked, or chosen where they are empty, as M(infera.baremetal.advertise_address_info) does it.
    type: dict
    default: {}
  advertise:
    description: Options of M(infera.baremetal.advertise_address_info) for that, beside C(address) and C(interface).
    type: dict
    default: {}
  sysfs_root:
    description: Where sysfs is mounted, for interfaces, RDMA devices and GPUs.
    type: path
    default: /sys
"""

EXAMPLES = r"""
- name: Read the host
  infera.baremetal.host_info:
    data_dir: /data/k3s
    ports: [6443/tcp, 10250/tcp, 8472/udp]
    declared:
      node_name: "{{ inventory_hostname }}"
      address: 10.1.0.1
  register: preflight_host
"""

RETURN = r"""
host:
  description: The host as it is.
  type: dict
  returned: always
  contains:
    hostname:
      description: The kernel's name of the host.
      type: str
    machine_id:
      description: C(/etc/machine-id).
      type: str
    product_uuid:
      description: The board's UUID from DMI; empty where there is none.
      type: str
    os:
      description: C(id), C(version), C(like) and C(name) from os-release(5).
      type: dict
    kernel:
      description: Kernel release.
      type: str
    architecture:
      description: As C(uname -m).
      type: str
    python:
      description: Version of the interpreter that ran this.
      type: str
    root:
      description: Whether this ran as root.
      type: bool
    init:
      description: Name of process 1.
      type: str
    cgroup:
      description: C(version) (1, 2, null where none is mounted), C(mode) (unified, hybrid, legacy) and the enabled C(controllers).
      type: dict
    data_dir:
      description:
        - The path - C(absolute), C(exists), C(nearest) existing parent with links followed and whether it is a C(folder),
          C(symlinks) on the way ([{C(component), C(target)}]), C(mount) {C(target), C(source), C(fstype), C(options)}, C(total_bytes), C(free_bytes).
        - Null where O(data_dir) is empty.
      type: dict
    stored_digests:
      description: Those of O(digests) that are there.
      type: list
      elements: str
    interfaces:
      description: Interface -> C(up), C(kind), C(addresses), C(vxlan_port). Null where iproute2 does not answer.
      type: dict
    listeners:
      description: Sockets that hold one of O(ports) - C(protocol), C(address), C(port), C(pid), C(process), C(unit).
      type: list
      elements: dict
    swap:
      description: Active swap, C(device) and C(bytes).
      type: list
      elements: dict
    modules:
      description: Kernel module -> loaded, builtin, loadable, disabled, missing or unknown.
      type: dict
    inotify:
      description: C(max_user_watches) and C(max_user_instances).
      type: dict
    firewall:
      description: What filters incoming packets, C(kind) (firewalld, ufw, nftables, iptables) and C(detail).
      type: list
      elements: dict
    selinux:
      description: C(mode) (enforcing, permissive, disabled) and C(k3s_policy), whether k3s-selinux is installed.
      type: dict
    k3s:
      description:
        - C(installed), C(unit), C(running), C(active) (it has started for good), C(own) (written by this collection) and the
          C(data_dir) that it is configured for.
      type: dict
    joined:
      description: Whether this collection's k3s runs here with O(data_dir).
      type: bool
    other_kubernetes:
      description: Signs of a Kubernetes that is not k3s.
      type: list
      elements: str
    leftovers:
      description: Paths that an earlier cluster left.
      type: list
      elements: str
    clock:
      description:
        - C(synchronized) (null where the kernel does not say), the C(service) that keeps it, C(first_seen) and C(last_seen) in
          seconds since the epoch.
        - C(ahead_min) and C(ahead_max), in seconds, bound how far it is ahead of the controller's clock.
      type: dict
    problems:
      description: What could not be read, C(what) and C(error).
      type: list
      elements: dict
    declared:
      description: O(declared) as it was given, with the C(address) and C(interface) that were chosen.
      type: dict
    advertise:
      description: What M(infera.baremetal.advertise_address_info) returns.
      type: dict
    hardware:
      description:
        - C(gpus) (C(node) of KFD and C(gfx); null without KFD), C(rdma_devices), their PCI C(vendors) and C(firmware), versions of loaded
          C(modules) (V(in-tree) where a module has none), C(driver_files) of libionic.
        - C(kernel_config) (whether the kernel has each option; null where that is not readable), C(iommu) (C(groups), C(types) of their
          domains, C(cmdline)), C(memlock) (what k3s's unit, else systemd's default, allows), and listings of C(nicctl) (C(qos), C(dcqcn))
          without what is each card's own.
        - Sources are KFD's topology, sysfs, /proc/cmdline, the kernel's configuration, systemd and nicctl.
      type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.advertise import decide
from ansible_collections.infera.baremetal.plugins.module_utils.hardware import read_hardware
from ansible_collections.infera.baremetal.plugins.module_utils.host import Wanted, read_host, run_command


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "data_dir": {"type": "str", "default": ""},
            "ports": {"type": "list", "elements": "str", "default": []},
            "modules": {"type": "list", "elements": "str", "default": ["overlay", "br_netfilter", "vxlan"]},
            "digests": {"type": "list", "elements": "str", "default": []},
            "declared": {"type": "dict", "default": {}},
            "advertise": {"type": "dict", "default": {}},
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    options = module.params
    wanted = Wanted(
        data_dir=options["data_dir"],
        ports=tuple(options["ports"]),
        modules=tuple(options["modules"]),
        digests=tuple(options["digests"]),
    )
    declared = options["declared"]
    named = {key: declared.get(key) or "" for key in ("address", "interface")}
    advertise = decide(options["sysfs_root"], {**options["advertise"], **named}).to_dict()
    chosen = {key: advertise[key] or text for key, text in named.items()}
    host = dict(
        read_host(wanted),
        declared={**declared, **chosen},
        advertise=advertise,
        hardware=read_hardware(options["sysfs_root"], run_command),
    )
    module.exit_json(changed=False, host=host)


if __name__ == "__main__":
    main()
