#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: serving_rollout
short_description: Apply the objects of a deployment, and wait until its pods are ready, or say why they are not
description:
  - All objects are tried on the API server first (a server-side apply as a dry run), and then those that differ are applied under the
    field manager C(infera). A conflict or an invalid object is told before anything but a new namespace is made.
  - A pod counts when it is ready and was made from the template that was applied. Deployments of O(selector) that are not among the
    objects are deleted.
  - The wait ends early where time alone will not help (a crash loop). A failure names every pod with its reason and last log lines.
author:
  - infera.baremetal authors (@infera-project)
extends_documentation_fragment:
  - infera.baremetal.rollout
options:
  namespace:
    description: The namespace of the pods.
    type: str
    required: true
  selector:
    description: Labels of the deployment's pods and Deployments.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Apply router and workers, and wait until all pods are ready
  infera.baremetal.serving_rollout:
    kubeconfig: "{{ cluster_kubeconfig }}"
    objects: "{{ deployment | infera.baremetal.serving_manifests }}"
    namespace: infera
    selector: infera.amd.com/deployment=infera
    subject: Deployment infera
    timeout: 600
  run_once: true
"""

RETURN = r"""
resources:
  description: The objects as the API server has them now, without their status. Empty where there is no cluster yet.
  type: list
  elements: dict
  returned: success
applied:
  description: Kind and name of the objects that changed, or would change.
  type: list
  elements: str
  returned: success
predicted:
  description: Whether there is no cluster yet, and nobody was asked.
  type: bool
  returned: success
removed:
  description: Names of the Deployments that were not wanted any more.
  type: list
  elements: str
  returned: success, where there is a cluster
"""
