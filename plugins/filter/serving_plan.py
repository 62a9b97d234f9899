# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_plan
short_description: What a deployment amounts to in the cluster
description:
  - The names, nodes, images, addresses and times that follow from a deployment, as the cluster record keeps them.
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
- name: Show which images each node needs
  ansible.builtin.debug:
    msg: "{{ (deployment | infera.baremetal.serving_plan).images }}"
"""

RETURN = r"""
_value:
  description: The plan, with C(name), C(namespace), C(selector), C(model), C(pods), C(images), C(folders), C(wait_seconds) and others.
  type: dict
"""

from typing import Any, Mapping

from ansible.errors import AnsibleFilterError


def serving_plan(deployment: Mapping[str, Any]) -> dict[str, Any]:
    from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import parse_deployment
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.plan import deployment_plan

    try:
        return deployment_plan(parse_deployment(deployment))
    except FindingError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_plan": serving_plan}
