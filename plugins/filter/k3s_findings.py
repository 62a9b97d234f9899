# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: k3s_findings
short_description: What is wrong with the variables of the k3s role
description:
  - Checks everything that the k3s role is given and lists all that is wrong at once, as findings.
  - Names the nearest known key for a misspelt key of C(k3s_config), which k3s itself would skip in silence.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description:
      - The role's variables without their prefix, V(config), V(config_allow), V(data_dir), V(node_ip), V(flannel_iface), V(node_name),
        V(version), V(binary_sha256), V(airgap_archive), V(airgap_sha256), V(token), and V(artifacts), as P(infera.baremetal.k3s_artifacts#filter) returns them.
    type: dict
    required: true
  server:
    description: Whether the host is a server.
    type: bool
    required: true
  node:
    description: What M(infera.baremetal.k3s_node_info) returned, to refuse a downgrade, a skipped minor version, another data-dir and other CIDRs.
    type: dict
"""

EXAMPLES = r"""
- name: Show what is wrong
  ansible.builtin.debug:
    msg: "{{ {'config': {'kublet-arg': []}, 'data_dir': '/data/k3s'} | infera.baremetal.k3s_findings(server=true) }}"
"""

RETURN = r"""
_value:
  description: The findings; an empty list when nothing is wrong.
  type: list
  elements: dict
"""

from typing import Any


def k3s_findings(given: dict[str, Any], server: bool, node: dict[str, Any] | None = None) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.k3s_config import input_findings, node_findings

    findings = input_findings(given, server)
    cidrs = (
        {key: str(given[key.replace("-", "_")]) for key in ("cluster-cidr", "service-cidr")} if server and node else {}
    )
    findings += node_findings(node or {}, str(given.get("version") or ""), str(given.get("data_dir") or ""), cidrs)
    return [finding.to_dict() for finding in findings]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"k3s_findings": k3s_findings}
