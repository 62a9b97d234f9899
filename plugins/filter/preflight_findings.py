# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_findings
short_description: What is wrong with the hosts, one by one and compared with each other
description:
  - Judges what P(infera.baremetal.host_info#module) read on every host against the settings of the role
    P(infera.baremetal.preflight#role). Pure - the same facts give the same findings.
  - Every code, with what it says, is listed in the role's README.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: Host -> what host_info returned as C(host).
    type: dict
    required: true
  settings:
    description:
      - The role's variables without their prefix - V(kubernetes_version), V(pod_cidrs), V(service_cidrs), V(server_ports), V(node_ports),
        V(worker_ports), V(required_bytes), V(base_bytes), V(image_factor), V(max_skew) (seconds), V(min_inotify_watches),
        V(min_inotify_instances), V(waive).
      - And V(groups) (group -> hosts), V(hosts) (those of the run, reached or not), V(addresses) (host -> cluster_address),
        V(unread) (host -> why it could not be read) and V(images) (from P(infera.baremetal.preflight_images#filter)).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ {'gpu1': preflight_host.host} | infera.baremetal.preflight_findings({'groups': groups, 'hosts': ['gpu1']}) }}"
"""

RETURN = r"""
_value:
  description: The findings, those of the cluster as a whole first. Empty when nothing is wrong.
  type: list
  elements: dict
"""

from typing import Any


def preflight_findings(hosts: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.judge import judge
    from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import (
        PreflightInputError,
        Settings,
    )

    try:
        return [finding.to_dict() for finding in judge(hosts, Settings.parse(settings))]
    except PreflightInputError as error:
        return [error.finding().to_dict()]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_findings": preflight_findings}
