# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Variables that come as strings: surveys of AWX and C(-e key=value) know no lists and no mappings."""

from __future__ import annotations

from typing import Any

import yaml


def as_dict(value: Any) -> Any:
    """A mapping, given as one or as JSON or YAML text. What is neither comes back as it is, for a finding to name it."""
    if not isinstance(value, str):
        return {} if value is None else value
    parsed = _parsed(value)
    return parsed if isinstance(parsed, dict) else ({} if not value.strip() else value)


def as_list(value: Any) -> Any:
    """A list, given as one, as JSON text, or as words with commas. A number or a mapping comes back as it is."""
    if not isinstance(value, str):
        return [] if value is None else value
    if value.lstrip().startswith("["):
        parsed = _parsed(value)
        return parsed if isinstance(parsed, list) else value
    return [word.strip() for word in value.split(",") if word.strip()]


def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        return None
