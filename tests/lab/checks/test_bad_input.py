# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an operator can get wrong is refused by the main job before anything changes, in one message with the fix.

The cases are in bad_input.yml.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from lab_site import Site

CASES: list[dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("bad_input.yml").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_is_refused_before_anything_changes(site: Site, case: dict[str, Any]) -> None:
    site.fresh()
    with _on_nodes(site, case), site.untouched():
        run = site.play("site.yml", variables=case["given"])
        message = run.refused()
    assert [word for word in case["says"] if word not in message] == [], message
    assert [word for word in case.get("silent", []) if word in run.output] == []


@contextmanager
def _on_nodes(site: Site, case: dict[str, Any]) -> Iterator[None]:
    """What the case needs on every node, and what is wrong with lab2, while it runs."""
    for node in site.nodes.values():
        node.run(case.get("nodes", "true"))
    for fault in case.get("faults", []):
        site.cli("fault", fault, "on", "--node", "lab2")
    yield
    for fault in case.get("faults", []):
        site.cli("fault", fault, "off", "--node", "lab2")
    for node in site.nodes.values():
        node.run(case.get("cleanup", "true"))
