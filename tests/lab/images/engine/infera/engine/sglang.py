# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A worker: python3 -m infera.engine.sglang --model-path PATH --disaggregation-mode {null,prefill,decode} ...

The command line is the part of SGLang's that the recipes use; what has no meaning without a model is taken and ignored.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import pathlib
import sys
import threading
import time
import typing as t

from ..answer import KvCache, PromptError, kv_of, messages_of, tokens_of
from ..completion import completion, max_tokens_of
from ..discovery import ApiError, KubernetesApi, own_namespace
from ..process import FatalError, run
from ..rails import Rail, read_rails
from ..transfer import Counters, KvStore, RailServers, TransferError, pull, room_of, route_handler
from ..web import Events, Handler, HttpError, Request, Service, Text, endpoint

REFRESH_SECONDS = 30
RETRY_SECONDS = 2
SNAPSHOT_PORT = 8801
EVENTS_PORT = 5557

log = logging.getLogger("infera.sglang")

IGNORED_VALUES = (
    "attention-backend",
    "chunked-prefill-size",
    "cuda-graph-max-bs",
    "kv-cache-dtype",
    "max-mamba-cache-size",
    "max-running-requests",
    "mem-fraction-static",
    "nsa-decode-backend",
    "nsa-prefill-backend",
    "reasoning-parser",
    "tool-call-parser",
)
IGNORED_FLAGS = ("language-only", "trust-remote-code")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(prog="infera.engine.sglang", allow_abbrev=False)
    command.add_argument("--model-path", required=True)
    command.add_argument("--served-model-name")
    command.add_argument("--host", default="127.0.0.1")
    command.add_argument("--port", type=int, default=30000)
    command.add_argument("--tp-size", type=int, default=1)
    command.add_argument("--context-length", type=int, default=4096)
    command.add_argument("--disaggregation-mode", choices=["null", "prefill", "decode"], default="null")
    command.add_argument("--disaggregation-transfer-backend", choices=["mooncake", "mori"], default="mooncake")
    command.add_argument("--disaggregation-bootstrap-port", type=int, default=8998)
    command.add_argument("--disaggregation-ib-device", help="use only these RDMA devices (with commas between)")
    command.add_argument("--discovery-backend", choices=["kubernetes"], default="kubernetes")
    command.add_argument("--request-transport", choices=["http"], default="http")
    command.add_argument("--kv-event-transport", choices=["zmq"], default="zmq")
    for name in IGNORED_VALUES:
        command.add_argument(f"--{name}", help="ignored by the lab")
    for name in IGNORED_FLAGS:
        command.add_argument(f"--{name}", action="store_true", help="ignored by the lab")
    return command


class Worker:
    """What prefill, decode and aggregated workers have in common: a name, a record, and the API's two endpoints."""

    mode = "mixed"

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.model = options.served_model_name or options.model_path
        # Without POD_IP the real worker advertises what it binds: 0.0.0.0, an address that is everybody's own.
        self.address = os.environ.get("POD_IP") or _kv_host() or options.host
        self.id = endpoint(self.address, options.port)
        self.requests = 0

    def record(self) -> dict[str, t.Any]:
        """What the router reads from the pod's annotation."""
        return {
            "worker_id": self.id,
            "url": f"http://{self.id}",
            "model_name": self.model,
            "engine": "sglang",
            "disagg_mode": self.mode,
            "disagg_meta": self.disagg_meta(),
            "kv_events_endpoint": f"tcp://{endpoint(self.address, EVENTS_PORT)}",
            "kv_block_size": 1,
            "dp_rank": 0,
            "dp_size": 1,
            "request_transport": "http",
            "kv": {"snapshot_url": f"http://{endpoint(self.address, snapshot_port())}"},
        }

    def disagg_meta(self) -> dict[str, t.Any] | None:
        """How decode reaches prefill's bootstrap server; None where there is none."""
        return None

    def services(self) -> list[Service]:
        """The HTTP servers, listening."""
        routes: dict[str, Handler] = {
            "POST /v1/chat/completions": self._complete,
            "POST /v1/completions": self._complete,
            "GET /v1/models": lambda _request: {"object": "list", "data": [{"id": self.model, "object": "model"}]},
            "GET /health": lambda _request: {"status": "ok"},
            "GET /metrics": lambda _request: Text("\n".join(self.metrics()) + "\n"),
        }
        snapshot: dict[str, Handler] = {"GET /snapshot": lambda _request: {"worker_id": self.id, "blocks": []}}
        host = self.options.host
        return [Service(host, self.options.port, routes), Service(host, snapshot_port(), snapshot)]

    def metrics(self) -> list[str]:
        """Lines in Prometheus's text form."""
        return ["# TYPE infera_requests_total counter", f"infera_requests_total {self.requests}"]

    def close(self) -> None:
        """Frees what `services` does not hold."""

    def answer(self, request: dict[str, t.Any], messages: list[tuple[str, str]]) -> dict[str, t.Any] | Events:
        """The work."""
        kv = kv_of(messages)
        return self.completed(request, messages, kv, {"source": "local", "bytes": len(kv)})

    def completed(
        self, request: dict[str, t.Any], messages: list[tuple[str, str]], kv: KvCache, way: dict[str, t.Any]
    ) -> dict[str, t.Any] | Events:
        """The completion, with where its KV cache came from."""
        return completion(request, self.model, messages, kv, {"worker": self.id, "disagg_mode": self.mode, "kv": way})

    def _complete(self, request: Request) -> dict[str, t.Any] | Events:
        try:
            messages = messages_of(request.body)
        except PromptError as error:
            raise HttpError(400, str(error)) from None
        max_tokens_of(request.body)
        tokens, limit = len(tokens_of(messages)), self.options.context_length
        if tokens > limit:
            raise HttpError(
                400, f"The input ({tokens} tokens) is longer than the model's context length ({limit} tokens)"
            )
        self.requests += 1
        return self.answer(request.body, messages)


