# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: as_list
short_description: A list, also where it was given as a string
description:
  - Surveys of AWX and extra vars on a command line are strings. This takes JSON text or words with commas for what it says.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The value. What cannot be understood comes back as it is, for the stage's findings to name it.
    type: raw
    required: true
"""

EXAMPLES = r"""
- name: Show it
  ansible.builtin.debug:
    msg: "{{ 'traefik, servicelb' | infera.baremetal.as_list }}"
"""

RETURN = r"""
_value:
  description: A list.
  type: raw
"""

from typing import Any

from ansible_collections.infera.baremetal.plugins.plugin_utils.survey import as_list


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"as_list": as_list}
