# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ansible_collections.infera.baremetal.tests.unit.plugins.module_utils.routed_namespaces import (
    RoutedNamespaces,
    why_not,
)


@pytest.fixture(name="fabric")
def fixture_fabric() -> Iterator[RoutedNamespaces]:
    """Two hosts with two rails each, new for every test; the test is skipped where namespaces cannot be had."""
    if why_not():
        pytest.skip(why_not())
    with RoutedNamespaces() as fabric:
        yield fabric
