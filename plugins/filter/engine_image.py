# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: engine_image
short_description: Which image a host's workers run, and where its archive is
description:
  - Takes the image that is set for the host's role, else the deployment's, else the recipe's. What is set wrongly gives an empty name, since
    the serving stage says what is wrong with it.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: C(image) (comes before all others), C(recipe), C(recipe_paths), C(engine), C(images) and C(overrides), as the serving role has them.
    type: dict
    required: true
  groups:
    description: The host's C(group_names).
    type: list
    elements: str
    required: true
  images:
    description: C(images_list), where its archives are on the controller.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Which image?
  ansible.builtin.debug:
    msg: "{{ {'recipe': serving_recipe} | infera.baremetal.engine_image(group_names, images_list) }}"
"""

RETURN = r"""
_value:
  description: C(name), and C(archive), the path of its archive on the controller; each empty where there is none.
  type: dict
"""

from typing import Any, Iterable, Mapping


def engine_image(
    settings: Mapping[str, Any], groups: Iterable[str], images: Iterable[Mapping[str, Any]] = ()
) -> dict[str, str]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.engine_image import engine_image as of_host

    return of_host(settings, groups, images)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"engine_image": engine_image}
