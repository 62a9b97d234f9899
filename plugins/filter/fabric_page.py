# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: fabric_page
short_description: The fabric as one HTML page
description:
  - A heat map of pairs of hosts and of rails, round-trip times, the reason behind every bad cell, and the fix. The page needs no network and
    no script, follows the reader's light or dark scheme, can be read without colour, and prints.
  - Every cell leads to text - the rails of a pair, the facts of a host, or why it could not be read. With more than 300 pairs, those that
    are full have no table of their own.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: What P(infera.baremetal.fabric#filter) returned.
    type: dict
    required: true
  seen:
    description: What it was made from, see P(infera.baremetal.rails_seen#filter).
    type: dict
    required: true
  cluster:
    description: Name of the cluster.
    type: str
    required: true
  at:
    description: When it was measured, for people.
    type: str
    required: true
"""

EXAMPLES = r"""
- name: Leave the page
  ansible.builtin.copy:
    content: "{{ fabric | infera.baremetal.fabric_page(seen, cluster='east', at=now(utc=true)) }}"
    dest: fabric.html
    mode: "0600"
  delegate_to: localhost
"""

RETURN = r"""
_value:
  description: The page's text.
  type: str
"""

from typing import Any, Mapping


def fabric_page(fabric: Mapping[str, Any], seen: Mapping[str, Any], cluster: str, at: Any) -> str:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.fabric_page import page

    return page(fabric, seen, str(cluster), str(at))


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"fabric_page": fabric_page}
