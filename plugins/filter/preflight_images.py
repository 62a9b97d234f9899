# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: preflight_images
short_description: The images that will be stored, with the size of their archives on the controller
description:
  - Looks at the archives' sizes and at nothing else; whether an archive holds what its name promises is the images stage's question.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The images, each with C(name) (C(repo:tag@sha256:...)), and optionally C(archive) and C(hosts).
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show how much will be stored
  ansible.builtin.debug:
    msg: "{{ images_list | infera.baremetal.preflight_images | sum(attribute='size') }}"
"""

RETURN = r"""
_value:
  description:
    - Each image's C(name), C(digest) (empty where the name has none), C(archive), C(hosts) and C(size).
    - C(size) is in bytes, V(0) where no archive is named, null where it is named and not there.
  type: list
  elements: dict
"""

from typing import Any, Iterable, Mapping


def preflight_images(images: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.image_archives import with_sizes

    return with_sizes(images)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"preflight_images": preflight_images}
