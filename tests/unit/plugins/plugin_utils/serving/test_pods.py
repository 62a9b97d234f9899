# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""How far a rollout is, and why it is not further. Statuses as a Kubernetes 1.20 API server gave them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import Rollout, rollout

INSTANCE = "infera-decode-gpu2"
FIELD = {"fieldRef": {"fieldPath": "status.podIP"}}
CONTAINER = {
    "name": "main",
    "image": "e@sha256:12",
    "args": ["--x"],
    "env": [{"name": "A", "value": "1"}, {"name": "POD_IP", "valueFrom": FIELD}],
}


def wanted(instance: str = INSTANCE, revision: str = "new") -> dict[str, Any]:
    template = {
        "metadata": {"annotations": {"infera.baremetal/template-hash": revision}},
        "spec": {"containers": [CONTAINER]},
    }
    return {"kind": "Deployment", "metadata": {"name": instance}, "spec": {"template": template}}


def pod(
    instance: str = INSTANCE,
    revision: str = "new",
    ready: bool = True,
    leaving: bool = False,
    containers: list[dict[str, Any]] | None = None,
    conditions: list[dict[str, Any]] | None = None,
    node: str = "gpu2",
) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": f"{instance}-{revision}-x",
        "labels": {"app.kubernetes.io/instance": instance, "infera.amd.com/service": "decode"},
        "annotations": {"infera.baremetal/template-hash": revision},
    }
    if leaving:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    status = {
        "conditions": conditions or [{"type": "Ready", "status": "True" if ready else "False"}],
        "containerStatuses": containers or [],
    }
    # The API server adds what it defaults.
    defaulted = {**CONTAINER, "terminationMessagePath": "/dev/termination-log"}
    return {"metadata": metadata, "spec": {"nodeName": node, "containers": [defaulted]}, "status": status}


def waiting(reason: str, message: str = "", restarts: int = 0) -> dict[str, Any]:
    return {
        "name": "main",
        "ready": False,
        "restartCount": restarts,
        "state": {"waiting": {"reason": reason, "message": message}},
    }


def told(state: Rollout) -> str:
    assert len(state.findings) == 1
    return f"{state.findings[0].message} | {state.findings[0].fix}"


def test_done_when_each_deployment_has_a_ready_pod_of_its_revision() -> None:
    assert rollout([{"kind": "Service", "metadata": {"name": "s"}}, wanted()], [pod()]) == Rollout(True, False, (), ())


@pytest.mark.parametrize(
    "pods",
    [[pod(revision="old")], [pod(leaving=True)], [pod(ready=False)], []],
    ids=["of the old revision", "on its way out", "not ready", "none"],
)
def test_not_done_with_a_pod_that_does_not_count(pods: list[dict[str, Any]]) -> None:
    state = rollout([wanted()], pods)

    assert (state.done, state.failed) == (False, False)


@pytest.mark.parametrize(
    "edit", [{"env": [{"name": "A", "value": "2"}]}, {"image": "f@sha256:12"}, {"args": ["--x", "--y"]}]
)
def test_a_pod_of_someones_edit_does_not_count_although_it_carries_the_annotation(edit: dict[str, Any]) -> None:
    edited = pod()
    edited["spec"]["containers"][0].update(edit)

    assert not rollout([wanted()], [edited]).done


def test_a_deployment_that_still_runs_and_is_no_longer_wanted_is_stale() -> None:
    pods = [pod(), pod(instance="infera-decode-gpu9"), pod(instance="infera-prefill-gpu9", leaving=True)]

    assert rollout([wanted()], pods).stale == ("infera-decode-gpu9",)


@pytest.mark.parametrize(
    ("status", "failed"),
    [
        (waiting("InvalidImageName"), True),
        (waiting("ErrImageNeverPull"), False),
        (waiting("InvalidImageName"), True),
        (waiting("CrashLoopBackOff", restarts=3), True),
        (waiting("CrashLoopBackOff", restarts=2), False),
        (waiting("ImagePullBackOff"), False),
        (waiting("PodInitializing"), False),
    ],
)
def test_what_time_does_not_cure_ends_the_wait(status: dict[str, Any], failed: bool) -> None:
    assert rollout([wanted()], [pod(ready=False, containers=[status])]).failed is failed


