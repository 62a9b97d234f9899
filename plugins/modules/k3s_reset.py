#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: k3s_reset
short_description: Take a node back to what it was before the k3s stage
description:
  - Stops k3s, ends the pods' processes, unmounts what they mounted, and removes interfaces, iptables rules and files that
    this collection, or the k3s that it installed, made. Everything else stays.
  - That the k3s on the host is the collection's is proven first, by its unit and its C(config.yaml); on a host with neither
    nothing is touched. A k3s that was installed otherwise, and a data-dir other than O(data_dir), are refused.
  - C(/etc/rancher/node) stays on purpose, since a node that rejoins with a new password is refused.
  - The proof is removed last, so a run that was killed is completed by the next one.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Lists what would be removed, and removes nothing.
    support: full
  diff_mode:
    description: Shows what is removed, a line each.
    support: full
options:
  data_dir:
    description: k3s's data-dir. It must be the one that the installed C(config.yaml) names.
    type: path
    required: true
  pod_cidrs:
    description: CIDRs of pods. Routes inside of them, to other nodes' pods, are removed.
    type: list
    elements: str
    default: [10.42.0.0/16]
  timeout:
    description: Seconds that pods' processes may take to die, and their mounts to come free.
    type: int
    default: 30
"""

EXAMPLES = r"""
- name: Remove k3s and what it made
  infera.baremetal.k3s_reset:
    data_dir: /data/k3s
"""

RETURN = r"""
removed:
  description: What was removed; in check mode, what would be.
  type: dict
  returned: always
  contains:
    units:
      description: Units that ran.
      type: list
      elements: str
    processes:
      description: Processes of pods and their shims.
      type: list
      elements: str
    mounts:
      description: Mount points.
      type: list
      elements: str
    interfaces:
      description: Interfaces.
      type: list
      elements: str
    routes:
      description: Routes to other nodes' pods.
      type: list
      elements: str
    rules:
      description: Chains of iptables and ip6tables, and rules that led to them.
      type: list
      elements: str
    paths:
      description: Files and folders.
      type: list
      elements: str
findings:
  description: What stays although it lies where k3s's files do (severity info), or why nothing, or not all, was removed.
  type: list
  elements: dict
  returned: always
"""

import ipaddress

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.k3s_reset import Plan, System, carry_out, survey


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "data_dir": {"type": "path", "required": True},
            "pod_cidrs": {"type": "list", "elements": "str", "default": ["10.42.0.0/16"]},
            "timeout": {"type": "int", "default": 30},
        },
        supports_check_mode=True,
    )
    system, plan = System(), Plan()
    try:
        cidrs = [str(ipaddress.ip_network(cidr.strip())) for cidr in module.params["pod_cidrs"]]
    except ValueError as error:
        module.fail_json(msg=f"pod_cidrs: {error}", removed=plan.to_dict(), findings=[])
    try:
        plan = survey(module.params["data_dir"], cidrs, system)
        if not plan.empty and not module.check_mode:
            carry_out(plan, system, module.params["timeout"])
    except FindingError as error:
        findings = [finding.to_dict() for finding in error.findings]
        module.fail_json(msg=str(error), removed=plan.to_dict(), findings=findings)
    module.exit_json(
        changed=not plan.empty,
        removed=plan.to_dict(),
        findings=[finding.to_dict() for finding in plan.stays],
        diff={
            "before_header": "of k3s on this host",
            "after_header": "of k3s on this host",
            "before": "".join(f"{line}\n" for line in plan.lines()),
            "after": "",
        },
    )


if __name__ == "__main__":
    main()
