#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: k3s_node_info
short_description: What a k3s node is, and why it is not Ready
description:
  - Reads what is installed and running on a node, and what the API says of it, asked on the node itself.
  - With O(wait) it waits until the node is Ready, at O(version) and at O(address), and fails with the cause when that does
    not happen, from the unit's log and a connection to the server. Tokens are cut out of log lines.
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
  unit:
    description: The systemd unit.
    type: str
    choices: [k3s, k3s-agent]
    required: true
  name:
    description: The node's name in the API.
    type: str
    required: true
  data_dir:
    description: k3s's data-dir.
    type: path
    required: true
  server_url:
    description: The URL that an agent joins, for the explanation.
    type: str
    default: ""
  version:
    description: The version that the kubelet must report, such as V(v1.36.2+k3s1). Empty for any.
    type: str
    default: ""
  address:
    description: The InternalIP that the node must have. Empty for any.
    type: str
    default: ""
  files:
    description: Files that a run would put on the node, each C(path) with the C(sha256) that it should have.
    type: list
    elements: dict
    default: []
    suboptions:
      path:
        description: The file.
        type: path
        required: true
      sha256:
        description: Its digest in hexadecimal.
        type: str
        required: true
  wait:
    description: How long to wait, in seconds. With V(0) it looks once and never fails.
    type: int
    default: 0
"""

EXAMPLES = r"""
- name: Wait until the node is Ready, or say why it is not
  infera.baremetal.k3s_node_info:
    unit: k3s-agent
    name: gpu2
    data_dir: /data/k3s
    server_url: https://10.1.0.1:6443
    address: 10.1.0.2
    wait: 300
"""

RETURN = r"""
node:
  description: The node.
  type: dict
  returned: always
  contains:
    installed_version:
      description: Version of the binary; null where there is none.
      type: str
    loaded:
      description: Whether systemd knows the unit.
      type: bool
    running:
      description: Whether the unit's process runs.
      type: bool
    enabled:
      description: Whether systemd starts the unit at boot.
      type: bool
    needs_reload:
      description: Whether systemd has an older form of the unit than its file.
      type: bool
    unit_state:
      description: systemd's ActiveState.
      type: str
    data_dir:
      description: The data-dir that C(/etc/rancher/k3s/config.yaml) names now.
      type: str
    config:
      description: What that file says of C(data-dir), C(cluster-cidr) and C(service-cidr), by these keys.
      type: dict
    ready:
      description: The node's Ready condition; null where the API does not know it.
      type: bool
    version:
      description: The kubelet's version as the API has it.
      type: str
    address:
      description: The node's InternalIP.
      type: str
    selinux:
      description: Whether the kernel runs SELinux.
      type: bool
settled:
  description: Whether the node is Ready, at O(version) and at O(address), and its unit active and enabled.
  type: bool
  returned: always
differing:
  description: Those of O(files) that are not there, or not as they should be.
  type: list
  elements: str
  returned: always
findings:
  description: Why the node is not what was asked for; empty when it is.
  type: list
  elements: dict
  returned: always
"""

import time

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.findings import summary
from ansible_collections.infera.baremetal.plugins.module_utils.k3s_node import (
    Target,
    differing,
    read_node,
    settled,
    to_dict,
    wait_until_settled,
)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "unit": {"type": "str", "choices": ["k3s", "k3s-agent"], "required": True},
            "name": {"type": "str", "required": True},
            "data_dir": {"type": "path", "required": True},
            "server_url": {"type": "str", "default": ""},
            "version": {"type": "str", "default": ""},
            "address": {"type": "str", "default": ""},
            "files": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "path": {"type": "path", "required": True},
                    "sha256": {"type": "str", "required": True},
                },
            },
            "wait": {"type": "int", "default": 0},
        },
        supports_check_mode=True,
    )
    options = dict(module.params)
    seconds = options.pop("wait")
    stale = differing((file["path"], file["sha256"]) for file in options.pop("files"))
    target = Target(**options)
    if not seconds:
        node = read_node(target)
        in_order = settled(target, node) and node.unit.enabled
        module.exit_json(changed=False, node=to_dict(node), settled=in_order, differing=stale, findings=[])
    started = time.monotonic()
    node, problems = wait_until_settled(target, seconds)
    findings = [finding.to_dict() for finding in problems]
    if findings:
        module.fail_json(
            msg=f"{target.name} is not Ready after {time.monotonic() - started:.0f} s.\n{summary(findings)}",
            node=to_dict(node),
            settled=False,
            differing=stale,
            findings=findings,
        )
    module.exit_json(changed=False, node=to_dict(node), settled=True, differing=stale, findings=[])


if __name__ == "__main__":
    main()
