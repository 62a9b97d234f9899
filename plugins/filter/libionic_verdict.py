# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: libionic_verdict
short_description: Which provider library the workers of an image use on a host
description:
  - Holds what a host has against what is in the workers' image. The image's own library is used where it fits the kernel's driver and the
    image's libibverbs; else the host's, which is mounted, where the image's libibverbs can load that; else there is an error that says what
    to install.
  - Where an image is fine by itself, what does not fit on the host becomes a warning.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: What M(infera.baremetal.verbs_abi_info) returned.
    type: dict
    required: true
  looked:
    description: What M(infera.baremetal.image_libraries_info) returned. Empty or skipped where nobody asked; that it failed becomes a warning.
    type: dict
    default: {}
"""

EXAMPLES = r"""
- name: Which library will the workers use?
  ansible.builtin.debug:
    msg: "{{ verbs | infera.baremetal.libionic_verdict(engine) }}"
"""

RETURN = r"""
_value:
  description:
    - C(use) - V(image) (its own, no mount is needed), V(host) (mount the host's), V(neither), or empty where there is no device or no way to tell.
    - C(findings) in place of the host's; those about the image are V(image_provider_unfit) (error),
      V(image_libibverbs_missing) (warning), V(image_libraries_unknown) (info), and what the module failed with (warnings).
  type: dict
"""

from typing import Any, Mapping


def libionic_verdict(verbs: Mapping[str, Any], looked: Mapping[str, Any] | None = None) -> dict[str, Any]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import verdict

    return verdict(verbs, looked or {})


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"libionic_verdict": libionic_verdict}
