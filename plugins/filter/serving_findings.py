# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_findings
short_description: What runs, against what was meant to
description:
  - Gives findings on whatever it is told, pods (placement), workers (as the router has them) and a completion.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The plan, see P(infera.baremetal.serving_plan#filter).
    type: dict
    required: true
  pods:
    description: The pods of the deployment.
    type: list
    elements: dict
  workers:
    description: What C(/v1/workers) of the router answered, as M(ansible.builtin.uri) returned it.
    type: dict
  answer:
    description: What C(/v1/chat/completions) answered, as M(ansible.builtin.uri) returned it. A skipped request gives no finding.
    type: dict
  deadline:
    description: Seconds within which the completion had to come, for the message.
    type: int
    default: 0
  pattern:
    description: A regular expression that the answer has to match somewhere.
    type: str
    default: ""
  logs:
    description: Results of a loop of M(kubernetes.core.k8s_log) over the pods' names; each becomes a finding of severity V(info).
    type: list
    elements: dict
"""

EXAMPLES = r"""
- name: Show which pods are not where they should be
  ansible.builtin.debug:
    msg: "{{ plan | infera.baremetal.serving_findings(pods=pods.resources) }}"
"""

RETURN = r"""
_value:
  description: The findings; an empty list when all is well.
  type: list
  elements: dict
"""

from typing import Any, Mapping


def serving_findings(
    plan: Mapping[str, Any],
    pods: list[Mapping[str, Any]] | None = None,
    workers: Mapping[str, Any] | None = None,
    answer: Mapping[str, Any] | None = None,
    deadline: int = 0,
    pattern: str = "",
    logs: list[Mapping[str, Any]] | None = None,
) -> list[dict[str, str]]:
    from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import logs_by_pod
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.verify import (
        answer_findings,
        log_findings,
        placement_findings,
        worker_findings,
    )

    findings: list[Finding] = []
    if pods is not None and workers is None and logs is None:
        findings += placement_findings(plan, pods)
    if workers is not None:
        findings += worker_findings(plan, workers, pods or [])
    if answer is not None and not answer.get("skipped"):
        findings += answer_findings(answer, deadline, pattern)
    if logs is not None:
        findings += log_findings(plan, pods or [], logs_by_pod(logs))
    return [finding.to_dict() for finding in findings]


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_findings": serving_findings}
