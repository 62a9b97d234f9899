# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster's API, as far as the stages use it: get, list, server-side apply, delete, logs.

Connection, TLS and credentials are the client C(kubernetes)'s; requests go by path, so that no discovery comes before them. One
process talks to the API for a whole stage: the client alone takes half a second to import.
"""

from __future__ import annotations

import json
import os
from typing import Any, Mapping, Protocol

JsonObject = Mapping[str, Any]

TIMEOUT_SECONDS = 30
BRING = "Fix: run playbooks/k3s.yml, which brings the kubeconfig again, or correct cluster_kubeconfig."
_CLUSTER_SCOPED = frozenset({"Namespace", "Node", "ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition"})


class KubeError(Exception):
    """The API refused, or does not answer. C(status): the HTTP status; 0 where there was no answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Api(Protocol):
    """What this module asks of a cluster; tests put a double in its place."""

    def request(self, method: str, path: str, query: Mapping[str, str], body: JsonObject | None = None) -> str: ...


def path_of(definition: JsonObject) -> str:
    """Path of an object in the API. The plural is the kind in lower case and an s, as of every kind that is used here."""
    metadata = definition["metadata"]
    return (
        f"{collection(definition['apiVersion'], definition['kind'], metadata.get('namespace', ''))}/{metadata['name']}"
    )


def collection(api_version: str, kind: str, namespace: str = "") -> str:
    """Path of all objects of a kind, in one namespace or everywhere."""
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    place = f"/namespaces/{namespace}" if namespace and kind not in _CLUSTER_SCOPED else ""
    return f"{root}{place}/{kind.lower()}s"


class Cluster:
    """The API behind a kubeconfig. Raises KubeError."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def get(self, path: str) -> dict[str, Any] | None:
        """The object, or None where there is none."""
        try:
            return json.loads(self._api.request("GET", path, {}))
        except KubeError as error:
            if error.status == 404:
                return None
            raise

    def list(self, api_version: str, kind: str, namespace: str = "", selector: str = "") -> list[dict[str, Any]]:
        """The objects of a kind, oldest first by the API's own order. C(selector): labels."""
        query = {"labelSelector": selector} if selector else {}
        return json.loads(self._api.request("GET", collection(api_version, kind, namespace), query))["items"]

    def apply(self, definition: JsonObject, manager: str, force: bool = False, dry_run: bool = False) -> dict[str, Any]:
        """Server-side apply; what the object is afterwards, or would be."""
        query = {"fieldManager": manager, "force": str(force).lower()}
        if dry_run:
            query["dryRun"] = "All"
        return json.loads(self._api.request("PATCH", path_of(definition), query, definition))

    def delete(self, path: str) -> None:
        """Delete an object and what it owns; one that is gone is no error."""
        try:
            self._api.request("DELETE", path, {"propagationPolicy": "Background"})
        except KubeError as error:
            if error.status != 404:
                raise

    def log(self, namespace: str, pod: str, container: str, lines: int) -> str:
        """The last lines of a container's log; empty where there is none to be had."""
        query = {"container": container, "tailLines": str(lines)} if container else {"tailLines": str(lines)}
        try:
            return self._api.request("GET", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query)
        except KubeError:
            return ""


def connect(kubeconfig: str) -> Cluster:
    """The cluster of a kubeconfig's current context. Raises KubeError where the file is none."""
    return Cluster(_Client(kubeconfig))


class _Client:
    """The client's dynamic form, whose C(request) is the same in all its releases; told not to discover what the API has."""

    def __init__(self, kubeconfig: str) -> None:
        try:
            from kubernetes import config
            from kubernetes.dynamic import DynamicClient
        except ImportError as error:
            raise KubeError(
                "The Python client kubernetes is missing on the controller. Fix: pip install -r requirements.txt"
            ) from error
        try:
            client = config.new_client_from_config(config_file=kubeconfig)
        except Exception as error:  # What YAML, base64 and the file system raise, as it comes.
            said = "there is no such file" if not os.path.exists(kubeconfig) else _first_line(error)
            raise KubeError(f"{kubeconfig} is no usable kubeconfig: {said}. {BRING}") from error
        self._client = DynamicClient(client, discoverer=lambda _client, _cache: None)

    def request(self, method: str, path: str, query: Mapping[str, str], body: JsonObject | None = None) -> str:
        from kubernetes.client import ApiException
        from urllib3.exceptions import HTTPError

        try:
            answer = self._client.request(
                method,
                path,
                body=body,
                query_params=list(query.items()),
                header_params={"Accept": "application/json, */*"},
                content_type="application/apply-patch+yaml" if body is not None else None,
                serialize=False,
                _request_timeout=TIMEOUT_SECONDS,
            )
            return answer.data.decode("utf-8", "replace")
        except ApiException as error:
            told = _told(error.body) or str(error.reason)
            raise KubeError(f"{told}. {BRING}" if error.status == 401 else told, error.status or 0) from error
        except (HTTPError, OSError) as error:
            told = _first_line(error)
            if "CERTIFICATE_VERIFY_FAILED" in told:
                raise KubeError(
                    f"The API is not that of the kubeconfig: its certificate is another CA's. {BRING}"
                ) from error
            raise KubeError(
                f"The API does not answer: {told}. Fix: see `systemctl status k3s` on the server."
            ) from error


def _told(body: Any) -> str:
    """The API server's own words, and the way out of a conflict."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        status = json.loads(text)
        message = str(status["message"])
    except (ValueError, KeyError, TypeError):
        return text.strip()
    if status.get("reason") == "Conflict":
        return f"{message}. Undo that change, or allow to take the field over (force_conflicts)."
    return message


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
