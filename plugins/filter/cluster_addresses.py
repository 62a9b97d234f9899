# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: cluster_addresses
short_description: The addresses that hosts advertise, those left out by C(--limit) included
description:
  - C(cluster_address) of the inventory or of this run, else the address that the host's node had when it was recorded.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The hosts.
    type: list
    elements: str
    required: true
  hostvars:
    description: Ansible's C(hostvars).
    type: dict
    required: true
  record:
    description: The cluster record, see P(infera.baremetal.record#filter).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show who advertises what
  ansible.builtin.debug:
    msg: "{{ groups.k3s_cluster | infera.baremetal.cluster_addresses(hostvars, cluster_dir | infera.baremetal.record) }}"
"""

RETURN = r"""
_value:
  description: Host -> address; an empty text where none is known.
  type: dict
"""

from typing import Any, Iterable, Mapping


def cluster_addresses(hosts: Iterable[str], hostvars: Mapping[str, Any], record: Mapping[str, Any]) -> dict[str, str]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.record import address_of

    return {host: address_of(host, hostvars.get(host, {}), record) for host in hosts}


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"cluster_addresses": cluster_addresses}