class Prefill(Worker):
    """Computes the KV cache of a room and serves it on every rail."""

    mode = "prefill"

    def __init__(self, options: argparse.Namespace, rails: t.Sequence[Rail]) -> None:
        super().__init__(options)
        self.store = KvStore()
        self.servers = RailServers(rails, self.store)
        if not self.servers.rails:
            raise FatalError("no rail can be used: none of their addresses is on its network device")

    def disagg_meta(self) -> dict[str, t.Any] | None:
        """The address comes from the variables that stop the real engine's scan of interfaces."""
        address = endpoint(_kv_host() or self.address, self.options.disaggregation_bootstrap_port)
        return {"protocol": "sglang-bootstrap", "params": {"bootstrap_addr": address}}

    def services(self) -> list[Service]:
        """The bootstrap server is the third."""
        routes: dict[str, Handler] = {
            "GET /route": route_handler(self.servers, self.store),
            "GET /health": lambda _request: {"status": "ok"},
        }
        return [*super().services(), Service(self.options.host, self.options.disaggregation_bootstrap_port, routes)]

    def metrics(self) -> list[str]:
        """With the bytes that each rail sent."""
        return super().metrics() + self.servers.counters.lines("sent", self.servers.rails)

    def close(self) -> None:
        """Stops serving the rails."""
        self.servers.close()

    def answer(self, request: dict[str, t.Any], messages: list[tuple[str, str]]) -> dict[str, t.Any] | Events:
        """Its answer is that the KV cache is there; decode has the words."""
        room = _room(request)
        kv = kv_of(messages)
        self.store.put(room, kv)
        return {"infera": {"worker": self.id, "disagg_mode": self.mode, "room": room, "kv": {"bytes": len(kv)}}}


class Decode(Worker):
    """Pulls a room's KV cache from prefill and answers from it."""

    mode = "decode"

    def __init__(self, options: argparse.Namespace, rails: t.Sequence[Rail]) -> None:
        super().__init__(options)
        self.rails = rails
        self.counters = Counters()

    def metrics(self) -> list[str]:
        """With the bytes that came over each rail."""
        return super().metrics() + self.counters.lines("received", self.rails)

    def answer(self, request: dict[str, t.Any], messages: list[tuple[str, str]]) -> dict[str, t.Any] | Events:
        """One rail carries one room."""
        room = _room(request)
        host, port = request.get("bootstrap_host"), request.get("bootstrap_port")
        if not isinstance(host, str) or not isinstance(port, int):
            raise HttpError(400, "Disaggregated request received without bootstrap_host and bootstrap_port")
        try:
            pulled = pull(host, port, room, self.rails)
        except TransferError as error:
            log.error("room %d: %s", room, error)
            raise HttpError(500, str(error)) from None
        rail, size = pulled.rail, len(pulled.kv)
        self.counters.add(rail, size)
        log.info(
            "room %d: %d bytes of KV cache over rail %d (%s) from %s",
            room,
            size,
            rail.index,
            rail.netdev,
            pulled.remote,
        )
        way = {"source": "rail", "bytes": size, "rail": rail.index, "device": rail.device, "netdev": rail.netdev}
        return self.completed(request, messages, pulled.kv, way | {"local": pulled.local, "remote": pulled.remote})


def _room(request: dict[str, t.Any]) -> int:
    if "bootstrap_room" not in request:
        raise HttpError(400, "Disaggregated request received without bootstrap room id")
    return room_of(request["bootstrap_room"])


