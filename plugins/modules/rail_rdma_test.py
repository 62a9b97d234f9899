#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_rdma_test
short_description: Exchange and measure RDMA between pairs of rails
description:
  - Runs one side of C(ibv_rc_pingpong) and, where that comes through, of C(ib_write_bw) for every pair of rails at once. What runs when is
    planned by P(infera.baremetal.rail_rounds#filter), and what it says is judged by P(infera.baremetal.rdma_results#filter).
  - Each tool ends by itself at a time limit (C(timeout) of coreutils) even when the run is killed. Only processes that this module started
    are ended.
  - Servers listen on all addresses of the host, without any authentication, until their one client came or the time limit is over. Use it
    where the hosts trust each other, and set no time limit longer than is needed.
  - It fills the rails while it measures. Do not run it beside work that uses them.
  - RV(missing) names tools that a host lacks; P(infera.baremetal.rail_rounds#filter) leaves such a host out, and nothing fails.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Looks for the tools, and neither starts nor ends anything.
    support: partial
    details:
      - Nothing is measured, so there are no RV(results) and no RV(servers).
  diff_mode:
    description: Returns what changed in state.
    support: none
options:
  state:
    description:
      - V(server) starts servers in the background and ends those of an earlier round that still wait.
      - V(client) runs against the peers' servers, and waits up to 10 seconds for them to listen.
      - V(stopped) ends servers that still run and returns what all of them said. Call it before the first round, too, so that nothing of a run
        that was killed is left.
    type: str
    choices: [server, client, stopped]
    required: true
  tests:
    description: The pairs of rails.
    type: list
    elements: dict
    default: []
    suboptions:
      rail:
        description: C(index) of this host's rail.
        type: int
        required: true
      rdma_device:
        description: Its RDMA device.
        type: str
        required: true
      port:
        description: Its port.
        type: int
        default: 1
      gid_index:
        description: Index of its GID.
        type: int
        required: true
      netdev:
        description: Its network device, whose counter is read where the RDMA device is software.
        type: str
        default: ""
      peer:
        description: Name of the other host.
        type: str
        required: true
      peer_rail:
        description: C(index) of the other host's rail.
        type: int
        required: true
      peer_address:
        description: Address of the other host at which the tools agree over TCP; not the rail's.
        type: str
        required: true
      tcp_port:
        description: TCP port of the server for C(ibv_rc_pingpong); C(ib_write_bw) takes the next one.
        type: int
        required: true
      bandwidth:
        description: Whether C(ib_write_bw) runs, too.
        type: bool
        default: true
  seconds:
    description: How long a bandwidth is measured, from 1 to 60. Both sides must be given the same.
    type: int
    default: 2
  timeout:
    description: Seconds that one exchange may take, from 1 to 600; a bandwidth may take O(seconds) more.
    type: float
    default: 30
  lifetime:
    description: Seconds after which a server ends by itself, from 1 to 3600.
    type: int
    default: 300
  sysfs_root:
    description: Where sysfs is mounted, for counters.
    type: path
    default: /sys
"""

EXAMPLES = r"""
- name: Forget what an earlier run left, and look for the tools
  infera.baremetal.rail_rdma_test:
    state: stopped
  register: tools

- name: Start the servers of a round
  infera.baremetal.rail_rdma_test:
    state: server
    tests: "{{ round.server[inventory_hostname] }}"
  when: inventory_hostname in round.server

- name: Measure
  infera.baremetal.rail_rdma_test:
    state: client
    tests: "{{ round.client[inventory_hostname] }}"
  when: inventory_hostname in round.client
  register: measured
"""

RETURN = r"""
missing:
  description: Tools that this host lacks.
  type: list
  elements: str
  returned: success
  sample: [ib_write_bw]
results:
  description:
    - One entry a test, in their order - C(rail), C(peer), C(peer_rail), C(pingpong), and C(bandwidth) (null where it did not run).
    - Both have C(ok), C(cause), C(error) (one line), C(usec) (an exchange of 4096 bytes there and back, in microseconds) and C(gbps) (10^9 bits
      per second, the average; null where the tool gave none).
    - And C(bytes) (what this end sent, at least), C(sent) (by how many bytes the rail's own counter rose meanwhile; null where it has none) and
      that C(counter), a path below sysfs.
    - C(cause) is V(queue_pair) ("Failed to modify QP to RTR"), V(gid), V(device), V(memory), V(unacknowledged), V(completion), V(port_in_use),
      V(connection), V(peer) (the other end gave up - see what its server said), V(hung), V(unknown), or empty.
    - Counters are C(hw_counters/tx_rdma_ucast_bytes) (ionic), else C(counters/port_xmit_data) (in words of 4 bytes, here in bytes), else, for
      software RDMA, C(tx_bytes) of the network device.
  type: list
  elements: dict
  returned: with O(state=client)
servers:
  description:
    - What each server since the last V(stopped) said - C(rail), C(peer), C(peer_rail), C(kind), C(ok), C(cause), C(error).
    - C(cause) as above, or V(waiting) where it still waited.
  type: list
  elements: dict
  returned: with O(state=stopped)
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.rdma_test import (
    missing_tools,
    parse_tests,
    run_client,
    start_servers,
    stop_servers,
)

TEST = {
    "rail": {"type": "int", "required": True},
    "rdma_device": {"type": "str", "required": True},
    "port": {"type": "int", "default": 1},
    "gid_index": {"type": "int", "required": True},
    "netdev": {"type": "str", "default": ""},
    "peer": {"type": "str", "required": True},
    "peer_rail": {"type": "int", "required": True},
    "peer_address": {"type": "str", "required": True},
    "tcp_port": {"type": "int", "required": True},
    "bandwidth": {"type": "bool", "default": True},
}
BOUNDS = {"seconds": (1, 60), "timeout": (1, 600), "lifetime": (1, 3600)}


def run(options: Dict[str, Any]) -> Dict[str, Any]:
    """The module's result; ValueError for what the options say wrongly, OSError where servers' words cannot be kept."""
    for name, (low, high) in BOUNDS.items():
        if not low <= options[name] <= high:
            raise ValueError(f"{name} is {options[name]}; it must be from {low} to {high}")
    tests = parse_tests(options["tests"])
    missing = missing_tools()
    if options["state"] == "stopped":
        return {"missing": missing, "servers": stop_servers()}
    if options["state"] == "server":
        start_servers(tests, options["seconds"], options["lifetime"])
        return {"missing": missing}
    results = run_client(tests, options["seconds"], options["timeout"], options["sysfs_root"])
    return {"missing": missing, "results": results}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["server", "client", "stopped"], "required": True},
            "tests": {"type": "list", "elements": "dict", "default": [], "options": TEST},
            "seconds": {"type": "int", "default": 2},
            "timeout": {"type": "float", "default": 30},
            "lifetime": {"type": "int", "default": 300},
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    if module.check_mode:
        module.exit_json(changed=False, missing=missing_tools())
    try:
        result = run(module.params)
    except ValueError as error:
        module.fail_json(msg=f"rail_rdma_test: {error}")
    except OSError as error:
        module.fail_json(msg=f"rail_rdma_test: {error.filename or 'the servers'}: {error.strerror or error}")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
