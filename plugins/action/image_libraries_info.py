# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(image_libraries_info): an archive is looked into here, and all ELF files are read here."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from typing import Any, Callable

from ansible import constants as C
from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_libraries import of_archive
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse
from ansible_collections.infera.baremetal.plugins.modules.image_libraries_info import ARGUMENT_SPEC
from ansible_collections.infera.baremetal.plugins.plugin_utils.elf import HAS_ELFTOOLS
from ansible_collections.infera.baremetal.plugins.plugin_utils.provider import image_report

#: Changes when what is kept of an image has other keys.
FORMAT = 1


class ActionModule(ActionBase):
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        options = self.validate_argument_spec(ARGUMENT_SPEC)[1]
        if not HAS_ELFTOOLS:
            msg = "The Python library pyelftools is missing on the controller. Fix: pip install -r requirements.txt"
            return {**result, "failed": True, "msg": msg}

        def look() -> dict[str, Any]:
            told = self._archive(options) if options["archive"] else self._containerd(options, task_vars)
            return {**told, "image": image_report(told["image"])} if told.get("image") else told

        try:
            digest = parse(options["name"], "name").digest
            told = once(self._folders(options["cache"]), f"{FORMAT} {digest} {options['driver']}", look)
        except FindingError as error:
            findings = [finding.to_dict() for finding in error.findings]
            return {**result, "failed": True, "msg": str(error), "findings": findings}
        except OSError as error:
            msg = f"What was found cannot be kept: {error}. Fix: name a folder that can be written as cache (cluster_dir)."
            return {**result, "failed": True, "msg": msg}
        if told.get("failed") or told.get("unreachable"):
            return {**result, **told}
        return {**result, "changed": False, "image": told["image"]}

    def _folders(self, cache: str) -> list[str]:
        """Where the answer may be, and, the last of them, where it is kept."""
        kept = [os.path.abspath(cache)] if cache else []
        return [*kept, C.DEFAULT_LOCAL_TMP] if self._task.check_mode else kept or [C.DEFAULT_LOCAL_TMP]

    def _archive(self, options: dict[str, Any]) -> dict[str, Any]:
        path = os.path.abspath(options["archive"])
        return {"image": of_archive(path, parse(options["name"], "name"), options["driver"], f"controller:{path}")}

    def _containerd(self, options: dict[str, Any], task_vars: dict[str, Any] | None) -> dict[str, Any]:
        # Not in a log: it would be hundreds of kilobytes of base64.
        context = self._play_context
        was, context.no_log = context.no_log, True
        try:
            return self._execute_module(module_args=options, task_vars=task_vars)
        finally:
            context.no_log = was


def once(folders: list[str], key: str, look: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What was kept under C(key) in one of the folders, else what C(look) finds, kept in the last. Hosts of one run wait for the first."""
    name = f"image-libraries-{hashlib.sha256(key.encode()).hexdigest()[:32]}.json"
    for folder in folders[:-1]:
        with contextlib.suppress(OSError, ValueError), open(os.path.join(folder, name), encoding="utf-8") as file:
            return json.load(file)
    os.makedirs(folders[-1], mode=0o700, exist_ok=True)
    with open(os.path.join(folders[-1], name), "a+", encoding="utf-8", opener=_private) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        with contextlib.suppress(ValueError):  # empty, or cut short by a kill
            return json.loads(file.read())
        told = look()
        if not told.get("image"):
            return told
        kept = json.dumps({"image": told["image"]})
        file.truncate(0)
        file.write(kept)
        return json.loads(kept)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
