# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A small HTTP server and client for JSON: threads, no traceback towards anyone, errors in the form of the OpenAI API."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import http.server
import json
import logging
import socket
import socketserver
import threading
import time
import typing as t
from urllib.parse import parse_qs, urlsplit

MAX_BODY = 16 * 1024 * 1024

log = logging.getLogger("infera.web")


class HttpError(Exception):
    """An answer that is not 200; the message is for the person who asked."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclasses.dataclass(frozen=True)
class Request:
    """What a handler needs to know of a request. `body` is {} unless it was posted."""

    query: dict[str, str]
    body: dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Text:
    """A plain text answer."""

    content: str


@dataclasses.dataclass(frozen=True)
class Events:
    """A server-sent event stream, chunk by chunk as it goes on the wire."""

    chunks: t.Iterable[bytes]


Handler = t.Callable[[Request], t.Union[dict[str, t.Any], Text, Events]]


class Service(socketserver.ThreadingMixIn, http.server.HTTPServer):
    """An HTTP server; `routes` maps "METHOD /path" to a handler. It listens at once and answers after `start()`."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, host: str, port: int, routes: dict[str, Handler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.routes = routes
        self._closing = False
        self._busy = 0
        self._idle = threading.Condition()
        try:
            super().__init__((host, port), _Exchange)
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {endpoint(host, port)}: {error.strerror}") from None

    def server_bind(self) -> None:
        """Binds without asking a name server for the own name, as the standard library's would."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def start(self) -> None:
        """Answers from now on, in a thread."""
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self, patience: float = 1.0) -> None:
        """Takes nothing new, and waits `patience` seconds for what is under way."""
        self._closing = True
        # Wakes the thread that accepts; no polling needed.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        with self._idle:
            self._idle.wait_for(lambda: self._busy == 0, patience)
        self.server_close()

    def _accept(self) -> None:
        while not self._closing:
            try:
                connection, address = self.get_request()
            except OSError:
                # Out of file descriptors, say: not forever.
                time.sleep(0.1)
                continue
            self.process_request(connection, address)

    def handle_error(self, request: t.Any, client_address: t.Any) -> None:
        """A client that went away is no event."""

    def __enter__(self) -> Service:
        return self

    def __exit__(self, *_details: object) -> None:
        self.close(0)

    def begin(self, step: int) -> None:
        """Counts requests under way: +1 at the start, -1 at the end."""
        with self._idle:
            self._busy += step
            self._idle.notify_all()


class _Exchange(http.server.BaseHTTPRequestHandler):
    """One connection."""

    server: Service
    protocol_version = "HTTP/1.1"
    server_version = "infera-lab"
    sys_version = ""
    timeout = 75
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        """GET"""
        self._serve()

    def do_POST(self) -> None:
        """POST"""
        self._serve()

    def log_message(self, format: str, *args: t.Any) -> None:
        """Handlers say what is worth a line."""

    def _serve(self) -> None:
        self.server.begin(+1)
        try:
            self._answer()
        finally:
            self.server.begin(-1)

    def _answer(self) -> None:
        url = urlsplit(self.path)
        try:
            handler = self.server.routes.get(f"{self.command} {url.path}")
            body = self._body()
            if handler is None:
                raise HttpError(404, f"{self.command} {url.path}: no such endpoint")
            answer = handler(Request({key: values[-1] for key, values in parse_qs(url.query).items()}, body))
        except HttpError as error:
            self._send(error.status, "application/json", _error_body(error.status, str(error)))
        except Exception as error:  # pylint: disable=broad-exception-caught
            message = f"internal error: {type(error).__name__}: {error}"
            log.error("%s %s: %s", self.command, url.path, message)
            self._send(500, "application/json", _error_body(500, message))
        else:
            if isinstance(answer, Events):
                self._stream(answer)
            elif isinstance(answer, Text):
                self._send(200, "text/plain; charset=utf-8", answer.content.encode())
            else:
                self._send(200, "application/json", json.dumps(answer).encode())

    def _body(self) -> dict[str, t.Any]:
        if self.command != "POST":
            return {}
        try:
            length = int(self.headers.get("Content-Length", "0"))
        except ValueError:
            length = -1
        if not 0 <= length <= MAX_BODY:
            self.close_connection = True
            raise HttpError(413, f"Content-Length: from 0 to {MAX_BODY} bytes are taken")
        try:
            body = json.loads(self.rfile.read(length))
        except (ValueError, RecursionError) as error:
            raise HttpError(400, f"the body is not JSON: {error}") from None
        if not isinstance(body, dict):
            raise HttpError(400, "the body is not a JSON object")
        return body

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, events: Events) -> None:
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in events.chunks:
            self.wfile.write(chunk)
            self.wfile.flush()


def _error_body(status: int, message: str) -> bytes:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json.dumps({"error": {"message": message, "type": kind, "code": status}}).encode()


def error_message(body: bytes) -> str:
    """The message of an error's body, or the body's beginning where it is something else."""
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return body[:300].decode(errors="replace")


def endpoint(host: str, port: int) -> str:
    """host:port, with the brackets that IPv6 wants."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_endpoint(address: str) -> tuple[str, int]:
    """(host, port) of host:port or [host]:port. ValueError if it is neither."""
    url = urlsplit(f"//{address}")
    if not url.hostname or url.port is None:
        raise ValueError(f"{address!r} is not host:port")
    return url.hostname, url.port


def send(method: str, url: str, body: dict[str, t.Any] | None, timeout: float) -> http.client.HTTPResponse:
    """Sends a request and returns the response, its body still unread. OSError if there is none."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=timeout)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    try:
        if body is None:
            connection.request(method, target)
        else:
            connection.request(method, target, json.dumps(body), {"Content-Type": "application/json"})
        return connection.getresponse()
    except http.client.HTTPException as error:
        connection.close()
        raise OSError(f"{type(error).__name__}: {error}") from None
    except OSError:
        connection.close()
        raise


def read(response: http.client.HTTPResponse) -> bytes:
    """The rest of a response. OSError if it is cut short."""
    try:
        with response:
            return response.read()
    except http.client.HTTPException as error:
        raise OSError(f"{type(error).__name__}: {error}") from None
