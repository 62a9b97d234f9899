# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What is applied, what is left alone, and what is refused before anything is made."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.applied import ApplyError, apply, predict, shown_diff
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import KubeError, path_of
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.cluster_double import cluster

NAMESPACE: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "infera"}}
SERVICE: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "router", "namespace": "infera"},
    "spec": {"port": 1},
}
OTHER: dict[str, Any] = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "other", "namespace": "infera"}}


def standing(*objects: dict[str, Any]) -> Any:
    return cluster(*((path_of(each), each) for each in objects))


def test_on_an_empty_cluster_everything_is_made() -> None:
    api, double = standing()

    outcome = apply(api, [NAMESPACE, SERVICE], force=False, check_mode=False)

    assert outcome.names == ["Namespace infera", "Service infera/router"]
    assert [path for _method, path in double.writes] == [path_of(NAMESPACE), path_of(NAMESPACE), path_of(SERVICE)]
    assert [each["kind"] for each in outcome.resources] == ["Namespace", "Service"]


def test_what_is_as_it_should_be_is_not_written() -> None:
    api, double = standing(NAMESPACE, SERVICE)

    outcome = apply(api, [NAMESPACE, SERVICE], force=False, check_mode=False)

    assert not outcome.changed and double.writes == []
    assert [each["metadata"]["name"] for each in outcome.resources] == ["infera", "router"]


def test_only_what_differs_is_written_and_its_diff_leaves_out_what_changes_by_itself() -> None:
    before = {
        **SERVICE,
        "metadata": {**SERVICE["metadata"], "resourceVersion": "7", "generation": 1},
        "spec": {"port": 2},
        "status": {"x": 1},
    }
    api, double = standing(NAMESPACE, before, OTHER)

    outcome = apply(api, [NAMESPACE, SERVICE, OTHER], force=True, check_mode=False)

    assert double.writes == [("APPLY force", path_of(SERVICE))]
    assert shown_diff(outcome) == [
        {
            "before": {"spec": {"port": 2}},
            "after": {"spec": {"port": 1}},
            "before_header": "Service infera/router",
            "after_header": "Service infera/router",
        }
    ]


def test_one_refusal_leaves_every_object_as_it_was_and_all_are_told() -> None:
    api, double = standing(NAMESPACE)
    double.refused = {path_of(SERVICE): KubeError("port is invalid", 422), path_of(OTHER): KubeError("a conflict", 409)}

    with pytest.raises(ApplyError) as caught:
        apply(api, [{**NAMESPACE, "metadata": {"name": "infera", "labels": {"a": "b"}}}, SERVICE, OTHER], False, False)

    assert str(caught.value) == "Service infera/router: port is invalid\nService infera/other: a conflict"
    assert double.writes == []


def test_a_dry_run_writes_nothing_and_predicts_what_a_namespace_to_come_will_hold() -> None:
    api, double = standing()

    outcome = apply(api, [NAMESPACE, SERVICE], force=False, check_mode=True)

    assert outcome.names == ["Namespace infera", "Service infera/router"]
    assert double.writes == []


def test_without_a_cluster_everything_is_new() -> None:
    outcome = predict([NAMESPACE, SERVICE])

    assert outcome.names == ["Namespace infera", "Service infera/router"]
    assert shown_diff(outcome)[1]["after"] == SERVICE


def test_an_edit_that_does_not_go_together_with_what_is_applied_is_told_with_the_way_out() -> None:
    api, double = standing(NAMESPACE, SERVICE)
    request = double.request

    def refusing(method: str, path: str, *more: Any) -> str:
        if method == "PATCH" and path == path_of(SERVICE):
            raise KubeError("spec is invalid", 422)
        return request(method, path, *more)

    double.request = refusing

    with pytest.raises(ApplyError, match=r"spec is invalid Fix: if somebody edited it, undo that, or delete it"):
        apply(api, [NAMESPACE, SERVICE], force=True, check_mode=False)
