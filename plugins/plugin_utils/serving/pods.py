# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pods, as the API server lists them: which belong to a revision, which are ready, and why the others are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.manifests import (
    INSTANCE_LABEL,
    SERVICE_LABEL,
    TEMPLATE_ANNOTATION,
)

PodObject = Mapping[str, Any]

# Nothing that only takes time cures these. ErrImageNeverPull is not among them: the images are known to be on the node before
# anything is applied, so it is what a pod says that was there before them (a node that was reset and joins again).
HOPELESS = frozenset({"InvalidImageName", "CreateContainerConfigError"})
HOPELESS_RESTARTS = 3
LOG_LINES = 10

FIXES: Mapping[str, str] = {
    "ErrImageNeverPull": "run the images stage for this node, or set serving_allow_pull to true",
    "ErrImagePull": "import the image with the images stage, or give the node access to its registry",
    "ImagePullBackOff": "import the image with the images stage, or give the node access to its registry",
    "InvalidImageName": "correct the image's name",
    "Unschedulable": "free what it needs on its node: GPUs, memory, the host ports 30000, 8998, 8801 and 5557",
    "FailedMount": "create the path on the node, or correct the variable it comes from",
    "CrashLoopBackOff": "mend what the last log lines tell",
}
DEFAULT_FIX = "look at the last log lines and at kubectl describe pod; a model that loads slowly needs a longer serving_ready_timeout"


@dataclass(frozen=True)
class Rollout:
    """The state of a set of Deployments. C(stale): instances that are running and are no longer wanted."""

    done: bool
    failed: bool
    stale: tuple[str, ...]
    findings: tuple[Finding, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "failed": self.failed,
            "stale": list(self.stale),
            "findings": [finding.to_dict() for finding in self.findings],
        }


def rollout(
    objects: Iterable[Mapping[str, Any]],
    pods: Iterable[PodObject],
    events: Iterable[Mapping[str, Any]] = (),
    logs: Mapping[str, str] | None = None,
) -> Rollout:
    """Compare the wanted Deployments with the pods that carry their labels."""
    listed = list(pods)
    wanted = {each["metadata"]["name"]: each["spec"]["template"] for each in objects if each["kind"] == "Deployment"}
    warnings = _warnings(events)
    findings, hopeless = [], False
    for instance, template in wanted.items():
        own = [pod for pod in listed if _instance(pod) == instance and not is_leaving(pod) and not is_ended(pod)]
        current = [pod for pod in own if _is_of(pod, template)]
        if any(is_ready(pod) for pod in current):
            continue
        hopeless = hopeless or any(_is_hopeless(pod) for pod in current)
        findings.append(_not_ready(instance, current, warnings, logs or {}))
    stale = {
        _instance(pod) for pod in listed if _instance(pod) and _instance(pod) not in wanted and not is_leaving(pod)
    }
    return Rollout(done=not findings, failed=hopeless, stale=tuple(sorted(stale)), findings=tuple(findings))


def is_leaving(pod: PodObject) -> bool:
    """Whether the pod is being deleted: to the router it is gone."""
    return bool(pod["metadata"].get("deletionTimestamp"))


def is_ended(pod: PodObject) -> bool:
    """Evicted, or refused by a kubelet that came back without its GPUs: Kubernetes keeps the object, and replaces the pod."""
    return _status(pod).get("phase") in ("Failed", "Succeeded")


def is_ready(pod: PodObject) -> bool:
    """Whether the pod's own condition says Ready."""
    return any(each["type"] == "Ready" and each["status"] == "True" for each in _status(pod).get("conditions") or [])


def name_of(pod: PodObject) -> str:
    """The pod's name."""
    return str(pod["metadata"]["name"])


def node_of(pod: PodObject) -> str:
    """The node the pod is on; empty while it is not scheduled."""
    return str(pod.get("spec", {}).get("nodeName") or "")


def service_of(pod: PodObject) -> str:
    """router, prefill, decode or aggregated."""
    return str((pod["metadata"].get("labels") or {}).get(SERVICE_LABEL) or "")


def instance_of(pod: PodObject) -> str:
    """Name of the Deployment the pod belongs to."""
    return _instance(pod)


def _instance(pod: PodObject) -> str:
    return str((pod["metadata"].get("labels") or {}).get(INSTANCE_LABEL) or "")


def _revision(pod: PodObject) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(TEMPLATE_ANNOTATION) or "")


def _is_of(pod: PodObject, template: Mapping[str, Any]) -> bool:
    """Whether a pod was made from this template.

    The annotation alone does not tell: someone's edit of a Deployment leaves it as it was.
    """
    if _revision(pod) != template["metadata"]["annotations"][TEMPLATE_ANNOTATION]:
        return False
    running = {container["name"]: _start_of(container) for container in pod["spec"].get("containers") or []}
    return all(running.get(wanted["name"]) == _start_of(wanted) for wanted in template["spec"]["containers"])


