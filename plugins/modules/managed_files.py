#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: managed_files
short_description: Write a service's small files as one set
description:
  - Writes or removes several files in one call, each atomically, and tells whether the running service has seen them.
  - A file that is newer than the service's start counts as a change, because the restart that should have followed it did
    not come (the run was killed). So a handler that is notified by this task heals an interrupted run.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Predicts, and writes nothing.
    support: full
  diff_mode:
    description: Shows each file, with its mode; the content of a secret file is not shown.
    support: full
options:
  files:
    description: The files as they should be. Missing parent folders are made with mode V(0755).
    type: list
    elements: dict
    required: true
    suboptions:
      path:
        description: Absolute path.
        type: path
        required: true
      content:
        description: The text of the file. With neither O(files[].content) nor O(files[].secret) the file is removed.
        type: str
      secret:
        description: The text of a file that holds a secret. It reaches no log and no diff, and the mode defaults to V(0600).
        type: str
      mode:
        description: Permission bits as an octal string. Default is V(0644), or V(0600) with O(files[].secret).
        type: str
  unit:
    description: The systemd unit that reads the files.
    type: str
  watch:
    description: Further files that O(unit) reads at its start and that others write (its binary).
    type: list
    elements: path
    default: []
"""

EXAMPLES = r"""
- name: Write what k3s reads
  infera.baremetal.managed_files:
    unit: k3s
    watch: [/usr/local/bin/k3s]
    files:
      - path: /etc/rancher/k3s/config.yaml
        content: "{{ config | to_nice_yaml }}"
        mode: "0600"
      - path: /etc/rancher/k3s/token
        secret: "{{ token }}"
  notify: Restart k3s
"""

RETURN = r"""
paths:
  description: The files that were written or removed (in check mode, would be).
  type: list
  elements: str
  returned: success
unseen:
  description: Files that O(unit) has not read since they last changed, although it runs.
  type: list
  elements: str
  returned: success
"""

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.managed_files import ManagedFile, apply, newer_than, plan
from ansible_collections.infera.baremetal.plugins.module_utils.systemd import read_unit


def wanted(option: dict) -> ManagedFile:
    secret = option["secret"] is not None
    mode = int(option["mode"] or ("0600" if secret else "0644"), 8)
    return ManagedFile(option["path"], option["secret"] if secret else option["content"], mode, secret)


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "files": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "path": {"type": "path", "required": True},
                    "content": {"type": "str"},
                    "secret": {"type": "str", "no_log": True},
                    "mode": {"type": "str"},
                },
                "mutually_exclusive": [("content", "secret")],
            },
            "unit": {"type": "str"},
            "watch": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
        # A module logs its options to the journal, lists as their repr: a secret of several lines is not recognised in there.
        no_log=True,
    )
    try:
        files = [wanted(option) for option in module.params["files"]]
    except ValueError as error:
        module.fail_json(msg=f"files[].mode must be an octal string such as 0644: {error}")
    try:
        changes = plan(files)
        if not module.check_mode:
            for file, _change in changes:
                apply(file)
                if file.text is not None:
                    module.set_default_selinux_context(file.path, True)
    except FindingError as error:
        module.fail_json(msg=str(error), findings=[finding.to_dict() for finding in error.findings])
    unseen = []
    if module.params["unit"]:
        started = read_unit(module.params["unit"]).started
        unseen = newer_than([file.path for file in files if file.text is not None] + module.params["watch"], started)
    module.exit_json(
        changed=bool(changes or unseen),
        paths=[file.path for file, _change in changes],
        unseen=unseen,
        diff=[change.to_diff() for _file, change in changes],
    )


if __name__ == "__main__":
    main()