def test_an_image_that_was_not_imported_is_told_with_its_remedy() -> None:
    message = 'Container image "docker.io/lab/engine:v1@sha256:12" is not present with pull policy of Never'

    state = rollout([wanted()], [pod(ready=False, containers=[waiting("ErrImageNeverPull", message)])])

    assert told(state) == (
        f"pod {INSTANCE}-new-x on gpu2 is not ready: ErrImageNeverPull: container main, {message}."
        " | run the images stage for this node, or set serving_allow_pull to true"
    )


def test_a_pod_that_cannot_be_scheduled_says_what_is_lacking() -> None:
    lacking = "0/2 nodes are available: 1 Insufficient amd.com/gpu, 1 node(s) didn't match Pod's node affinity."
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": lacking}

    state = rollout([wanted()], [pod(conditions=[condition], node="")])

    assert told(state).startswith(
        f"pod {INSTANCE}-new-x is not ready: Unschedulable: {lacking}. | free what it needs on its node: GPUs"
    )


def test_a_mount_that_fails_is_known_from_the_events_alone() -> None:
    events = [
        event("FailedScheduling", "1 node(s) didn't have free ports", "2026-01-01T00:00:01Z"),
        event("FailedMount", "Unable to attach or mount volumes", "2026-01-01T00:00:02Z"),
        event("FailedMount", "hostPath type check failed: /opt/libionic.so is not a file", "2026-01-01T00:00:03Z"),
    ]

    state = rollout([wanted()], [pod(ready=False, containers=[waiting("PodInitializing")])], events)

    assert told(state) == (
        f"pod {INSTANCE}-new-x on gpu2 is not ready: PodInitializing: container main;"
        " FailedMount: hostPath type check failed: /opt/libionic.so is not a file."
        " | create the path on the node, or correct the variable it comes from"
    )


def event(reason: str, message: str, time: str) -> dict[str, Any]:
    involved = {"kind": "Pod", "name": f"{INSTANCE}-new-x"}
    return {"type": "Warning", "reason": reason, "message": message, "lastTimestamp": time, "involvedObject": involved}


def test_a_crash_shows_its_last_log_lines() -> None:
    status = {
        **waiting("CrashLoopBackOff", "back-off 40s", 3),
        "lastState": {"terminated": {"reason": "Error", "exitCode": 2}},
    }
    log = "\n".join([*(f"line {number}" for number in range(20)), "", "server_args is read-only"])

    state = rollout([wanted()], [pod(ready=False, containers=[status])], logs={f"{INSTANCE}-new-x": log})

    assert "CrashLoopBackOff: container main, back-off 40s; before that Error: exit code 2, restarted 3 times" in told(
        state
    )
    assert "line 10" not in told(state)
    assert "\n    line 19\n    server_args is read-only\n" in told(state)


def test_a_container_that_runs_without_being_ready_points_to_its_probe() -> None:
    status = {"name": "main", "ready": False, "restartCount": 0, "state": {"running": {}}}

    assert "its probe on /health fails" in told(rollout([wanted()], [pod(ready=False, containers=[status])]))


def test_no_pod_at_all_points_to_the_deployment() -> None:
    assert [finding.code for finding in rollout([wanted()], []).findings] == ["serving_no_pod"]


def test_what_refuses_the_pod_is_read_from_its_replica_set() -> None:
    event = {
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "exceeded quota: q",
        "involvedObject": {"kind": "ReplicaSet", "name": f"{INSTANCE}-5d4"},
    }

    (finding,) = rollout([wanted()], [], events=[event]).findings

    assert finding.code == "serving_no_pod"
    assert "FailedCreate: exceeded quota: q" in finding.message
