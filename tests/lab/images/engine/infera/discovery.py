# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Discovery: workers write what they are into an annotation of their own pod, the router reads it."""

from __future__ import annotations

import http.client
import json
import os
import pathlib
import ssl
import threading
import typing as t
from urllib.parse import quote, urlsplit

from .process import FatalError
from .web import endpoint

ANNOTATION = "infera.amd.com/worker-info"
SERVICE_ACCOUNT = pathlib.Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ApiError(Exception):
    """The API did not do it; the message names the request and the reason."""


class KubernetesApi:
    """The few requests that discovery needs, over one connection that is kept open."""

    def __init__(self, url: str, account: pathlib.Path = SERVICE_ACCOUNT) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 443
        self._account = account
        self._tls = ssl.create_default_context(cafile=str(account / "ca.crt")) if parts.scheme == "https" else None
        self._connection: http.client.HTTPConnection | None = None
        self._lock = threading.Lock()

    @classmethod
    def from_environment(cls) -> KubernetesApi:
        """The API of the cluster this pod runs in; INFERA_K8S_API names another."""
        host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT", "443")
        url = os.environ.get("INFERA_K8S_API") or (host and f"https://{endpoint(host, int(port))}")
        if not url:
            raise FatalError("discovery: KUBERNETES_SERVICE_HOST is not set: this is not a pod of a cluster")
        try:
            return cls(url)
        except OSError as error:
            raise FatalError(f"discovery: {SERVICE_ACCOUNT}/ca.crt: {error} (is a service account mounted?)") from None

    def pods(self, namespace: str, selector: str) -> list[dict[str, t.Any]]:
        """The pods with these labels."""
        path = f"/api/v1/namespaces/{quote(namespace)}/pods?labelSelector={quote(selector)}"
        return list(self._request("GET", path, None, timeout=5)["items"])

    def annotate(self, namespace: str, pod: str, text: str | None, timeout: float = 5) -> None:
        """Sets the worker annotation of a pod, or removes it (None)."""
        patch = {"metadata": {"annotations": {ANNOTATION: text}}}
        self._request("PATCH", f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}", patch, timeout)

    def _request(self, method: str, path: str, body: dict[str, t.Any] | None, timeout: float) -> dict[str, t.Any]:
        where = f"{method} {endpoint(self._host, self._port)}{path}"
        headers = {"Accept": "application/json", "Content-Type": "application/merge-patch+json"}
        token = self._account / "token"
        if token.exists():
            # Read each time: bound tokens are replaced while the pod runs.
            headers["Authorization"] = f"Bearer {token.read_text(encoding='ascii').strip()}"
        with self._lock:
            try:
                status, content = self._exchange(method, path, json.dumps(body) if body else None, headers, timeout)
            except (OSError, http.client.HTTPException) as error:
                self._disconnect()
                raise ApiError(f"{where}: {type(error).__name__}: {error}") from None
        try:
            document = json.loads(content)
        except ValueError:
            document = {}
        if status != 200:
            raise ApiError(f"{where}: {status} {document.get('message', content[:200].decode(errors='replace'))}")
        return t.cast("dict[str, t.Any]", document)

    def _exchange(
        self, method: str, path: str, body: str | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, bytes]:
        kept = self._connection is not None
        try:
            return self._send(method, path, body, headers, timeout)
        except (OSError, http.client.HTTPException):
            if not kept:
                raise
            # The server may have closed a connection that was idle; all requests here can be sent twice.
            self._disconnect()
            return self._send(method, path, body, headers, timeout)

    def _send(
        self, method: str, path: str, body: str | None, headers: dict[str, str], timeout: float
    ) -> tuple[int, bytes]:
        if self._connection is None:
            if self._tls is None:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout)
            else:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=timeout, context=self._tls
                )
        elif self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.read()

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def own_namespace() -> str | None:
    """POD_NAMESPACE, else the service account's."""
    try:
        return os.environ.get("POD_NAMESPACE") or (SERVICE_ACCOUNT / "namespace").read_text(encoding="ascii").strip()
    except OSError:
        return None
