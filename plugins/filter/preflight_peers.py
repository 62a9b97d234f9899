# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_peers
short_description: Which ports of which hosts every host has to reach before the join
description:
  - The hosts of the run, and servers that a C(--limit) left out as far as the inventory knows their C(cluster_address), since a
    new agent has to reach its server.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: Host -> what host_info returned as C(host).
    type: dict
    required: true
  settings:
    description: As of P(infera.baremetal.preflight_findings#filter).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Ask the others
  infera.baremetal.port_probe:
    state: probed
    host: "{{ inventory_hostname }}"
    targets: "{{ preflight_hosts | infera.baremetal.preflight_peers({'groups': groups}) }}"
"""

RETURN = r"""
_value:
  description: The O(infera.baremetal.port_probe#module:targets), each with C(host), C(address), C(ports) and C(answers).
  type: list
  elements: dict
"""

from typing import Any

from ansible.errors import AnsibleFilterError


def preflight_peers(hosts: dict[str, Any], settings: dict[str, Any]) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.reachability import peers
    from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import (
        PreflightInputError,
        Settings,
    )

    try:
        return peers(hosts, Settings.parse(settings))
    except PreflightInputError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_peers": preflight_peers}
