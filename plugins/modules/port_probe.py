#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: port_probe
short_description: Prove that ports can be reached between hosts before anything listens on them
description:
  - First every host listens (O(state=listening)), in the background and for a bounded time; then every host asks the others
    (O(state=probed)); last every host stops listening (O(state=stopped)). So the number of forks does not matter.
  - A listener answers with the host's name, so that an address that leads to another host is told from the right one.
  - A port that something holds already is not taken from it. Over TCP a connection to it counts; over UDP it is not tested.
  - The listener leaves no file. It ends at the time limit even when the run is killed, and a new one replaces it.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Runs in check mode too, since nothing stays.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
options:
  state:
    description: What this host does.
    type: str
    choices: [listening, probed, stopped]
    required: true
  host:
    description: This host's name, which the listener answers with and which is left out of O(targets).
    type: str
    default: ""
  address:
    description: The address to listen on, or to ask from. Empty leaves the choice of the source to the routes.
    type: str
    default: ""
  ports:
    description: What to listen on, such as V(6443/tcp).
    type: list
    elements: str
    default: []
  seconds:
    description: How long to listen at most, from 1 to 3600.
    type: int
    default: 120
  targets:
    description: Whom to ask.
    type: list
    elements: dict
    default: []
    suboptions:
      host:
        description: Name of the host.
        type: str
        required: true
      address:
        description: Its address.
        type: str
        required: true
      ports:
        description: Its ports, such as V(6443/tcp).
        type: list
        elements: str
        required: true
      answers:
        description: Whether this module listens there. Otherwise a mere connection counts, and UDP is not tested.
        type: bool
        default: true
  timeout:
    description: How long to wait for one answer, in seconds.
    type: float
    default: 3.0
  concurrency:
    description: How many targets to ask at once.
    type: int
    default: 128
"""

EXAMPLES = r"""
- name: Listen where k3s will
  infera.baremetal.port_probe:
    state: listening
    host: "{{ inventory_hostname }}"
    address: 10.1.0.1
    ports: [6443/tcp, 10250/tcp, 8472/udp]

- name: Ask the others
  infera.baremetal.port_probe:
    state: probed
    host: "{{ inventory_hostname }}"
    address: 10.1.0.1
    targets:
      - host: gpu2
        address: 10.1.0.2
        ports: [10250/tcp, 8472/udp]

- name: Stop listening
  infera.baremetal.port_probe:
    state: stopped
"""

RETURN = r"""
listening:
  description: The ports that are listened on.
  type: list
  elements: str
  returned: with O(state=listening)
unavailable:
  description: The ports that could not be had, C(port) and C(reason) (V(in_use), or the system's words).
  type: list
  elements: dict
  returned: with O(state=listening)
results:
  description:
    - One entry a target's port - C(host), C(address), C(port), C(rtt_ms), C(detail), and C(state).
    - C(state) is V(open), V(wrong_host), V(refused), V(timeout), V(unreachable), V(no_source), V(not_tested) or V(failed).
  type: list
  elements: dict
  returned: with O(state=probed)
stopped:
  description: Whether there was a listener.
  type: bool
  returned: with O(state=stopped)
"""

from typing import Any, Dict

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.port_probe import (
    PortProbeError,
    parse_port,
    parse_targets,
    probe,
    start_listener,
    stop_listener,
)

TARGET = {
    "host": {"type": "str", "required": True},
    "address": {"type": "str", "required": True},
    "ports": {"type": "list", "elements": "str", "required": True},
    "answers": {"type": "bool", "default": True},
}


def run(options: Dict[str, Any]) -> Dict[str, Any]:
    """The module's result; ValueError for what the options say wrongly."""
    if options["state"] == "stopped":
        return {"stopped": stop_listener()}
    if options["state"] == "listening":
        if not 1 <= options["seconds"] <= 3600:
            raise ValueError(f"seconds is {options['seconds']}; it must be from 1 to 3600")
        ports = [parse_port(text) for text in options["ports"]]
        listening, unavailable = start_listener(options["host"], options["address"], ports, options["seconds"])
        return {"listening": listening, "unavailable": unavailable}
    if not 0 < options["timeout"] <= 60:
        raise ValueError(f"timeout is {options['timeout']}; it must be above 0 and at most 60")
    targets = parse_targets(options["targets"], options["host"])
    results = probe(targets, options["address"], options["timeout"], max(1, options["concurrency"]))
    return {"results": [result.to_dict() for result in results]}


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["listening", "probed", "stopped"], "required": True},
            "host": {"type": "str", "default": ""},
            "address": {"type": "str", "default": ""},
            "ports": {"type": "list", "elements": "str", "default": []},
            "seconds": {"type": "int", "default": 120},
            "targets": {"type": "list", "elements": "dict", "default": [], "options": TARGET},
            "timeout": {"type": "float", "default": 3.0},
            "concurrency": {"type": "int", "default": 128},
        },
        required_if=[("state", "listening", ["address", "ports"])],
        supports_check_mode=True,
    )
    try:
        result = run(module.params)
    except (PortProbeError, ValueError) as error:
        module.fail_json(msg=f"port_probe: {error}")
    module.exit_json(changed=False, **result)


if __name__ == "__main__":
    main()
