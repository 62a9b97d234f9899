# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""One call for all objects, and a result that a reader can use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.action.apply_objects import ActionModule
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run

SERVICE = {"kind": "Service", "metadata": {"name": "router", "namespace": "infera"}}
NAMESPACE = {"kind": "Namespace", "metadata": {"name": "infera"}}


class Answering(ActionModule):
    """Answers in the place of kubernetes.core.k8s, and keeps what it was asked."""

    answer: dict[str, Any] = {}
    asked: dict[str, Any] = {}

    def _execute_module(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        type(self).asked = keywords
        return self.answer


@pytest.fixture(name="kubeconfig")
def _kubeconfig(tmp_path: Path) -> str:
    file = tmp_path / "kubeconfig"
    file.write_text("")
    return str(file)


def applying(answer: dict[str, Any], kubeconfig: str, **options: Any) -> dict[str, Any]:
    Answering.answer, Answering.asked = answer, {}
    return run(Answering, kubeconfig=kubeconfig, objects=[NAMESPACE, SERVICE], **options)


def test_all_objects_go_server_side_in_one_call(kubeconfig: str) -> None:
    results = [{"changed": False, "result": NAMESPACE}, {"changed": True, "result": SERVICE}]

    result = applying({"result": {"results": results}}, kubeconfig)

    arguments = Answering.asked["module_args"]
    assert arguments["resource_definition"] == [NAMESPACE, SERVICE]
    assert arguments["server_side_apply"] == {"field_manager": "infera", "force_conflicts": False}
    assert (result["changed"], result["applied"], result["resources"]) == (
        True,
        ["Service infera/router"],
        [NAMESPACE, SERVICE],
    )


def test_check_mode_without_a_cluster_predicts_and_asks_nobody(tmp_path: Path) -> None:
    result = applying({}, str(tmp_path / "none"), check_mode=True)

    assert Answering.asked == {}
    assert (result["changed"], result["applied"]) == (True, ["Namespace infera", "Service infera/router"])


def test_a_dry_run_on_a_cluster_without_the_namespace_predicts(kubeconfig: str) -> None:
    results = [{"changed": True, "result": NAMESPACE}, {"error": {"msg": "not found"}}]

    result = applying({"result": {"results": results}}, kubeconfig, check_mode=True)

    assert not result.get("failed")
    assert result["applied"] == ["Namespace infera", "Service infera/router"]


def test_a_failure_is_told_in_the_servers_words(kubeconfig: str) -> None:
    answer = {
        "failed": True,
        "msg": 'Failed to apply object: {"message":"Service is invalid"}',
        "exception": "a traceback",
    }

    result = applying(answer, kubeconfig)

    assert result["failed"]
    assert result["msg"] == "The objects could not be applied. Service is invalid"
    assert "exception" not in result
