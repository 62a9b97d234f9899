# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_manifests
short_description: The Kubernetes objects of a deployment
description:
  - Builds the namespace, the RBAC of pod discovery, the router with its Service, and one Deployment for each worker.
  - Fails with all findings when the description has an error.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The deployment, see P(infera.baremetal.serving_deployment#filter).
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Write the manifests to a file
  ansible.builtin.copy:
    content: "{{ deployment | infera.baremetal.serving_manifests | to_nice_yaml }}"
    dest: manifests.yml
    mode: "0644"
"""

RETURN = r"""
_value:
  description: The objects, in the order in which they are to be applied.
  type: list
  elements: dict
"""

from typing import Any, Mapping

from ansible.errors import AnsibleFilterError


def serving_manifests(deployment: Mapping[str, Any]) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import parse_deployment
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.manifests import build_manifests

    try:
        return build_manifests(parse_deployment(deployment))
    except FindingError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_manifests": serving_manifests}
