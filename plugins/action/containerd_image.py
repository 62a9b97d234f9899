# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side of C(containerd_image): check archives, send the ones that a host lacks."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import Any

from ansible import constants as C
from ansible.errors import AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import ImageReference, parse_all
from ansible_collections.infera.baremetal.plugins.module_utils.node_images import archive_unset
from ansible_collections.infera.baremetal.plugins.module_utils.staging import file_name
from ansible_collections.infera.baremetal.plugins.modules.containerd_image import ARGUMENT_SPEC, CONDITIONS
from ansible_collections.infera.baremetal.plugins.plugin_utils.archive_check import WHERE, CheckedArchive, check

MODULE = "infera.baremetal.containerd_image"
#: A staged file of an earlier run that turns out to be one of these is sent again.
DAMAGED = {
    "image_archive_missing",
    "image_archive_truncated",
    "image_archive_not_oci",
    "image_archive_unsafe",
    "image_archive_docker",
    "image_archive_compressed",
    "image_blob_corrupt",
    "image_blob_missing",
    "image_digest_mismatch",
    "image_media_type",
}


@dataclass(frozen=True)
class Shipment:
    """One archive on its way to one host, and the images that come out of it."""

    archive: CheckedArchive
    references: tuple[ImageReference, ...]

    @property
    def file_name(self) -> str:
        return file_name(self.references[0].digest, self.archive.file_size)


