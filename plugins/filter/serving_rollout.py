# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_rollout
short_description: How far a rollout is, and why it is not further
description:
  - Compares the objects that were applied with the pods that carry their labels.
  - A pod counts when it is ready and belongs to the revision that was applied.
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The pods of the deployment.
    type: list
    elements: dict
    required: true
  objects:
    description: The objects that were applied.
    type: list
    elements: dict
    required: true
  events:
    description: Events of the namespace, for the reason.
    type: list
    elements: dict
    default: []
  logs:
    description: Results of a loop of M(kubernetes.core.k8s_log) over the pods' names.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
- name: Wait for all pods
  kubernetes.core.k8s_info:
    kind: Pod
    namespace: infera
    label_selectors:
      - infera.amd.com/deployment=infera
  register: pods
  until: (pods.resources | infera.baremetal.serving_rollout(objects)).done
  retries: 60
  delay: 5
"""

RETURN = r"""
_value:
  description: C(done), C(failed) (time alone will not cure it), C(stale) (Deployments that run and are not wanted any more) and C(findings).
  type: dict
"""

from typing import Any, Iterable, Mapping


def serving_rollout(
    pods: Iterable[Mapping[str, Any]],
    objects: Iterable[Mapping[str, Any]],
    events: Iterable[Mapping[str, Any]] = (),
    logs: Iterable[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import logs_by_pod, rollout

    return rollout(objects, pods, events, logs_by_pod(logs)).to_dict()


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_rollout": serving_rollout}
