#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: serving_check
short_description: Ask a deployment whether it is what it was meant to be
description:
  - Compares the pods with their places, waits until the router knows exactly the wanted workers, and asks for one completion.
  - The router is asked from the host that the task runs on, since its address is the cluster's own. What is wrong is returned as
    findings, with every pod's last log lines; the task itself fails only where the API does not answer.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Asks, as always; nothing is changed.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
  action:
    description: Runs on the controller, which needs the Python client C(kubernetes), and asks the router by M(ansible.builtin.uri).
    support: full
options:
  kubeconfig:
    description: The kubeconfig on the controller. A relative path is taken from where the run starts.
    type: path
    required: true
  plan:
    description: The plan of the deployment (see P(infera.baremetal.serving_plan#filter)) with its C(endpoint), as the cluster record has it.
    type: dict
    required: true
  request:
    description: The body of the chat completion.
    type: dict
    required: true
  deadline:
    description: Seconds within which the workers have to be registered, and again for the completion.
    type: int
    required: true
  pattern:
    description: A regular expression that the answer has to match somewhere. Empty for any.
    type: str
    default: ""
"""

EXAMPLES = r"""
- name: Ask from the server's host
  infera.baremetal.serving_check:
    kubeconfig: "{{ cluster_kubeconfig }}"
    plan: "{{ record.serving }}"
    request: {model: Qwen3-0.6B, messages: [{role: user, content: Hello}], max_tokens: 16}
    deadline: 120
  delegate_to: "{{ groups.k3s_server | first }}"
  run_once: true
  register: result
"""

RETURN = r"""
answer:
  description: The text of the completion. Empty where none came.
  type: str
  returned: success
seconds:
  description: How long the completion took, in seconds.
  type: float
  returned: success
findings:
  description: What is wrong; empty when all is well.
  type: list
  elements: dict
  returned: success
"""
