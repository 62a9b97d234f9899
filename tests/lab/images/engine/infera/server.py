# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The router: python3 -m infera.server --host 0.0.0.0 --port 8000 --request-transport http --kv-event-transport zmq ...

It finds workers by the labels of their pods, sends a request to a prefill and a decode worker at once (or to one that is
aggregated), and gives back decode's answer.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import http.client
import itertools
import json
import logging
import os
import pathlib
import queue
import secrets
import sys
import threading
import time
import typing as t
from urllib.parse import urlsplit

from .discovery import ANNOTATION, ApiError, KubernetesApi, own_namespace
from .process import FatalError, run
from .web import Events, Handler, HttpError, Request, Service, Text, error_message, read, send, split_endpoint

POLL_SECONDS = 0.5
SNAPSHOT_RETRY_SECONDS = 2
SNAPSHOT_REFRESH_SECONDS = 15
# Without a good list for this long the router says that it is not ready.
LIST_LIFETIME_SECONDS = 10
MODES = ("prefill", "decode", "mixed")

log = logging.getLogger("infera.server")


def parser() -> argparse.ArgumentParser:
    """The command line. NATS is the default of both transports, as it is the real router's."""
    command = argparse.ArgumentParser(prog="infera.server", allow_abbrev=False)
    command.add_argument("--host", default="0.0.0.0")
    command.add_argument("--port", type=int, default=8000)
    command.add_argument("--router-tokenizer-path", help="looked at, not used: the lab counts words")
    command.add_argument("--request-transport", choices=["http", "nats"], default="nats")
    command.add_argument("--kv-event-transport", choices=["zmq", "nats"], default="nats")
    command.add_argument("--discovery-backend", choices=["kubernetes"], default="kubernetes")
    command.add_argument("--k8s-label-selector", default=os.environ.get("INFERA_K8S_LABEL_SELECTOR"))
    return command


@dataclasses.dataclass(frozen=True)
class Worker:
    """A registered worker: its record, and why it cannot be used (None if it can)."""

    record: dict[str, t.Any]
    pod: str
    node: str
    failure: str | None = None

    @property
    def id(self) -> str:
        """host:port"""
        return str(self.record["worker_id"])

    @property
    def mode(self) -> str:
        """prefill, decode or mixed"""
        return str(self.record["disagg_mode"])

    @property
    def url(self) -> str:
        """http://host:port"""
        return str(self.record["url"])

    @property
    def model(self) -> str:
        """The name requests use."""
        return str(self.record["model_name"])

    def shown(self) -> dict[str, t.Any]:
        """For /v1/workers: the record as registered, the pod, and the state."""
        return self.record | {"pod": self.pod, "node": self.node, "active": self.failure is None, "error": self.failure}


def parse_record(pod: dict[str, t.Any]) -> Worker | None:
    """The worker that a pod registered; None for a pod that is no worker or on its way out. ValueError if it is unreadable."""
    metadata = pod["metadata"]
    text = (metadata.get("annotations") or {}).get(ANNOTATION)
    if not text or metadata.get("deletionTimestamp") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return None
    record = json.loads(text)
    if not isinstance(record, dict) or not all(
        isinstance(record.get(key), str) for key in ("worker_id", "url", "model_name")
    ):
        raise ValueError("worker_id, url and model_name are required")
    if not _is_http(record["url"]):
        raise ValueError(f"url is {record['url']!r}, not http://host:port")
    if record.get("disagg_mode") not in MODES:
        raise ValueError(f"disagg_mode is {record.get('disagg_mode')!r}, not one of {', '.join(MODES)}")
    return Worker(record, metadata["name"], pod.get("spec", {}).get("nodeName", ""))


def _is_http(url: str) -> bool:
    parts = urlsplit(url)
    try:
        return parts.scheme == "http" and bool(parts.hostname) and parts.port is not None
    except ValueError:
        return False


