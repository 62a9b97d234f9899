# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.survey import as_dict, as_list


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"a": 1}, {"a": 1}),
        ('{"a": ["b"]}', {"a": ["b"]}),
        ("a: b", {"a": "b"}),
        ("", {}),
        (None, {}),
        ("oops", "oops"),
        ("{", "{"),
        (5, 5),
    ],
)
def test_mappings(given, expected):
    assert as_dict(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["a"], ["a"]),
        ('["traefik"]', ["traefik"]),
        ("traefik, servicelb", ["traefik", "servicelb"]),
        ("x=y:NoSchedule", ["x=y:NoSchedule"]),
        ("", []),
        (None, []),
        ("[oops", "[oops"),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_lists(given, expected):
    assert as_list(given) == expected
