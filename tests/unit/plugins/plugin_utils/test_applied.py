# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was applied, object by object, and what of it is worth showing."""

from __future__ import annotations

from typing import Any

from ansible_collections.infera.baremetal.plugins.plugin_utils.applied import (
    applied_names,
    collect,
    explain,
    predict,
    shown_diff,
)

NAMESPACE = {"kind": "Namespace", "metadata": {"name": "infera"}}
SERVICE = {"kind": "Service", "metadata": {"name": "router", "namespace": "infera"}}


def answer(*results: dict[str, Any]) -> dict[str, Any]:
    return {"changed": True, "result": {"results": list(results)}}


def test_objects_that_change_are_named_and_the_servers_objects_returned() -> None:
    outcome = collect(
        [NAMESPACE, SERVICE],
        answer({"changed": False, "result": NAMESPACE}, {"changed": True, "result": SERVICE}),
        False,
    )

    assert outcome.changed
    assert applied_names(outcome) == ["Service infera/router"]
    assert outcome.resources == (NAMESPACE, SERVICE)


def test_a_single_object_comes_without_a_list() -> None:
    outcome = collect([SERVICE], {"changed": False, "result": SERVICE}, False)

    assert (outcome.changed, outcome.resources) == (False, (SERVICE,))


def test_a_diff_leaves_out_what_changes_by_itself() -> None:
    difference = {
        "before": {"metadata": {"resourceVersion": "1", "generation": 1}, "spec": {"port": 1}, "status": {"x": 1}},
        "after": {
            "metadata": {"resourceVersion": "2", "generation": 2, "labels": {"a": "b"}},
            "spec": {"port": 2},
            "status": {"x": 2},
        },
    }

    shown = shown_diff(collect([SERVICE], {"changed": True, "result": SERVICE, "diff": difference}, False))

    assert shown == [
        {
            "before": {"spec": {"port": 1}},
            "after": {"metadata": {"labels": {"a": "b"}}, "spec": {"port": 2}},
            "before_header": "Service infera/router",
            "after_header": "Service infera/router",
        }
    ]


def test_in_a_dry_run_the_objects_of_a_namespace_to_come_would_be_made() -> None:
    results = answer(
        {"changed": True, "result": NAMESPACE}, {"changed": False, "error": {"msg": 'namespaces "infera" not found'}}
    )

    outcome = collect([NAMESPACE, SERVICE], results, True)

    assert outcome.errors == ()
    assert applied_names(outcome) == ["Namespace infera", "Service infera/router"]


def test_an_error_in_a_namespace_that_is_there_stays_one() -> None:
    results = answer({"changed": False, "result": NAMESPACE}, {"changed": False, "error": {"msg": "port is invalid"}})

    assert collect([NAMESPACE, SERVICE], results, True).errors == ("Service infera/router: port is invalid",)


def test_without_a_cluster_everything_is_new() -> None:
    outcome = predict([NAMESPACE, SERVICE])

    assert applied_names(outcome) == ["Namespace infera", "Service infera/router"]
    assert shown_diff(outcome)[1]["after"] == SERVICE


def test_a_conflict_names_the_other_manager_and_the_way_out() -> None:
    message = 'Failed to apply object: {"kind":"Status","message":"Apply failed with 1 conflict: conflict with \\"kubectl-set\\"","reason":"Conflict"}'

    assert explain(message) == (
        'Apply failed with 1 conflict: conflict with "kubectl-set". Undo that change, or allow to take the field over (force_conflicts).'
    )


def test_other_words_stay_as_they_are() -> None:
    assert explain('Failed: {"message":"Service is invalid","reason":"Invalid"}') == "Service is invalid"
    assert explain("Invalid kube-config file.") == "Invalid kube-config file."
    assert explain("broken {json") == "broken {json"
