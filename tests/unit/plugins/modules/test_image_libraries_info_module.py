# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host without containerd: no image in check mode, since k3s may be still to come; else an error."""

from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.modules.image_libraries_info import look

OPTIONS = {
    "name": "lab/engine:v1@sha256:" + "a" * 64,
    "driver": "ionic",
    "namespace": "k8s.io",
    "ctr": ["no-such-ctr"],
}


def test_without_containerd() -> None:
    assert look(OPTIONS, check_mode=True) is None
    with pytest.raises(FindingError, match="containerd_ctr_missing"):
        look(OPTIONS, check_mode=False)
