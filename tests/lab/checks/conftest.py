# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Checks over the lab: tests/lab/enter python -m pytest tests/lab/checks

They take the lab's nodes for themselves, and leave them fresh. What each does is printed as it goes; the whole outputs are
kept below .cache/lab-checks. One installation serves as many checks as it can, so the order matters to the clock, not to
the result: a check asks the fixture `site` for what it needs (`site.fresh()`, `site.standing()`). LAB_CHECKS_REUSE=1 takes the
cluster that stands, for working on one check.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator

import pytest
from lab_runs import Runs
from lab_site import Site

# Fresh nodes first, then one cluster for all that leaves it as it is, then what takes it apart.
ORDER = (
    "test_bad_input",
    "test_check_mode",
    "test_secrets",
    "test_jobs",
    "test_rails",
    "test_digests",
    "test_failures",
    "test_limit",
    "test_reset",
    "test_interrupted",
    # It leaves a containerd of its own on a node.
    "test_images",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Modules in the order in which the state of the nodes is used best; unknown ones at the end."""
    items.sort(key=lambda item: ORDER.index(item.path.stem) if item.path.stem in ORDER else len(ORDER))


@pytest.fixture(scope="session")
def say(pytestconfig: pytest.Config) -> Callable[[str], None]:
    """Print a line now, whatever pytest captures."""
    capture = pytestconfig.pluginmanager.getplugin("capturemanager")

    def _say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n  {text}", end="", flush=True)

    return _say


@pytest.fixture(scope="session")
def site(say: Callable[[str], None], request: pytest.FixtureRequest) -> Iterator[Site]:
    """The lab's nodes. At the end they are fresh; after a failure they stay, to be looked at."""
    namespace = subprocess.run(["ip", "netns", "identify"], capture_output=True, text=True, check=False).stdout.strip()
    site = Site(Runs(say), say)
    assert namespace == site.lab.controller_namespace, (
        "run it where the nodes are: tests/lab/enter python -m pytest tests/lab/checks"
    )
    if os.environ.get("LAB_CHECKS_REUSE"):
        site.reuse()
    yield site
    if request.session.testsfailed == 0:
        site.fresh()