class ActionModule(ActionBase):
    # The module's one call needs no folder of Ansible's on the host; archives go to the staging folder.
    TRANSFERS_FILES = False

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        result = super().run(tmp, task_vars)
        task_vars = task_vars or {}
        _result, options = self.validate_argument_spec(ARGUMENT_SPEC, **CONDITIONS)
        try:
            result.update(self._perform(options, task_vars))
        except FindingError as error:
            result.update(_failure(error))
        return result

    def _perform(self, options: dict[str, Any], task_vars: dict[str, Any]) -> dict[str, Any]:
        archives = self._archives(options)
        if not archives:
            return {"changed": False, "images": [], "missing": [], "reachable": True}
        if options["state"] != "present" or options["archive_on"] == "node":
            return self._module(options, task_vars)
        plan = self._module(options, task_vars, self._first_step(archives))
        if plan.get("failed") or not plan.get("needed"):
            return _public(plan)
        needed = {reference: path for reference, path in archives.items() if str(reference) in plan["needed"]}
        try:
            shipments = self._shipments(needed)
            if self._task.check_mode:
                return _public(plan)
            self._need_space(shipments, plan["staging"], task_vars)
            result = self._ship(options, task_vars, shipments, plan)
        except BaseException:
            self._discard(options, task_vars, plan)
            raise
        if result.get("failed"):
            self._discard(options, task_vars, plan)
        return result

    def _discard(self, options: dict[str, Any], task_vars: dict[str, Any], plan: dict[str, Any]) -> None:
        if "staging" in plan:
            self._module(options, task_vars, {"step": "discard"})

    def _archives(self, options: dict[str, Any]) -> dict[ImageReference, str]:
        """Every image with the path of its archive on the controller; one message when names are wrong."""
        if options["images"] is None:
            given = [("name", options["name"], options["archive"])]
        else:
            given = [
                (f"images[{index}].name", image["name"], image["archive"])
                for index, image in enumerate(options["images"])
            ]
        references = parse_all((name, where) for where, name, _archive in given)
        return {reference: self._find(item[2] or "") for reference, item in zip(references, given, strict=True)}

    def _find(self, path: str) -> str:
        """Where the run starts, or in a folder C(files); the path as it is when there is no such file."""
        if not path or os.path.isabs(path) or os.path.exists(path):
            return os.path.abspath(path) if path else ""
        try:
            return self._find_needle("files", path)
        except AnsibleError:
            return os.path.abspath(path)

    def _first_step(self, archives: dict[ImageReference, str]) -> dict[str, Any]:
        keep = []
        for reference, path in archives.items():
            # An archive that is not there matters only when the image is not there either.
            with contextlib.suppress(OSError):
                keep.append(file_name(reference.digest, os.path.getsize(path)))
        return {"step": "plan", "owner": self._writer(), "keep": keep}

    def _writer(self) -> str:
        """The account that files are sent as, where it is not the one that the module runs as."""
        if not self._play_context.become:
            return ""
        user = self._get_remote_user() or ""
        return "" if user == (self.get_become_option("become_user") or "root") else user

    def _shipments(self, needed: dict[ImageReference, str]) -> list[Shipment]:
        """Checks the archives that this host lacks, all of them, and puts together the images of one archive."""
        findings: list[Finding] = []
        checked: dict[str, list[tuple[CheckedArchive, ImageReference]]] = {}
        for reference, path in needed.items():
            try:
                if not path:
                    raise FindingError(archive_unset(reference, WHERE))
                archive = check(path, reference, C.DEFAULT_LOCAL_TMP)
                checked.setdefault(archive.path, []).append((archive, reference))
            except FindingError as error:
                findings.extend(error.findings)
        if findings:
            raise FindingError(*findings)
        return [Shipment(pairs[0][0], tuple(reference for _archive, reference in pairs)) for pairs in checked.values()]

    def _need_space(self, shipments: list[Shipment], staging: dict[str, Any], task_vars: dict[str, Any]) -> None:
        """One archive waits at a time; the content of all images stays, and so do at least as many bytes of it unpacked."""
        waiting = max(0 if _staged(shipment, staging) else shipment.archive.file_size for shipment in shipments)
        staying = 2 * sum(shipment.archive.image_size for shipment in shipments)
        if waiting + staying > staging["free_bytes"]:
            raise FindingError(
                Finding(
                    code="image_no_space",
                    severity="error",
                    message=f"{staging['path']} has {_gigabytes(staging['free_bytes'])} free; the missing images need at least "
                    f"{_gigabytes(waiting + staying)} (archive, content and the same unpacked).",
                    fix="Free space there, or set images_staging_dir and k3s_data_dir to a larger disk.",
                    where=str(task_vars.get("inventory_hostname", "")),
                )
            )

    def _ship(
        self, options: dict[str, Any], task_vars: dict[str, Any], shipments: list[Shipment], plan: dict[str, Any]
    ) -> dict[str, Any]:
        done: list[dict[str, Any]] = []
        for index, shipment in enumerate(shipments):
            later = [following.file_name for following in shipments[index + 1 :]]
            result = self._ship_one(options, task_vars, shipment, plan["staging"], later)
            if result.get("failed"):
                return result
            done.append(result)
        return _merge(plan, done)

    def _ship_one(
        self,
        options: dict[str, Any],
        task_vars: dict[str, Any],
        shipment: Shipment,
        staging: dict[str, Any],
        later: list[str],
    ) -> dict[str, Any]:
        reuse = _staged(shipment, staging)
        if not reuse:
            self._send(options, task_vars, shipment)
        result = self._import(options, task_vars, shipment, later)
        codes = {finding["code"] for finding in result.get("findings", [])}
        # What a killed run left at work on the host takes the file away when it is done, also one that was sent meanwhile.
        if result.get("failed") and ("image_archive_missing" in codes or (reuse and DAMAGED & codes)):
            self._module(options, task_vars, {"step": "plan", "owner": self._writer(), "keep": later})
            self._send(options, task_vars, shipment)
            result = self._import(options, task_vars, shipment, later)
        return result

    def _send(self, options: dict[str, Any], task_vars: dict[str, Any], shipment: Shipment) -> None:
        target = os.path.join(options["staging_dir"], shipment.file_name)
        self._display.vvv(f"{MODULE}: sending {shipment.archive.path} to {target}")
        try:
            self._transfer_file(shipment.archive.path, target)
        except (AnsibleError, OSError) as error:
            raise FindingError(
                Finding(
                    code="image_transfer_failed",
                    severity="error",
                    message=f"{shipment.archive.path} ({_gigabytes(shipment.archive.file_size)}) could not be sent to "
                    f"{target}: {error}",
                    fix="Look at the connection and at the free space there, then run playbooks/images.yml again.",
                    where=str(task_vars.get("inventory_hostname", "")),
                )
            ) from error

    def _import(
        self, options: dict[str, Any], task_vars: dict[str, Any], shipment: Shipment, later: list[str]
    ) -> dict[str, Any]:
        path = os.path.join(options["staging_dir"], shipment.file_name)
        images = [{"name": str(reference), "archive": path} for reference in shipment.references]
        batch = {**options, "name": None, "archive": None, "images": images}
        return self._module(batch, task_vars, {"step": "import", "keep": later})

    def _module(
        self, options: dict[str, Any], task_vars: dict[str, Any], stage: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        arguments = {key: value for key, value in options.items() if value is not None}
        if stage:
            arguments["stage"] = stage
        return self._execute_module(module_name=MODULE, module_args=arguments, task_vars=task_vars)


def _staged(shipment: Shipment, staging: dict[str, Any]) -> bool:
    """A killed run sent the whole archive; the import checks every byte of it."""
    return staging["files"].get(shipment.file_name) == shipment.archive.file_size


def _merge(plan: dict[str, Any], done: list[dict[str, Any]]) -> dict[str, Any]:
    """The plan's report, with what the imports made of it."""
    imported = {image["name"]: image for result in done for image in result["images"]}
    images = [imported.get(image["name"], image) for image in plan["images"]]
    result = {**_public(plan), "images": images, "changed": True}
    result["missing"] = [image["name"] for image in images if not image["present"]]
    result["diff"] = {
        **plan["diff"],
        "after": "".join(
            sorted({line for part in [plan, *done] for line in part["diff"]["after"].splitlines(keepends=True)})
        ),
    }
    if "image" in plan:
        result["image"] = images[0]
    return result


def _public(result: dict[str, Any]) -> dict[str, Any]:
    """Without what the steps tell each other."""
    return {key: value for key, value in result.items() if key not in ("needed", "staging", "invocation")}


def _failure(error: FindingError) -> dict[str, Any]:
    return {"failed": True, "msg": str(error), "findings": [finding.to_dict() for finding in error.findings]}


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