def _start_of(container: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a container is started with, as far as the API server leaves it as it was sent."""
    environment = {entry["name"]: entry["value"] for entry in container.get("env") or [] if "value" in entry}
    return container.get("image"), container.get("command"), container.get("args"), environment


def _status(pod: PodObject) -> Mapping[str, Any]:
    return pod.get("status") or {}


def _containers(pod: PodObject) -> list[Mapping[str, Any]]:
    status = _status(pod)
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _is_hopeless(pod: PodObject) -> bool:
    for container in _containers(pod):
        reason = ((container.get("state") or {}).get("waiting") or {}).get("reason", "")
        if reason in HOPELESS or (
            reason == "CrashLoopBackOff" and container.get("restartCount", 0) >= HOPELESS_RESTARTS
        ):
            return True
    return False


def _not_ready(
    instance: str, pods: list[PodObject], warnings: Mapping[str, list[tuple[str, str]]], logs: Mapping[str, str]
) -> Finding:
    if not pods:
        refused = [
            f"{reason}: {message}"
            for name, told in warnings.items()
            if name.startswith(f"{instance}-")
            for reason, message in told
        ]
        return Finding(
            code="serving_no_pod",
            severity="error",
            message=f"has no pod of the revision that was applied{'; ' if refused else ''}{'; '.join(dict.fromkeys(refused))}",
            fix="see kubectl describe deployment and replicaset: a quota or an admission rule may refuse the pod",
            where=instance,
        )
    message, fix = explain(pods[-1], warnings, logs)
    return Finding(code="serving_not_ready", severity="error", message=message, fix=fix, where=instance)


def explain(pod: PodObject, warnings: Mapping[str, list[tuple[str, str]]], logs: Mapping[str, str]) -> tuple[str, str]:
    """Why a pod is not ready, with its last log lines; and what to do about it."""
    # That it was hard to schedule is past once it has a node, and a back-off is told by the container's state.
    past = {"BackOff", "FailedScheduling"} if node_of(pod) else {"BackOff"}
    events = [(reason, message) for reason, message in warnings.get(name_of(pod), []) if reason not in past]
    reasons = dict([*_scheduling(pod), *_container_reasons(pod), *events])
    told = "; ".join(f"{reason}: {message}" if message else reason for reason, message in reasons.items())
    place = f" on {node_of(pod)}" if node_of(pod) else ""
    message = f"pod {name_of(pod)}{place} is not ready: {told or 'no reason given yet'}.{log_tail(name_of(pod), logs)}"
    return message, next((FIXES[reason] for reason in reasons if reason in FIXES), DEFAULT_FIX)


def log_tail(pod: str, logs: Mapping[str, str]) -> str:
    """The last lines of a pod's log, indented, to be put after a message; nothing where there is none."""
    lines = [line for line in (logs.get(pod) or "").splitlines() if line.strip()][-LOG_LINES:]
    return "".join(["\n  Last log lines:", *(f"\n    {line}" for line in lines), "\n "]) if lines else ""


def _scheduling(pod: PodObject) -> list[tuple[str, str]]:
    conditions = _status(pod).get("conditions") or []
    unscheduled = [each for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"]
    return [(each.get("reason") or "Unschedulable", each.get("message") or "") for each in unscheduled]


def _container_reasons(pod: PodObject) -> list[tuple[str, str]]:
    reasons = []
    for container in _containers(pod):
        state, last = container.get("state") or {}, (container.get("lastState") or {}).get("terminated") or {}
        waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
        if waiting:
            told = f", {waiting['message']}" if waiting.get("message") else ""
            reasons.append((str(waiting.get("reason") or "Waiting"), f"container {container['name']}{told}"))
        elif ended and ended.get("exitCode"):
            reasons.append(
                (
                    str(ended.get("reason") or "Error"),
                    f"container {container['name']} ended with exit code {ended['exitCode']}",
                )
            )
        elif state.get("running") is not None and not container.get("ready"):
            reasons.append(("Running", f"container {container['name']} runs and its probe on /health fails"))
        if last:
            said = f"exit code {last.get('exitCode')}, restarted {container.get('restartCount', 0)} times"
            reasons.append((f"before that {last.get('reason') or 'Error'}", said))
    return reasons


def _warnings(events: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[str, str]]]:
    """Pod or ReplicaSet -> its warning events, the latest of each reason."""
    found: dict[str, list[tuple[str, str]]] = {}
    for event in sorted(events, key=lambda each: each.get("lastTimestamp") or ""):
        if event.get("type") == "Warning" and (event.get("involvedObject") or {}).get("kind") in ("Pod", "ReplicaSet"):
            found.setdefault(event["involvedObject"]["name"], []).append(
                (event.get("reason") or "", event.get("message") or "")
            )
    return found
