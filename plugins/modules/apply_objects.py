#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: apply_objects
short_description: Apply Kubernetes objects server-side, with a diff and a prediction on a cluster that is not there yet
description:
  - Applies a list of objects in one call of M(kubernetes.core.k8s), server-side, and shows the difference of each that changes,
    without the fields that change by themselves.
  - In check mode the API server does a dry run. Where there is no kubeconfig yet, or no namespace, it says what would be applied.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: A dry run on the API server, or a prediction where there is none yet.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: full
  action:
    description: Runs on the controller, or where the task is delegated to; needs the Python client C(kubernetes) there.
    support: full
options:
  kubeconfig:
    description: The kubeconfig on the controller. A relative path is taken from where the run starts.
    type: path
    required: true
  objects:
    description: The objects, in the order in which they are applied.
    type: list
    elements: dict
    required: true
  field_manager:
    description: The name under which the API server notes who owns the fields.
    type: str
    default: infera
  force_conflicts:
    description: Take over fields that another manager owns, such as someone's C(kubectl edit). Else that is an error that names the manager.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Apply router and workers
  infera.baremetal.apply_objects:
    kubeconfig: "{{ cluster_kubeconfig }}"
    objects: "{{ deployment | infera.baremetal.serving_manifests }}"
  delegate_to: localhost
  run_once: true
"""

RETURN = r"""
resources:
  description: The objects as the API server has them now. Empty where there is no cluster yet.
  type: list
  elements: dict
  returned: success
applied:
  description: Kind and name of the objects that changed, or would change.
  type: list
  elements: str
  returned: success
"""
