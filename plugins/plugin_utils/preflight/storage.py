# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One host's data-dir: where it is, on what, and whether what will be stored fits."""

from __future__ import annotations

import re
from typing import Any, Iterator, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.host import NETWORK_FILESYSTEMS
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Check, Facts, Settings, gib

# File systems on which containerd's overlayfs snapshotter does not work or must not be, with the reason.
UNFIT_FILESYSTEMS: dict[str, str] = {
    "overlay": "overlayfs cannot be the upper layer of another overlayfs",
    "aufs": "overlayfs does not work on it",
    "tmpfs": "images would be kept in memory and be gone after a reboot",
    "ramfs": "images would be kept in memory and be gone after a reboot",
    "squashfs": "it cannot be written to",
    "iso9660": "it cannot be written to",
    "vfat": "it has no links, owners and modes",
    "exfat": "it has no links, owners and modes",
    "ntfs": "overlayfs does not work on it",
    "ntfs3": "overlayfs does not work on it",
    "ecryptfs": "overlayfs does not work on it",
    "virtiofs": "overlayfs does not work on it",
    **dict.fromkeys(NETWORK_FILESYSTEMS, "overlayfs does not work on a network file system"),
}


def _data_dir(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    path = facts["data_dir"]
    if not path:
        yield Finding(
            "data_dir_unset",
            "error",
            "k3s_data_dir is not set",
            "Set k3s_data_dir to a folder on the large local disk, such as /data/k3s.",
            host,
        )
        return
    where = f"{host}:{path['path']}"
    if (
        not path["absolute"]
        or re.search(r"[\s%'\"\\]", path["path"])
        or path["path"].strip("/") == ""
        or ".." in path["path"].split("/")
    ):
        yield Finding(
            "data_dir_invalid",
            "error",
            f"k3s_data_dir is {path['path']!r}; it must be an absolute path below '/', without '..', white space, quotes and '%'",
            "Set k3s_data_dir to a folder on the large local disk, such as /data/k3s.",
            host,
        )
        return
    if not path["folder"]:
        yield Finding(
            "data_dir_invalid", "error", f"{path['nearest']} is not a folder", "Name a folder in k3s_data_dir.", where
        )
        return
    for link in path["symlinks"][:1]:
        yield Finding(
            "data_dir_symlink",
            "error",
            f"the data-dir goes through a symlink: {link['component']} -> {link['target']}",
            "Name the real folder in k3s_data_dir (or bind-mount it).",
            where,
            why="k3s's own tools recreate state under the default path, and containerd resolves some paths",
        )
    mount = path["mount"]
    if mount:
        yield from _data_dir_mount(where, path, mount)
        if mount["fstype"] not in UNFIT_FILESYSTEMS:
            yield from _space(host, where, facts, settings)


def _data_dir_mount(where: str, path: Mapping[str, Any], mount: Mapping[str, Any]) -> Iterator[Finding]:
    fstype = mount["fstype"]
    reason = UNFIT_FILESYSTEMS.get(fstype) or ("overlayfs does not work on FUSE" if fstype.startswith("fuse") else "")
    if reason:
        yield Finding(
            "data_dir_filesystem",
            "error",
            f"the data-dir is on {fstype} (mounted at {mount['target']}): {reason}",
            "Put k3s_data_dir on a local ext4 or xfs file system.",
            where,
        )
    bad = [option for option in ("noexec", "ro") if option in mount["options"]]
    if bad:
        yield Finding(
            "data_dir_mount_options",
            "error",
            f"its file system is mounted {' and '.join(bad)} at {mount['target']}",
            f"`mount -o remount,{','.join({'noexec': 'exec', 'ro': 'rw'}[option] for option in bad)} {mount['target']}`, and in /etc/fstab.",
            where,
            why="k3s unpacks and runs its programs there",
        )
    if mount["target"] == "/" and not reason:
        yield Finding(
            "data_dir_on_root",
            "warning",
            f"the data-dir is on the root file system (nearest existing folder: {path['nearest']})",
            "Mount the large disk first, or point k3s_data_dir to it.",
            where,
            why="images that fill it take the host down with DiskPressure",
        )


def _space(host: str, where: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    path = facts["data_dir"]
    free, total = path["free_bytes"], path["total_bytes"]
    if free is None:
        return
    needed, parts = needed_bytes(host, facts, settings)
    target = path["mount"]["target"]
    if free < needed:
        yield Finding(
            "data_dir_too_small",
            "error",
            f"{gib(needed)} will be stored ({parts}), and {gib(free)} are free on {target}",
            "Make room, or point k3s_data_dir to a larger file system; preflight_required_bytes overrides the estimate.",
            where,
        )
    elif needed and total and free - needed < 0.15 * total:
        yield Finding(
            "data_dir_nearly_full",
            "warning",
            f"{gib(needed)} will be stored ({parts}); of {gib(total)} on {target} {gib(free - needed)} stay free, less than 15 %",
            "Make room: from 85 % on the kubelet removes images that no pod uses.",
            where,
        )


def needed_bytes(host: str, facts: Facts, settings: Settings) -> tuple[int, str]:
    """What will be stored on the host beyond what is there already, and how it comes about.

    An archive holds compressed layers: containerd keeps them, and unpacks them beside. On a host that has joined, k3s
    itself is stored already.
    """
    if settings.required_bytes and not facts["joined"]:
        return settings.required_bytes, "preflight_required_bytes"
    pending = [
        image for image in settings.images_of(host) if image.size and image.digest not in facts["stored_digests"]
    ]
    images = int(settings.image_factor * sum(image.size or 0 for image in pending))
    base = 0 if facts["joined"] else settings.base_bytes
    return base + images, f"{gib(base)} for k3s and logs, {gib(images)} for {len(pending)} images, packed and unpacked"


STORAGE_CHECKS: tuple[Check, ...] = (_data_dir,)
