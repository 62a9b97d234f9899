#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: verbs_abi_info
short_description: Whether a host's RDMA driver, provider library and libibverbs meet
description:
  - Compares the ABI that the kernel's driver speaks with the range of its provider library, and what the provider needs of
    libibverbs with what that has. A mismatch shows up later as C(No RDMA devices found).
  - The libraries are not loaded. The host sends them (about 100 KB), and the controller reads the ELF files.
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
    description: Reads the ELF files on the controller, which needs C(pyelftools).
    support: full
options:
  driver:
    description: The driver, as the provider registers it.
    type: str
    default: ionic
  provider:
    description: The provider library. Empty looks for C(lib<driver>.so.1), then for C(libibverbs/lib<driver>-rdmavNN.so), where Debian, EL and SUSE have them.
    type: path
    default: ""
  libibverbs:
    description: The libibverbs that loads it. Empty looks for C(libibverbs.so.1) in the same places.
    type: path
    default: ""
  sysfs_root:
    description: Where sysfs is.
    type: path
    default: /sys
notes:
  - Findings - V(verbs_abi_mismatch), V(verbs_abi_mixed), V(verbs_private_abi), V(verbs_suffix), V(verbs_architecture),
    V(verbs_library_unreadable) are errors; V(verbs_provider_missing), V(verbs_driver_file_missing), V(verbs_abi_unreadable) are
    warnings; V(verbs_no_devices), V(verbs_libibverbs_missing) are to know.
  - The numbers are those that each side reports. libibverbs' own message, C(does not support the kernel ABI of 1 (supports 4 to 4)), names
    the kernel's first and the library's second.
"""

EXAMPLES = r"""
- name: Compare kernel and library
  infera.baremetal.verbs_abi_info:
  register: verbs

- name: Stop where they do not meet
  infera.baremetal.assert_findings:
    subject: libionic
    findings: "{{ verbs.findings }}"
"""

RETURN = r"""
kernel:
  description:
    - C(abi) that the driver's devices speak, null where they differ or there is none, and C(devices), each C(name), C(uverbs), C(abi).
    - Source is C(/sys/class/infiniband_verbs/uverbsN/abi_version).
  type: dict
  returned: success
provider:
  description:
    - C(path), C(real_path), C(sha256), and what its file says - C(soname), C(driver_name), C(min_abi), C(max_abi), C(private_abi) (such as
      C(IBVERBS_PRIVATE_34)), C(glibc_required) (such as C(2.34)), C(machine). Null where there is none.
  type: dict
  returned: success
libibverbs:
  description:
    - C(path), C(real_path), C(sha256), C(private_abis) that it defines, C(suffix) of the providers that it looks for (the NN of
      C(-rdmavNN.so)), C(glibc_required), C(machine). Null where there is none.
  type: dict
  returned: success
driver_files:
  description: Files that tell libibverbs to load the provider.
  type: list
  elements: str
  returned: success
compatible:
  description: Whether the kernel's ABI is in the provider's range; null where either is absent or unreadable.
  type: bool
  returned: success
findings:
  description: What does not meet, each side named.
  type: list
  elements: dict
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.verbs_abi import driver_files, kernel, library, suffixes


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "driver": {"type": "str", "default": "ionic"},
            "provider": {"type": "path", "default": ""},
            "libibverbs": {"type": "path", "default": ""},
            "sysfs_root": {"type": "path", "default": "/sys"},
        },
        supports_check_mode=True,
    )
    driver = module.params["driver"]
    module.exit_json(
        changed=False,
        host={
            "kernel": kernel(module.params["sysfs_root"], driver),
            "provider": library(module.params["provider"], "/", driver),
            "libibverbs": library(module.params["libibverbs"], "/"),
            "suffixes": suffixes("/", driver),
            "driver_files": driver_files("/", driver),
        },
    )


if __name__ == "__main__":
    main()
