# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A host that is fit (fit_host.json: fresh Debian 12, 900 of 1000 GiB free at /data), and hosts that differ from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Settings

GIB = 2**30
GROUPS = {
    "k3s_cluster": ["gpu1", "gpu2"],
    "k3s_server": ["gpu1"],
    "k3s_agent": ["gpu2"],
    "prefill": ["gpu1"],
    "decode": ["gpu2"],
}


def fit_host(name: str = "gpu1", **changes: Any) -> dict[str, Any]:
    """Facts of a fit host called C(name), with its own address; a change's key is a path with C(__) for a step down."""
    facts = json.loads((Path(__file__).parent / "fit_host.json").read_text())
    number = name[-1]
    own = {
        "hostname": name,
        "machine_id": f"m-{name}",
        "product_uuid": f"u-{name}",
        "declared": {"node_name": name, "address": f"10.1.0.{number}", "interface": "eno1"},
        "interfaces__eno1__addresses": [f"10.1.0.{number}", f"fe80::{number}"],
    }
    for path, value in {**own, **changes}.items():
        *steps, last = path.split("__")
        place = facts
        for step in steps:
            place = place[step]
        place[last] = value
    return facts


def fit_settings(**changes: Any) -> Settings:
    given = {"groups": GROUPS, "hosts": ["gpu1", "gpu2"], "kubernetes_version": "v1.36.2+k3s1", "base_bytes": 5 * GIB}
    return Settings.parse({**given, **changes})


def said(findings: Any) -> list[tuple[str, str, str]]:
    return [(finding.code, finding.severity, finding.where) for finding in findings]
