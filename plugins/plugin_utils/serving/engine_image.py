# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The engine's image of one host, and its archive, for who looks at it before the deployment is described as a whole."""

from __future__ import annotations

import os
from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.recipe import WORKER_ROLES, load_recipe


def engine_image(
    settings: Mapping[str, Any], groups: Iterable[str], images: Iterable[Mapping[str, Any]]
) -> dict[str, str]:
    """C(name) and C(archive), empty where none is known or what is set is wrong: the serving stage says what.

    C(settings) has C(image), C(recipe), C(recipe_paths), C(engine), C(images) and C(overrides) as the roles have them; C(groups) are the
    host's; C(images) is images_list where its archives are on this machine.
    """
    try:
        reference = str(parse(settings.get("image") or _of_role(settings, groups) or _of_recipe(settings)))
        archives = [image for image in images if _same(image, reference)]
    except (FindingError, AttributeError, TypeError):
        # What was named here and is no pinned image is refused by name, where it is looked into.
        return {"name": str(settings.get("image") or ""), "archive": ""}
    paths = [os.path.expanduser(str(image.get("archive") or "")) for image in archives]
    return {"name": reference, "archive": next((path for path in paths if os.path.isfile(path)), "")}


def _of_role(settings: Mapping[str, Any], groups: Iterable[str]) -> str:
    overrides, mine = settings.get("overrides") or {}, set(groups)
    roles = [overrides.get(role) or {} for role in WORKER_ROLES if role in mine]
    return next((role["image"] for role in roles if role.get("image")), "")


def _of_recipe(settings: Mapping[str, Any]) -> str:
    chosen = (settings.get("images") or {}).get("engine")
    if chosen:
        return str(chosen)
    engines = load_recipe(str(settings.get("recipe") or ""), settings.get("recipe_paths") or []).engines
    engine = settings.get("engine") or (next(iter(engines)) if len(engines) == 1 else "")
    return engines[engine].images.get("engine", "") if engine in engines else ""


def _same(image: Any, reference: str) -> bool:
    try:
        return str(parse(str(image.get("name")))) == reference
    except FindingError:
        return False
