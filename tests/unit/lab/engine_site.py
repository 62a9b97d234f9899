# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tests of the lab's engine share: rails on loopback, a fake Kubernetes API, and processes of the engine.

The API here is a test double: an HTTP server that knows pods, label selectors and merge patches of annotations. The
sockets are real, and bound to 127.0.0.x or ::1 on `lo`.
"""

from __future__ import annotations

import ctypes
import http.client
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import typing as t
from urllib.parse import parse_qs, urlsplit

ENGINE = pathlib.Path(__file__).resolve().parents[2] / "lab" / "images" / "engine"
SELECTOR = "infera.amd.com/deployment=infera"
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def write(path: pathlib.Path, text: str) -> None:
    """A file as sysfs has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="ascii")


def add_device(
    root: pathlib.Path,
    number: int,
    gids: t.Sequence[str],
    name: str | None = None,
    netdev: str = "lo",
    gid_type: str = "RoCE v2",
    state: str = "4: ACTIVE",
) -> None:
    """An RDMA device below root/sys, its node below root/dev."""
    name = name or f"ionic_{number}"
    port = root / "sys/class/infiniband" / name / "ports/1"
    write(port / "state", state)
    for index, gid in enumerate(gids):
        write(port / f"gids/{index}", gid)
        write(port / f"gid_attrs/types/{index}", gid_type)
        write(port / f"gid_attrs/ndevs/{index}", netdev)
    write(root / f"sys/class/infiniband_verbs/uverbs{number}/ibdev", name)
    write(root / f"dev/infiniband/uverbs{number}", "")


def loopback_rails(root: pathlib.Path, count: int, host: int) -> None:
    """A host with `count` rails; rail i has the address 127.0.<host>.<i+1>, in a GID that is IPv4-mapped."""
    for index in range(count):
        add_device(
            root,
            index,
            [
                "fe80:0000:0000:0000:0000:0000:0000:0001",
                f"0000:0000:0000:0000:0000:ffff:7f00:{host:02x}{index + 1:02x}",
            ],
        )


class FakeApi:
    """A Kubernetes API server as far as discovery uses it."""

    def __init__(self) -> None:
        self.pods: dict[str, dict[str, t.Any]] = {}
        self.failure: tuple[int, str] | None = None
        self.requests: list[tuple[str, str, str]] = []
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def add_pod(self, name: str, **metadata: t.Any) -> dict[str, t.Any]:
        """A running pod of the deployment `infera`."""
        labels = {"infera.amd.com/deployment": "infera"}
        pod = {"metadata": {"name": name, "labels": labels, "annotations": {}} | metadata, "spec": {"nodeName": "lab1"}}
        self.pods[name] = pod | {"status": {"phase": "Running"}}
        return self.pods[name]

    def record(self, pod: str) -> dict[str, t.Any] | None:
        """What a worker has registered."""
        text = self.pods[pod]["metadata"]["annotations"].get("infera.amd.com/worker-info")
        return t.cast("dict[str, t.Any]", json.loads(text)) if text else None

    def close(self) -> None:
        """Stops it."""
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        api = self

        class Handler(http.server.BaseHTTPRequestHandler):
            """One connection."""

            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                """The list of pods."""
                query = parse_qs(urlsplit(self.path).query)
                key, _is, value = query["labelSelector"][0].partition("=")
                self._send([pod for pod in api.pods.values() if pod["metadata"]["labels"].get(key) == value])

            def do_PATCH(self) -> None:
                """A merge patch of one pod's annotations."""
                patch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                annotations = api.pods[self.path.rpartition("/")[2]]["metadata"]["annotations"]
                for name, text in patch["metadata"]["annotations"].items():
                    annotations.pop(name, None)
                    annotations.update({} if text is None else {name: text})
                self._send([])

            def _send(self, items: list[t.Any]) -> None:
                api.requests.append((self.command, self.path, self.headers.get("Content-Type", "")))
                status, body = (
                    (200, {"items": items}) if api.failure is None else (api.failure[0], {"message": api.failure[1]})
                )
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: t.Any) -> None:
                """Quiet."""

        return Handler


def _end_with_the_test() -> None:
    """ansible-test forks for every test, and such a fork leaves without tearing down what the module shares."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Process:
    """`python3 -m MODULE ARGUMENTS`, as in the image; its output is kept."""

    def __init__(self, module: str, arguments: t.Sequence[str], environment: dict[str, str]) -> None:
        kept = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ENGINE),
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            env=kept | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            preexec_fn=_end_with_the_test,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.lines.append(line.rstrip("\n"))

    @property
    def output(self) -> str:
        """All it said so far."""
        return "\n".join(self.lines)

    def wait(self, timeout: float = 10) -> int:
        """Its exit status."""
        status = self._process.wait(timeout)
        self._reader.join(timeout)
        return status

    def terminate(self) -> int:
        """SIGTERM, as the kubelet sends it; the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """For the end of a test."""
        if self._process.poll() is None:
            self._process.kill()
        self.wait()


def until(condition: t.Callable[[], t.Any], what: str, seconds: float = 15) -> t.Any:
    """Waits for a condition; the value that it came to."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError(f"not within {seconds} s: {what}")


def call(
    port: int, path: str, body: t.Any = None, host: str = "127.0.0.1", raw: bytes | None = None
) -> tuple[int, t.Any]:
    """(status, answer) of a GET, or of a POST where there is a body. (0, {}) where nobody listens."""
    connection = http.client.HTTPConnection(host, port, timeout=30)
    content = raw if raw is not None else json.dumps(body).encode() if body is not None else None
    try:
        connection.request("GET" if content is None else "POST", path, content)
        response = connection.getresponse()
        text = response.read()
    except ConnectionRefusedError:
        return 0, {}
    finally:
        connection.close()
    try:
        return response.status, json.loads(text)
    except ValueError:
        return response.status, text.decode()


def free_ports(count: int) -> list[int]:
    """Ports that nobody has."""
    sockets = [socket.socket() for _index in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