class Registry:
    """The workers, as the API shows them, each tried by fetching its KV snapshot."""

    def __init__(self, list_pods: t.Callable[[], list[dict[str, t.Any]]]) -> None:
        self._list_pods = list_pods
        self._workers: dict[str, Worker] = {}
        self._next_check: dict[str, float] = {}
        self._unreadable: dict[str, str] = {}
        self._listed_at: float | None = None
        self._failure: str | None = None

    @property
    def ready(self) -> bool:
        """Whether the list of pods is fresh."""
        return self._listed_at is not None and time.monotonic() - self._listed_at < LIST_LIFETIME_SECONDS

    @property
    def workers(self) -> list[Worker]:
        """All registered workers, by pod."""
        return [worker for _pod, worker in sorted(self._workers.items())]

    def follow(self, stop: threading.Event) -> None:
        """Polls until `stop`."""
        while not stop.is_set():
            self.poll()
            stop.wait(POLL_SECONDS)

    def poll(self) -> None:
        """Reads the pods once, and tries the workers whose time it is."""
        try:
            pods = self._list_pods()
        except ApiError as error:
            if str(error) != self._failure:
                log.error("discovery: %s", error)
            self._failure = str(error)
            return
        self._failure = None
        found = {worker.pod: self._judged(worker) for worker in map(self._parsed, pods) if worker}
        for pod, worker in found.items():
            if pod not in self._workers:
                log.info("worker %s (%s, pod %s) is registered", worker.id, worker.mode, pod)
        for pod in self._workers.keys() - found.keys():
            log.info("worker %s (pod %s) is gone", self._workers[pod].id, pod)
            self._next_check.pop(pod, None)
        self._workers = found
        self._listed_at = time.monotonic()

    def _parsed(self, pod: dict[str, t.Any]) -> Worker | None:
        try:
            return parse_record(pod)
        except ValueError as error:
            name = pod["metadata"]["name"]
            if self._unreadable.get(name) != str(error):
                self._unreadable[name] = str(error)
                log.error("pod %s: annotation %s is unreadable: %s", name, ANNOTATION, error)
            return None

    def _judged(self, worker: Worker) -> Worker:
        known = self._workers.get(worker.pod)
        if known is not None and known.record == worker.record and time.monotonic() < self._next_check[worker.pod]:
            return dataclasses.replace(worker, failure=known.failure)
        failure = snapshot_failure(worker)
        if failure and (known is None or known.failure != failure):
            log.error("worker %s: %s", worker.id, failure)
        self._next_check[worker.pod] = time.monotonic() + (
            SNAPSHOT_RETRY_SECONDS if failure else SNAPSHOT_REFRESH_SECONDS
        )
        return dataclasses.replace(worker, failure=failure)


def snapshot_failure(worker: Worker) -> str | None:
    """Why a worker's KV snapshot cannot be fetched; None if it can."""
    url = str((worker.record.get("kv") or {}).get("snapshot_url", ""))
    beginning = f"snapshot HTTP GET failed for worker {worker.id}: {url}: "
    try:
        response = send("GET", f"{url}/snapshot", None, timeout=2)
        body = read(response)
    except (OSError, ValueError) as error:
        return f"{beginning}{error}"
    if response.status != 200:
        return f"{beginning}HTTP {response.status} {error_message(body)}"
    try:
        answers = json.loads(body)["worker_id"]
    except (ValueError, KeyError, TypeError):
        return f"{beginning}no worker answers there"
    return None if answers == worker.id else f"{beginning}another worker answers there: {answers}"


