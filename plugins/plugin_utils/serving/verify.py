# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What runs, against what was meant to: pods on their nodes, workers as the router sees them, an answer."""

from __future__ import annotations

import ipaddress
import json
import re
from typing import Any, Iterable, Mapping
from urllib.parse import urlsplit

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.pods import (
    PodObject,
    instance_of,
    is_ended,
    is_leaving,
    is_ready,
    log_tail,
    name_of,
    node_of,
)

# What a worker registers as, and what it is called everywhere a user sees it.
ROLES = {"mixed": "aggregated", "prefill": "prefill", "decode": "decode"}


def placement_findings(plan: Mapping[str, Any], pods: Iterable[PodObject]) -> list[Finding]:
    """Each Deployment has one live pod, ready, on its node; and there are no others."""
    live = [pod for pod in pods if not is_leaving(pod) and not is_ended(pod)]
    findings = []
    for wanted in plan["pods"]:
        own = [pod for pod in live if instance_of(pod) == wanted["instance"]]
        findings += _placement(wanted, own)
    known = {wanted["instance"] for wanted in plan["pods"]}
    for pod in live:
        if instance_of(pod) not in known:
            findings.append(
                _error(
                    "verify_pod_unknown",
                    name_of(pod),
                    f"runs on {node_of(pod)} and is no part of the deployment",
                    "run the serving stage",
                )
            )
    return findings


def _placement(wanted: Mapping[str, Any], pods: list[PodObject]) -> list[Finding]:
    instance, node = wanted["instance"], wanted["node"]
    if not pods:
        return [_error("verify_pod_missing", instance, f"the {wanted['role']} has no pod", "run the serving stage")]
    findings = []
    if len(pods) > 1:
        findings.append(
            _error(
                "verify_pod_surplus",
                instance,
                f"has {len(pods)} pods instead of one",
                "see kubectl get pods; run the serving stage",
            )
        )
    for pod in pods:
        if node_of(pod) != node:
            seen = node_of(pod) or "no node"
            findings.append(
                _error("verify_pod_misplaced", name_of(pod), f"is on {seen} instead of {node}", "run the serving stage")
            )
        if not is_ready(pod):
            findings.append(
                _error(
                    "verify_pod_not_ready", name_of(pod), f"the {wanted['role']} is not ready", "see its last log lines"
                )
            )
    return findings


def worker_findings(plan: Mapping[str, Any], answer: Any, pods: Iterable[PodObject] = ()) -> list[Finding]:
    """The router knows exactly the wanted workers, each at an address of its node. C(answer): what C(/v1/workers) gave."""
    registered = _records(answer)
    if registered is None:
        return [
            _error(
                "verify_workers_unreadable",
                "router",
                f"/v1/workers answered {_short(_said(answer))}",
                "see the router's last log lines",
            )
        ]
    findings, seen = [], set()
    expected = {(role, address): instance for instance, role, address in _expected(plan, pods)}
    for record in registered:
        url = str(record.get("url") or "")
        role = ROLES.get(str(record.get("disagg_mode") or "mixed"), str(record.get("disagg_mode")))
        host = urlsplit(url).hostname or ""
        if _is_local(host):
            findings.append(_advertised(role, url))
        elif (role, host) not in expected:
            findings.append(_unexpected(role, url, expected))
        elif record.get("error"):
            said = f"the router cannot use {url}: {record['error']}"
            findings.append(
                _error("verify_worker_failing", expected[role, host], said, "see the worker's last log lines")
            )
        seen.add((role, host))
    for (role, address), instance in expected.items():
        if (role, address) not in seen:
            said = f"the router does not know the {role} worker at {address or 'its pod'}"
            findings.append(
                _error(
                    "verify_worker_missing",
                    instance,
                    said,
                    "see the worker's last log lines; it registers by its pod's annotation",
                )
            )
    return findings


def _expected(plan: Mapping[str, Any], pods: Iterable[PodObject]) -> list[tuple[str, str, str]]:
    """(instance, role, address) of each worker; on the pod network the address is the pod's own."""
    addresses = {
        instance_of(pod): (pod.get("status") or {}).get("podIP") or ""
        for pod in pods
        if not is_leaving(pod) and not is_ended(pod)
    }
    workers = [wanted for wanted in plan["pods"] if wanted["role"] != "router"]
    if plan["network"] == "host":
        return [(worker["instance"], worker["role"], worker["address"]) for worker in workers]
    return [(worker["instance"], worker["role"], addresses.get(worker["instance"], "")) for worker in workers]


