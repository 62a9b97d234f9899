# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: images_not_imported
short_description: Say which pinned images are not on their nodes
description:
  - Turns what M(infera.baremetal.containerd_image) returns with O(infera.baremetal.containerd_image#module:state=query) into
    findings, so that nothing is deployed that would be pulled in silence.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: Host to the names of its missing images.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Stop when an image is missing
  infera.baremetal.assert_findings:
    subject: Images of the deployment
    findings: "{{ {'node1': images.missing} | infera.baremetal.images_not_imported }}"
"""

RETURN = r"""
_value:
  description: One finding for each host that lacks an image.
  type: list
  elements: dict
"""

from collections.abc import Iterable, Mapping
from typing import Any


def images_not_imported(missing: Mapping[str, Iterable[str]]) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.image_list import not_imported

    return [finding.to_dict() for finding in not_imported(missing)]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"images_not_imported": images_not_imported}
