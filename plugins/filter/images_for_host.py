# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: images_for_host
short_description: Those of the cluster's images that a host needs
description:
  - An image without C(hosts) is for every host, one with C(hosts) for the hosts and groups that it names.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The images, each with C(name), and optionally C(archive) and C(hosts).
    type: list
    elements: dict
    required: true
  host:
    description: The host's name in the inventory.
    type: str
    required: true
  groups:
    description: The groups that the host is in.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
- name: Import what this host needs
  infera.baremetal.containerd_image:
    images: "{{ images_list | infera.baremetal.images_for_host(inventory_hostname, group_names) }}"
"""

RETURN = r"""
_value:
  description: The images, each once, with C(name) and C(archive).
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def images_for_host(images: Iterable[Mapping[str, Any]], host: str, groups: Iterable[str]) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.image_list import for_host

    return for_host(images, host, groups)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"images_for_host": images_for_host}
