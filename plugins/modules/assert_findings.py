#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: assert_findings
short_description: Stop on findings of severity error, in one message
description:
  - The one assertion of all stages. It fails when a finding has the severity V(error) and its code is not waived, with a
    message that lists every finding and its fix. Warnings are shown and pass.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Reads only.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
  action:
    description: Runs on the controller, whatever the host's connection is.
    support: full
options:
  findings:
    description: The findings, each with C(code), C(severity), C(message), C(fix) and C(where).
    type: list
    elements: dict
    required: true
  waive:
    description: Codes that do not stop the run; a list, or a string with commas.
    type: list
    elements: str
    default: []
  subject:
    description: What was examined, for the first line of the message.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Stop on what is wrong
  infera.baremetal.assert_findings:
    subject: Preflight of 2 hosts
    findings: "{{ findings }}"
    waive: "{{ preflight_waive }}"
"""

RETURN = r"""
errors:
  description: The codes that stop the run. The findings themselves stand in the message.
  type: list
  elements: str
  returned: always
waived:
  description: The codes of severity V(error) that O(waive) lets pass; the message shows them as C(waived).
  type: list
  elements: str
  returned: always
"""
