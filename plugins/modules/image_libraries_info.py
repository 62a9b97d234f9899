#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: image_libraries_info
short_description: Which RDMA libraries are inside of an image
description:
  - Finds libibverbs, the provider library of a driver and the C library in a pinned image, and reads what they demand of each other, as
    M(infera.baremetal.verbs_abi_info) does on a host. So a mismatch is known before anything is deployed.
  - Nothing is run, pulled or unpacked. The layers pass once, with what they hide and their links honoured, and only the few files are kept.
    That takes as long as decompressing the image - 330 MB of its content a second were seen with gzip.
  - The digests of layers are not checked; M(infera.baremetal.containerd_image) does that.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Reads only. Nothing is kept in O(cache).
    support: full
  diff_mode:
    description: Returns what changed in state.
    support: none
  action:
    description: Reads the archive, and the ELF files, on the controller, which needs C(pyelftools).
    support: full
options:
  name:
    description: The image, as C(repo:tag@sha256:...).
    type: str
    required: true
  archive:
    description: OCI archive on the controller that holds it. Empty looks into the host's containerd.
    type: path
    default: ""
  driver:
    description: The driver, as its provider registers it.
    type: str
    default: ionic
  cache:
    description:
      - Folder on the controller in which the result is kept, by digest and driver, since the content of a digest never changes. Then an image
        is read once, however many hosts and runs ask. Empty keeps it for this run only, and so does check mode.
    type: path
    default: ""
  namespace:
    description: containerd's namespace.
    type: str
    default: k8s.io
  ctr:
    description: containerd's client with its leading arguments.
    type: list
    elements: str
    default: [k3s, ctr]
notes:
  - A layer that is compressed with zstd needs the program C(zstd) where the image is read.
  - Fails with V(image_layer_damaged), V(image_content_missing), V(image_platform_missing), V(image_zstd_missing), V(image_tree_too_large), those
    of M(infera.baremetal.containerd_image) that are about archives, or V(containerd_failed).
"""

EXAMPLES = r"""
- name: Look into the engine's image
  infera.baremetal.image_libraries_info:
    name: docker.io/lab/engine:v1@sha256:f09a3ccdf49198d46da60efe9cfb7e60594419dda9a63ccfd4afce75ac48384f
    archive: /srv/images/engine.tar
  register: engine

- name: Which library will its workers use?
  ansible.builtin.debug:
    msg: "{{ verbs | infera.baremetal.libionic_verdict(engine) }}"
"""

RETURN = r"""
image:
  description: What is inside; null where containerd does not hold the image, or is not there.
  type: dict
  returned: success
  contains:
    digest:
      description: The digest that the image is pinned to.
      type: str
    driver:
      description: The driver that was looked for.
      type: str
    libibverbs:
      description:
        - C(path), C(real_path), C(sha256), C(private_abis), C(suffix), C(glibc_required), C(machine); or C(error), why it cannot be read.
        - Null where there is none in a folder of libraries of Debian, EL or SUSE.
      type: dict
    providers:
      description:
        - C(lib<driver>.so.1) and the names C(libibverbs/lib<driver>-rdmavNN.so) under which it is looked for, each C(path), C(real_path),
          C(sha256), C(soname), C(driver_name), C(min_abi), C(max_abi), C(private_abi), C(glibc_required), C(machine); or C(error).
      type: list
      elements: dict
    driver_files:
      description: Files that tell libibverbs to load the provider.
      type: list
      elements: str
    glibc:
      description: Version of the image's C library, such as V(2.39); empty where none was found.
      type: str
findings:
  description: What is wrong with the image's files, each with its fix.
  type: list
  elements: dict
  returned: failure
"""

import platform
from typing import Any, Dict, Optional

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Containerd
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_libraries import of_containerd
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse

ARGUMENT_SPEC = {
    "name": {"type": "str", "required": True},
    "archive": {"type": "path", "default": ""},
    "driver": {"type": "str", "default": "ionic"},
    "cache": {"type": "path", "default": ""},
    "namespace": {"type": "str", "default": "k8s.io"},
    "ctr": {"type": "list", "elements": "str", "default": ["k3s", "ctr"]},
}


def look(options: Dict[str, Any], check_mode: bool) -> Optional[Dict[str, Any]]:
    """The libraries with their content, which the action reads; None where there is no such image. Raises FindingError."""
    where = platform.node()
    reference = parse(options["name"], "name")
    try:
        return of_containerd(
            Containerd(options["ctr"], options["namespace"], where), reference, options["driver"], where
        )
    except FindingError as error:
        # In check mode k3s may not be there yet.
        absent = {"containerd_ctr_missing", "containerd_unreachable"}
        if check_mode and {finding.code for finding in error.findings} <= absent:
            return None
        raise


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        module.exit_json(changed=False, image=look(module.params, module.check_mode))
    except FindingError as error:
        module.fail_json(msg=str(error), findings=[finding.to_dict() for finding in error.findings])


if __name__ == "__main__":
    main()
