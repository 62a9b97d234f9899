#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_record
short_description: Add a stage's result to the cluster record
description:
  - Every stage adds its result to one JSON file per cluster on the controller. The report, the diagnosis and the output of
    a job read that file; nothing else is written twice.
  - The file has mode V(0600) and is replaced atomically; a stage replaces what it wrote the last time and leaves the rest.
  - The record says what a run found. It is not managed state, so writing it never counts as a change.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Writes nothing in check mode.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
  action:
    description: Runs on the controller, whatever the host's connection is.
    support: full
options:
  path:
    description: The record's file on the controller. Missing folders are made with mode V(0700).
    type: path
    required: true
  stage:
    description: The key under which the result is kept.
    type: str
    required: true
  result:
    description: What the stage found. It must hold no secret.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Record what the preflight found
  infera.baremetal.cluster_record:
    path: "{{ cluster_dir }}/record.json"
    stage: preflight
    result:
      findings: "{{ preflight_result }}"
  run_once: true
"""

RETURN = r"""
path:
  description: Absolute path of the record.
  type: str
  returned: always
"""
