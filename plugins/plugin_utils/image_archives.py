# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Archives of images on the controller, as files: what the preflight's estimate of space rests on."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import as_list


def with_sizes(images: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """[{name, archive, hosts}] -> [{name, digest, archive, hosts, size}], each archive looked at once.

    C(size) is in bytes, 0 where no archive is named, None where it is named and is not there. An entry of another form is
    left out: the images stage refuses it by name.
    """
    return [
        {
            "name": str(image["name"]),
            "digest": str(image["name"]).partition("@")[2],
            "archive": str(image.get("archive") or ""),
            "hosts": as_list(image.get("hosts")),
            "size": _size(str(image.get("archive") or "")),
        }
        for image in images
        if isinstance(image, Mapping) and image.get("name")
    ]


def _size(archive: str) -> int | None:
    if not archive:
        return 0
    try:
        return os.stat(os.path.expanduser(archive)).st_size
    except OSError:
        return None
