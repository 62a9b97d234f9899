#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: libionic_stage
short_description: A copy of the host's provider library at a path that containers mount
description:
  - Copies a library on the host to a stable path, verified against the digest that was judged, written beside, synced and renamed.
    The digest is kept beside it (C(<dest>.sha256)).
  - An upgrade of the host's package does not reach a container that has the copy mounted; the next run replaces it.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Says whether the copy would change.
    support: full
  diff_mode:
    description: Shows the digests.
    support: full
options:
  dest:
    description: The path of the copy.
    type: path
    required: true
  src:
    description: The library, its links followed. Needed with O(state=present).
    type: path
  sha256:
    description: Its digest, as M(infera.baremetal.verbs_abi_info) returned it. Needed with O(state=present).
    type: str
  state:
    description: V(absent) removes the copy and its digest, and the folder when it is empty then.
    type: str
    choices: [present, absent]
    default: present
"""

EXAMPLES = r"""
- name: Stage the host's libionic
  infera.baremetal.libionic_stage:
    src: "{{ verbs.provider.real_path }}"
    sha256: "{{ verbs.provider.sha256 }}"
    dest: /var/lib/infera/libionic.so.1
"""

RETURN = r"""
path:
  description: The path of the copy.
  type: str
  returned: success
sha256:
  description: Its digest; empty with O(state=absent).
  type: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.staged_library import remove, sha256_of, stage


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "dest": {"type": "path", "required": True},
            "src": {"type": "path"},
            "sha256": {"type": "str"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
        required_if=[("state", "present", ["src", "sha256"])],
        supports_check_mode=True,
    )
    options = module.params
    wanted = options["sha256"] if options["state"] == "present" else ""
    try:
        before = sha256_of(options["dest"]) or ""
        if options["state"] == "absent":
            changed = remove(options["dest"], module.check_mode)
        else:
            changed = stage(options["src"], wanted, options["dest"], module.check_mode)
    except FindingError as error:
        module.fail_json(msg=str(error), findings=[finding.to_dict() for finding in error.findings])
    header = {"before_header": options["dest"], "after_header": options["dest"]}
    diff = {**header, "before": f"sha256 {before}\n" if before else "", "after": f"sha256 {wanted}\n" if wanted else ""}
    module.exit_json(changed=changed, path=options["dest"], sha256=wanted, diff=diff)


if __name__ == "__main__":
    main()