def _kv_host() -> str | None:
    return os.environ.get("SGLANG_HOST_IP") or os.environ.get("HOST_IP")


def snapshot_port() -> int:
    """Where the router fetches the KV snapshot; a variable so that tests can have several workers on one host."""
    return int(os.environ.get("INFERA_KV_SNAPSHOT_PORT", SNAPSHOT_PORT))


def _unusable(rail: Rail) -> str | None:
    if rail.state != "ACTIVE":
        return f"port is {rail.state or 'unreadable'}"
    return "GID is NULL" if rail.address is None else None


def usable_rails(options: argparse.Namespace) -> list[Rail]:
    """The rails to use; refuses to run without any, where the real engine would silently take TCP and be slow."""
    rails = read_rails(
        pathlib.Path(os.environ.get("INFERA_SYSFS_ROOT", "/sys")),
        pathlib.Path(os.environ.get("INFERA_DEV_ROOT", "/dev")),
    )
    if options.disaggregation_ib_device:
        wanted = options.disaggregation_ib_device.split(",")
        unknown = sorted(set(wanted) - {rail.device for rail in rails})
        if unknown:
            raise FatalError(f"--disaggregation-ib-device: no such RDMA device here: {', '.join(unknown)}")
        rails = [rail for rail in rails if rail.device in wanted]
    if not rails:
        raise FatalError(
            f"No RDMA devices found: --disaggregation-mode {options.disaggregation_mode} needs them "
            "(is /dev/infiniband mounted, and the pod privileged with hostNetwork?)"
        )
    reasons = {rail: reason for rail in rails if (reason := _unusable(rail))}
    for rail, reason in reasons.items():
        log.warning("rail %d (%s, %s) is not used: %s", rail.index, rail.device, rail.netdev, reason)
    usable = [rail for rail in rails if rail not in reasons]
    if not usable:
        raise FatalError(f"no RDMA device can be used: {'; '.join(sorted(set(reasons.values())))}")
    return usable


def make_worker(options: argparse.Namespace) -> Worker:
    """The worker that the mode asks for."""
    if options.disaggregation_mode == "null":
        return Worker(options)
    rails = usable_rails(options)
    log.info(
        "%d RDMA devices: %s",
        len(rails),
        ", ".join(f"{rail.device} ({rail.netdev}, GID index {rail.gid_index}, {rail.address})" for rail in rails),
    )
    return Prefill(options, rails) if options.disaggregation_mode == "prefill" else Decode(options, rails)


def register(worker: Worker, api: KubernetesApi, namespace: str, pod: str, stop: threading.Event) -> None:
    """Keeps the worker's record in its pod's annotation until `stop`."""
    text = json.dumps(worker.record(), sort_keys=True)
    failure = None
    registered = False
    while not stop.is_set():
        try:
            api.annotate(namespace, pod, text)
        except ApiError as error:
            if str(error) != failure:
                log.error("registration failed: %s", error)
            failure, registered = str(error), False
        else:
            if not registered:
                log.info("registered %s as %s at http://%s", worker.model, worker.mode, worker.id)
            failure, registered = None, True
        stop.wait(REFRESH_SECONDS if registered else RETRY_SECONDS)


def unregister(api: KubernetesApi, namespace: str, pod: str) -> None:
    """Takes the record away. A pod that is gone already is out anyway."""
    try:
        api.annotate(namespace, pod, None, timeout=1)
    except ApiError as error:
        log.warning("the registration is not cleared: %s", error)


def serve(options: argparse.Namespace, stop: threading.Event) -> None:
    """Runs a worker until `stop`."""
    namespace, pod = own_namespace(), os.environ.get("POD_NAME")
    if not namespace or not pod:
        raise FatalError("discovery: POD_NAME and POD_NAMESPACE must be set, to register this worker")
    api = KubernetesApi.from_environment()
    if not pathlib.Path(options.model_path).exists():
        log.warning("model path %s is not a local path; the lab's engine has no model and goes on", options.model_path)
    started = time.monotonic()
    worker = make_worker(options)
    services = worker.services()
    for service in services:
        service.start()
    registration = threading.Thread(target=register, args=(worker, api, namespace, pod, stop), daemon=True)
    registration.start()
    log.info(
        "ready after %.1f s: %s",
        time.monotonic() - started,
        ", ".join(str(service.server_port) for service in services),
    )
    stop.wait()
    log.info("stopping")
    # The last word must be the removal, not a refresh that was under way.
    registration.join(1)
    unregister(api, namespace, pod)
    for service in services:
        service.close(patience=0.5)
    worker.close()


def main() -> int:
    """The command line; returns the exit status."""
    options = parser().parse_args()
    return run("infera.sglang", lambda stop: serve(options, stop))


if __name__ == "__main__":
    sys.exit(main())
