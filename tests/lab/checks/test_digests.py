# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""An image whose digest was not imported: the run says so, and no pod is made that would pull it."""

from __future__ import annotations

import lab_state
import pytest
from lab_site import Site

MISSING = "sha256:" + "2" * 64


@pytest.mark.parametrize(
    ("playbook", "variables"),
    [
        (
            "serving.yml",
            {
                "serving_images": {
                    "engine": f"docker.io/lab/engine:v1@{MISSING}",
                    "overlay": "{{ lab_images.overlay.name }}",
                }
            },
        ),
        ("gpu_plugin.yml", {"gpu_plugin_image": f"docker.io/lab/device-plugin:v1@{MISSING}"}),
    ],
    ids=["engine", "device plugin"],
)
def test_run_stops_before_a_pod_would_pull(site: Site, playbook: str, variables: dict[str, object]) -> None:
    site.standing()
    before = lab_state.of(site)
    message = site.play(playbook, variables=variables).refused()
    assert [word for word in (MISSING, "lab1", "lab2", "Fix:") if word not in message] == [], message
    assert lab_state.difference(before, lab_state.of(site)) == ""
    for namespace in ("infera", "kube-system"):
        events = site.objects(["events"], namespace)
        assert [
            event["message"] for event in events if event["reason"] == "Pulling" or MISSING in event["message"]
        ] == []
