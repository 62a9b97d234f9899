#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: gpu_plugin_rollout
short_description: Apply the AMD device plugin, and wait until the nodes offer their GPUs, or say why they do not
description:
  - All objects are tried on the API server first (a server-side apply as a dry run), and then those that differ are applied under the
    field manager C(infera). A conflict or an invalid object is told before anything but a new namespace is made.
  - Where something changed, the new plugin has to run everywhere before what the nodes offer counts.
author:
  - infera.baremetal authors (@infera-project)
extends_documentation_fragment:
  - infera.baremetal.rollout
options:
  expected:
    description: Node -> number of GPUs that it should offer. V(0) is not waited for.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Apply the device plugin, and wait until the nodes offer their GPUs
  infera.baremetal.gpu_plugin_rollout:
    kubeconfig: "{{ cluster_kubeconfig }}"
    objects: "{{ gpu_plugin_image | infera.baremetal.gpu_plugin_manifests }}"
    expected: {gpu1: 8, gpu2: 8}
    subject: Device plugin
    timeout: 180
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
seen:
  description: Node -> number of C(amd.com/gpu) that it offers.
  type: dict
  returned: where there is a cluster
"""
