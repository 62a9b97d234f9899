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
        description: The text of the file. A file with no text here nor in O(secrets) is removed.
        type: str
      mode:
        description: Permission bits as an octal string. Default is V(0644), or V(0600) with a text in O(secrets).
        type: str
  secrets:
    description:
      - The texts of those O(files) that hold a secret, by path. They reach no log and no diff.
      - They are an option of their own since a module logs a list as its repr, in which a secret of several lines is not recognised.
    type: dict
    default: {}
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
    secrets:
      /etc/rancher/k3s/token: "{{ token }}"
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


def wanted(files: list, secrets: dict) -> list:
    """The files as they should be; ValueError where the options contradict each other."""
    stray = sorted(set(secrets) - {option["path"] for option in files})
    if stray:
        raise ValueError(f"secrets: {', '.join(stray)} is not in files")
    return [_wanted(option, secrets.get(option["path"])) for option in files]


def _wanted(option: dict, secret: object) -> ManagedFile:
    if secret is not None and option["content"] is not None:
        raise ValueError(f"{option['path']} has a text in files and in secrets")
    text = option["content"] if secret is None else str(secret)
    try:
        mode = int(option["mode"] or ("0644" if secret is None else "0600"), 8)
    except ValueError as error:
        raise ValueError(f"files[].mode must be an octal string such as 0644: {error}") from error
    return ManagedFile(option["path"], text, mode, secret is not None)


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
                    "mode": {"type": "str"},
                },
            },
            "secrets": {"type": "dict", "default": {}, "no_log": True},
            "unit": {"type": "str"},
            "watch": {"type": "list", "elements": "path", "default": []},
        },
        supports_check_mode=True,
    )
    try:
        files = wanted(module.params["files"], module.params["secrets"])
    except ValueError as error:
        module.fail_json(msg=str(error))
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
