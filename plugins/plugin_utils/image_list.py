# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster's list of images: is it right, who needs which, and what to say when one is not there."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse, parse_all
from ansible_collections.infera.baremetal.plugins.module_utils.oci_archive import OciArchive

VARIABLE = "images_list"


def list_findings(
    images: Sequence[Mapping[str, Any]], groups: Mapping[str, Sequence[str]], archives: bool = False
) -> list[Finding]:
    """Everything that is wrong with the list: names, digests, conflicts, groups that do not exist.

    With C(archives) the archives are on this machine and are held against the names: that they are there, and that
    their index names the pinned digest. The blobs are hashed later, when an archive is used.
    """
    findings = _shape_findings(images)
    if findings:
        return findings
    try:
        parse_all((str(image.get("name", "")), f"{VARIABLE}[{index}].name") for index, image in enumerate(images))
    except FindingError as error:
        findings.extend(error.findings)
    known = set(groups) | {host for hosts in groups.values() for host in hosts}
    for index, image in enumerate(images):
        findings.extend(
            _unknown(name, f"{VARIABLE}[{index}].hosts", known) for name in _hosts(image) if name not in known
        )
    if archives and not findings:
        for image in images:
            if image.get("archive"):
                findings.extend(_archive_findings(str(image["archive"]), str(image["name"])))
    return findings


def _shape_findings(images: Any) -> list[Finding]:
    entries = images if isinstance(images, Sequence) and not isinstance(images, str) else [images]
    return [
        Finding(
            code="image_entry_form",
            severity="error",
            message=f"{entry!r} is no image.",
            fix="Write each image as a mapping with name, and optionally archive and hosts.",
            where=f"{VARIABLE}[{index}]",
        )
        for index, entry in enumerate(entries)
        if not isinstance(entry, Mapping)
    ]


def _archive_findings(path: str, name: str) -> list[Finding]:
    try:
        with closing(OciArchive(os.path.realpath(path), f"{VARIABLE}: {path}")) as archive:
            archive.image(parse(name))
    except FindingError as error:
        return error.findings
    return []


def for_host(images: Iterable[Mapping[str, Any]], host: str, groups: Iterable[str]) -> list[dict[str, str]]:
    """The images that the host needs, each once, as M(infera.baremetal.containerd_image) takes them."""
    mine = {host, "all", *groups}
    needed: dict[str, dict[str, str]] = {}
    for image in images:
        hosts = _hosts(image)
        if not hosts or mine.intersection(hosts):
            entry = {"name": image["name"]}
            if image.get("archive"):
                entry["archive"] = image["archive"]
            needed.setdefault(image["name"], entry)
    return list(needed.values())


def _hosts(image: Mapping[str, Any]) -> list[str]:
    hosts = image.get("hosts") or []
    return [name.strip() for name in hosts.split(",")] if isinstance(hosts, str) else list(hosts)


def _unknown(name: str, where: str, known: Iterable[str]) -> Finding:
    near = difflib.get_close_matches(name, sorted(known), n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return Finding(
        code="image_hosts_unknown",
        severity="error",
        message=f"{name!r} is neither a group nor a host of this inventory.",
        fix=f"{hint}Name a group or a host, or leave hosts out for all.",
        where=where,
    )
