# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A few calls to the Kubernetes API, with the join token as bearer."""

from __future__ import annotations

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

TIMEOUT_SECONDS = 5


class Unreachable(Exception):
    """No answer: the message is the network's or TLS's."""


class Api:
    """One API server as one user. Without a CA nothing is verified, and then no token may be sent."""

    def __init__(self, url: str, ca_pem: bytes | None, token: str = "") -> None:
        assert ca_pem or not token
        self.url, self._token = url, token
        context = ssl.create_default_context(cadata=ca_pem.decode()) if ca_pem else ssl.create_default_context()
        if not ca_pem:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # No proxy: the API is a neighbour, whatever the unit's environment says.
        self._opener = urllib.request.build_opener(
            urllib.request.HTTPSHandler(context=context), urllib.request.ProxyHandler({})
        )

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, Any]:
        """Status and document (or text). Raises Unreachable."""
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Content-Type": kind} | ({"Authorization": f"Bearer {self._token}"} if self._token else {})
        request = urllib.request.Request(
            self.url + path, json.dumps(body).encode() if body else None, headers, method=method
        )
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS) as answer:
                return answer.status, _document(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, _document(error.read())
        except urllib.error.URLError as error:
            raise Unreachable(f"{method} {self.url}{path}: {error.reason}") from error
        except OSError as error:
            raise Unreachable(f"{method} {self.url}{path}: {error}") from error

    def get(self, path: str) -> Any | None:
        """The document, or None when there is none or no answer."""
        try:
            status, document = self.call("GET", path)
        except Unreachable:
            return None
        return document if status == 200 else None

    def ready(self) -> bool:
        """Whether the server says that it is ready."""
        return self.get("/readyz") is not None

    def put(self, collection: str, document: dict[str, Any]) -> bool:
        """Create the object or replace it; whether the server took it."""
        status, _answer = self.call("PUT", f"{collection}/{document['metadata']['name']}", document)
        if status == 404:
            status, _answer = self.call("POST", collection, document)
        return status in (200, 201)


def _document(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode(errors="replace")
