# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the actions that apply objects and wait have in common (plugin_utils/rollout.py)."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
attributes:
  check_mode:
    description: A dry run on the API server, or a prediction where there is no cluster yet; nothing is waited for.
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: full
  action:
    description: Runs on the controller, whatever the host; needs the Python client C(kubernetes) there.
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
  force_conflicts:
    description: Take over fields that another manager owns, such as someone's C(kubectl edit). Else that is an error that names the manager.
    type: bool
    default: false
  subject:
    description: What the objects are together, as the beginning of a message.
    type: str
    required: true
  timeout:
    description: How long to wait, in seconds.
    type: int
    required: true
"""