class Router:
    """Takes requests to workers."""

    def __init__(self, registry: Registry, timeout: float = 120) -> None:
        self.registry = registry
        self.timeout = timeout
        self.outcomes: collections.Counter[int] = collections.Counter()
        self._turns = itertools.count()

    def routes(self) -> dict[str, Handler]:
        """The endpoints."""
        return {
            "POST /v1/chat/completions": lambda request: self._counted("/v1/chat/completions", request),
            "POST /v1/completions": lambda request: self._counted("/v1/completions", request),
            "GET /v1/models": lambda _request: self._models(),
            "GET /v1/workers": lambda _request: {"workers": [worker.shown() for worker in self.registry.workers]},
            "GET /health": lambda _request: self._health(),
            "GET /metrics": lambda _request: self._metrics(),
        }

    def _models(self) -> dict[str, t.Any]:
        names = sorted({worker.model for worker in self.registry.workers if worker.failure is None})
        return {"object": "list", "data": [{"id": name, "object": "model", "owned_by": "infera"} for name in names]}

    def _health(self) -> dict[str, t.Any]:
        if not self.registry.ready:
            raise HttpError(503, "the pods of this deployment cannot be listed")
        return {"status": "ok", "workers": len(self.registry.workers)}

    def _metrics(self) -> Text:
        active = collections.Counter(worker.mode for worker in self.registry.workers if worker.failure is None)
        lines = [
            "# TYPE infera_active_workers gauge",
            *(f'infera_active_workers{{disagg_mode="{mode}"}} {active[mode]}' for mode in MODES),
        ]
        lines += ["# TYPE infera_requests_total counter"]
        lines += [f'infera_requests_total{{code="{code}"}} {count}' for code, count in sorted(self.outcomes.items())]
        return Text("\n".join(lines) + "\n")

    def _counted(self, path: str, request: Request) -> dict[str, t.Any] | Events:
        try:
            answer = self.dispatch(path, request.body)
        except HttpError as error:
            self.outcomes[error.status] += 1
            log.error("%s: %d %s", path, error.status, error)
            raise
        self.outcomes[200] += 1
        return answer

    def dispatch(self, path: str, body: dict[str, t.Any]) -> dict[str, t.Any] | Events:
        """Answers one request."""
        prefill, decode = self.choose(body.get("model"))
        if prefill is None:
            return self._answered(decode, self._post(decode, path, body), {})
        try:
            host, port = split_endpoint(prefill.record["disagg_meta"]["params"]["bootstrap_addr"])
        except (KeyError, TypeError, ValueError) as error:
            raise HttpError(502, f"prefill worker {prefill.id} registered no bootstrap_addr: {error}") from None
        body = body | {"bootstrap_host": host, "bootstrap_port": port, "bootstrap_room": secrets.randbits(63)}
        outcomes: queue.SimpleQueue[tuple[Worker, http.client.HTTPResponse | HttpError]] = queue.SimpleQueue()
        for worker in (prefill, decode):
            threading.Thread(target=self._post_into, args=(outcomes, worker, path, body), daemon=True).start()
        # Decode cannot answer before prefill has; a failure of either is the end.
        while True:
            worker, outcome = outcomes.get()
            if isinstance(outcome, HttpError):
                raise outcome
            if worker is decode:
                return self._answered(decode, outcome, {"prefill": prefill.id})
            read(outcome)

    def choose(self, model: t.Any) -> tuple[Worker | None, Worker]:
        """(prefill, decode) by turns, or (None, aggregated) where no pair is there. HttpError without either."""
        known = self.registry.workers
        if model is not None and known and all(worker.model != model for worker in known):
            names = ", ".join(sorted({worker.model for worker in known}))
            raise HttpError(404, f"The model `{model}` does not exist. Registered: {names}")
        serving = [worker for worker in known if worker.failure is None and model in (None, worker.model)]
        turn = next(self._turns)
        chosen = {
            mode: group[turn % len(group)]
            for mode in MODES
            if (group := [worker for worker in serving if worker.mode == mode])
        }
        if "prefill" in chosen and "decode" in chosen:
            return chosen["prefill"], chosen["decode"]
        if "mixed" in chosen:
            return None, chosen["mixed"]
        disaggregated = any(worker.mode != "mixed" for worker in known)
        missing = [mode for mode in (("prefill", "decode") if disaggregated else ("mixed",)) if mode not in chosen]
        reasons = [worker.failure for worker in known if worker.failure]
        raise HttpError(503, "; ".join([*reasons, *(f"no active {mode} worker" for mode in missing)]))

    def _post_into(self, outcomes: queue.SimpleQueue[t.Any], worker: Worker, path: str, body: dict[str, t.Any]) -> None:
        try:
            outcomes.put((worker, self._post(worker, path, body)))
        except HttpError as error:
            outcomes.put((worker, error))

    def _post(self, worker: Worker, path: str, body: dict[str, t.Any]) -> http.client.HTTPResponse:
        """A worker's answer, if it is one; else its words as an error."""
        try:
            response = send("POST", worker.url + path, body, self.timeout)
            if response.status == 200:
                return response
            message = error_message(read(response))
        except (OSError, ValueError) as error:
            raise HttpError(502, f"{worker.mode} worker {worker.id} does not answer: {error}") from None
        raise HttpError(response.status, f"{worker.mode} worker {worker.id}: {message}")

    def _answered(
        self, worker: Worker, response: http.client.HTTPResponse, provenance: dict[str, t.Any]
    ) -> dict[str, t.Any] | Events:
        if response.headers.get_content_type() == "text/event-stream":
            return Events(_relayed(response))
        try:
            answer = json.loads(read(response))
        except (OSError, ValueError) as error:
            raise HttpError(502, f"{worker.mode} worker {worker.id}: its answer is cut short: {error}") from None
        answer["infera"] = answer.get("infera", {}) | provenance
        return t.cast("dict[str, t.Any]", answer)


def _relayed(response: http.client.HTTPResponse) -> t.Iterator[bytes]:
    with response:
        while chunk := response.read1(65536):
            yield chunk


def serve(options: argparse.Namespace, stop: threading.Event) -> None:
    """Runs the router until `stop`."""
    if "nats" in (options.request_transport, options.kv_event_transport):
        raise FatalError(
            "NATS is not there: --request-transport http --kv-event-transport zmq do without (NATS is the default)"
        )
    if not options.k8s_label_selector:
        raise FatalError("discovery: INFERA_K8S_LABEL_SELECTOR (or --k8s-label-selector) must be set, to find workers")
    namespace = own_namespace()
    if not namespace:
        raise FatalError("discovery: POD_NAMESPACE must be set")
    if options.router_tokenizer_path and not pathlib.Path(options.router_tokenizer_path).exists():
        log.warning(
            "tokenizer path %s is not a local path; the lab's router has no tokenizer and goes on",
            options.router_tokenizer_path,
        )
    api = KubernetesApi.from_environment()
    registry = Registry(lambda: api.pods(namespace, options.k8s_label_selector))
    service = Service(options.host, options.port, Router(registry).routes())
    service.start()
    log.info(
        "listening on %s:%d, workers are pods with %s in %s",
        options.host,
        service.server_port,
        options.k8s_label_selector,
        namespace,
    )
    threading.Thread(target=registry.follow, args=(stop,), daemon=True).start()
    stop.wait()
    log.info("stopping")
    service.close()


def main() -> int:
    """The command line; returns the exit status."""
    options = parser().parse_args()
    return run("infera.server", lambda stop: serve(options, stop))


if __name__ == "__main__":
    sys.exit(main())