def _advertised(role: str, url: str) -> Finding:
    return Finding(
        code="verify_worker_unreachable",
        severity="error",
        message=f"a {role} worker advertises {url}, which reaches no other node",
        fix="set cluster_address of its host; leave --host out of serving_overrides",
        where="router",
        why="the address that the engine binds to was registered instead of the pod's",
    )


def _unexpected(role: str, url: str, expected: Mapping[tuple[str, str], str]) -> Finding:
    wanted = ", ".join(f"{each} {address}" for each, address in sorted(expected))
    fix = "compare cluster_address of its host with the node's InternalIP; if it is a leftover, delete its pod"
    return _error(
        "verify_worker_unexpected", "router", f"a {role} worker is registered at {url}; expected are {wanted}", fix
    )


def answer_text(answer: Mapping[str, Any]) -> str:
    """The text of a chat completion as C(ansible.builtin.uri) returned it; empty where there is none."""
    body = _parsed(answer)
    try:
        return str(body["choices"][0]["message"]["content"] or "")
    except (KeyError, IndexError, TypeError):
        return ""


def answer_findings(answer: Mapping[str, Any], deadline: int, pattern: str = "") -> list[Finding]:
    """A completion came within the deadline (seconds), has text, and matches the pattern if there is one."""
    status, text = answer.get("status", -1), answer_text(answer)
    if status != 200:
        body = answer.get("json") or answer.get("content") or answer.get("msg") or "nothing"
        said = (
            f"no completion within {deadline} s" if status == -1 else f"the completion failed with HTTP status {status}"
        )
        fix = "see the last log lines of router and workers; a slow first answer needs a longer verify_deadline"
        return [_error("verify_no_completion", "router", f"{said}: {_short(body)}", fix)]
    if not text:
        return [
            _error(
                "verify_completion_empty",
                "router",
                f"the completion has no text: {_short(_parsed(answer))}",
                "see the decode worker's last log lines",
            )
        ]
    if pattern and not re.search(pattern, text):
        return [
            _error(
                "verify_answer_wrong",
                "router",
                f"{_short(text)} does not match verify_answer {pattern!r}",
                "see the workers' last log lines",
            )
        ]
    return []


def log_findings(plan: Mapping[str, Any], pods: Iterable[PodObject], logs: Mapping[str, str]) -> list[Finding]:
    """The last log lines of every pod, as something to know beside the errors."""
    roles = {wanted["instance"]: wanted["role"] for wanted in plan["pods"]}
    findings = []
    for pod in pods:
        tail = log_tail(name_of(pod), logs)
        role = roles.get(instance_of(pod), "unknown")
        findings.append(
            Finding(
                code="verify_log",
                severity="info",
                message=f"{role} on {node_of(pod) or 'no node'}.{tail or ' It has no log.'}",
                fix="none by itself; it is here to explain what is above",
                where=name_of(pod),
            )
        )
    return findings


def _records(answer: Any) -> list[Mapping[str, Any]] | None:
    body = _parsed(answer) if isinstance(answer, Mapping) and ("json" in answer or "status" in answer) else answer
    if isinstance(body, Mapping):
        body = body.get("workers", body.get("data"))
    if isinstance(body, Mapping):
        body = list(body.values())
    return body if isinstance(body, list) and all(isinstance(record, Mapping) for record in body) else None


def _parsed(answer: Mapping[str, Any]) -> Any:
    if "json" in answer:
        return answer["json"]
    try:
        return json.loads(answer.get("content") or "null")
    except ValueError:
        return None


def _said(answer: Any) -> Any:
    """What of uri's result is worth reading: what the router said, else what happened."""
    if not isinstance(answer, Mapping):
        return answer
    return answer.get("content") or answer.get("msg") or _parsed(answer)


def _is_local(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host in ("", "localhost")
    return address.is_unspecified or address.is_loopback


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 400 else f"{text[:400]}..."


def _error(code: str, where: str, message: str, fix: str) -> Finding:
    return Finding(code=code, severity="error", message=message, fix=fix, where=where)
