# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Router, prefill, decode and aggregated workers as processes on loopback, against a fake Kubernetes API server."""

from __future__ import annotations

import http.client
import json
import pathlib
import re
import time
import typing as t

import pytest
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.answer import expected_answer, tokens_of
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.discovery import ANNOTATION
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.server import (
    Worker,
    parse_record,
    snapshot_failure,
)
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.web import Service, Text
from ansible_collections.infera.baremetal.tests.unit.lab import engine_site
from ansible_collections.infera.baremetal.tests.unit.lab.engine_site import FakeApi, Process, call, until

PROMPT = "What carries the KV cache?"
CHAT = {"model": "lab-model", "messages": [{"role": "user", "content": PROMPT}]}
# Each host has its own loopback address, so that a wrong one is a refused connection.
HOSTS = {"prefill": "127.0.1.1", "decode": "127.0.2.1", "null": "127.0.3.1"}


class Site:
    """A deployment of processes."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.api = FakeApi()
        self.processes: list[Process] = []
        self.router_port, self.worker_port, self.snapshot_port, self.bootstrap_port = engine_site.free_ports(4)

    def start(self, name: str, module: str, arguments: t.Sequence[str], environment: dict[str, str]) -> Process:
        self.api.add_pod(name)
        base = {"POD_NAME": name, "POD_NAMESPACE": "infera", "INFERA_K8S_API": self.api.url}
        self.processes.append(Process(module, arguments, base | environment))
        return self.processes[-1]

    def router(self, *arguments: str, **environment: str) -> Process:
        args = ["--host", "127.0.0.1", "--port", str(self.router_port), "--router-tokenizer-path", "/models/lab-model"]
        args += ["--request-transport", "http", "--kv-event-transport", "zmq", *arguments]
        return self.start(
            "router", "infera.server", args, {"INFERA_K8S_LABEL_SELECTOR": engine_site.SELECTOR} | environment
        )

    def worker(self, mode: str, *arguments: str, name: str = "", **environment: str) -> Process:
        root = self.root / mode
        args = ["--model-path", "/models/lab-model", "--served-model-name", "lab-model", "--disaggregation-mode", mode]
        args += [
            "--host",
            HOSTS[mode],
            "--port",
            str(self.worker_port),
            "--disaggregation-bootstrap-port",
            str(self.bootstrap_port),
        ]
        base = {
            "POD_IP": HOSTS[mode],
            "INFERA_SYSFS_ROOT": str(root / "sys"),
            "INFERA_DEV_ROOT": str(root / "dev"),
            "INFERA_KV_SNAPSHOT_PORT": str(self.snapshot_port),
        }
        return self.start(name or mode, "infera.engine.sglang", [*args, *arguments], base | environment)

    def pair(self, rails: int = 4) -> tuple[Process, Process]:
        engine_site.loopback_rails(self.root / "prefill", rails, host=1)
        engine_site.loopback_rails(self.root / "decode", rails, host=2)
        return self.worker("prefill"), self.worker("decode")

    def ask(self, body: t.Any = None, path: str = "/v1/chat/completions") -> tuple[int, t.Any]:
        return call(self.router_port, path, CHAT if body is None else body)

    def workers(self) -> list[dict[str, t.Any]]:
        _status, answer = call(self.router_port, "/v1/workers")
        return list(answer.get("workers", []))

    def active(self, count: int) -> None:
        until(
            lambda: sum(worker["active"] for worker in self.workers()) == count,
            f"{count} active workers: {self.logs()}",
        )

    def logs(self) -> str:
        return "\n".join(process.output for process in self.processes)

    def close(self) -> None:
        for process in self.processes:
            process.kill()
        self.api.close()
        # Whatever happened, nobody saw a traceback.
        assert "Traceback" not in self.logs()


@pytest.fixture(name="aggregated", scope="module")
def aggregated_site(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Site]:
    """One that stands for all tests that leave it as it is."""
    standing = Site(tmp_path_factory.mktemp("aggregated"))
    standing.worker("null", "--context-length", "10")
    standing.router()
    standing.active(1)
    yield standing
    standing.close()


@pytest.fixture
def site(tmp_path: pathlib.Path) -> t.Iterator[Site]:
    standing = Site(tmp_path)
    yield standing
    standing.close()


def test_a_completion_goes_through_prefill_and_decode_over_a_rail(site: Site) -> None:
    site.pair()
    site.router()
    site.active(2)

    status, answer = site.ask()

    assert status == 200
    assert answer["choices"][0]["message"] == {"role": "assistant", "content": expected_answer(PROMPT)}
    assert answer["choices"][0]["finish_reason"] == "stop"
    assert answer["object"] == "chat.completion" and answer["model"] == "lab-model"
    # <user> and six tokens: What carries the KV cache ?
    assert answer["usage"]["prompt_tokens"] == 7 == len(tokens_of([("user", PROMPT)]))
    way = answer["infera"]["kv"]
    assert way["bytes"] == 7 * 1024
    assert way["device"] == f"ionic_{way['rail']}" and way["netdev"] == "lo"
    # Bound on both ends to the addresses of the same rail.
    assert way["local"].rpartition(":")[0] == f"127.0.2.{way['rail'] + 1}"
    assert way["remote"].rpartition(":")[0] == f"127.0.1.{way['rail'] + 1}"
    assert answer["infera"]["prefill"] == f"127.0.1.1:{site.worker_port}"
    assert answer["infera"]["worker"] == f"127.0.2.1:{site.worker_port}"


def test_every_rail_gets_its_turn_and_the_counters_agree_on_both_ends(site: Site) -> None:
    site.pair(rails=2)
    site.router()
    site.active(2)

    rails = {site.ask()[1]["infera"]["kv"]["rail"] for _turn in range(24)}

    assert rails == {0, 1}
    ends = []
    for mode, direction in (("prefill", "sent"), ("decode", "received")):
        _status, text = call(site.worker_port, "/metrics", host=HOSTS[mode])
        lines = [line for line in text.splitlines() if line.startswith(f"infera_kv_{direction}_bytes_total")]
        ends.append([int(line.split()[-1]) for line in lines])
    assert ends[0] == ends[1] and sum(ends[0]) == 24 * 7 * 1024


def test_a_stream_says_the_same_as_the_whole(site: Site) -> None:
    site.pair()
    site.router()
    site.active(2)

    connection = http.client.HTTPConnection("127.0.0.1", site.router_port, timeout=10)
    connection.request("POST", "/v1/chat/completions", json.dumps(CHAT | {"stream": True}))
    response = connection.getresponse()
    events = response.read().decode().split("\n\n")
    connection.close()

    assert response.headers["Content-Type"] == "text/event-stream"
    assert events[-2:] == ["data: [DONE]", ""]
    chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == expected_answer(PROMPT)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert chunks[-1]["infera"]["kv"]["source"] == "rail"


def test_a_plain_completion_and_a_limit_on_tokens(site: Site) -> None:
    site.pair()
    site.router()
    site.active(2)

    status, answer = site.ask({"prompt": PROMPT, "max_tokens": 3}, "/v1/completions")

    assert status == 200
    assert answer["choices"][0]["text"] == "The lab's answer" == expected_answer(PROMPT, 3)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 3


def test_aggregated_answers_by_itself_without_rdma(aggregated: Site) -> None:
    status, answer = aggregated.ask()

    assert status == 200
    assert answer["choices"][0]["message"]["content"] == expected_answer(PROMPT)
    assert answer["infera"] == {
        "worker": f"127.0.3.1:{aggregated.worker_port}",
        "disagg_mode": "mixed",
        "kv": {"source": "local", "bytes": 7168},
    }


def test_what_a_worker_registers(site: Site) -> None:
    engine_site.loopback_rails(site.root / "prefill", 2, host=1)
    site.worker("prefill", HOST_IP="127.0.1.9")

    record = until(lambda: site.api.record("prefill"), "the registration")

    assert record == {
        "worker_id": f"127.0.1.1:{site.worker_port}",
        "url": f"http://127.0.1.1:{site.worker_port}",
        "model_name": "lab-model",
        "engine": "sglang",
        "disagg_mode": "prefill",
        "disagg_meta": {
            "protocol": "sglang-bootstrap",
            "params": {"bootstrap_addr": f"127.0.1.9:{site.bootstrap_port}"},
        },
        "kv_events_endpoint": "tcp://127.0.1.1:5557",
        "kv_block_size": 1,
        "dp_rank": 0,
        "dp_size": 1,
        "request_transport": "http",
        "kv": {"snapshot_url": f"http://127.0.1.1:{site.snapshot_port}"},
    }
    assert ("PATCH", "/api/v1/namespaces/infera/pods/prefill", "application/merge-patch+json") in site.api.requests


def test_sigterm_takes_the_record_away_within_two_seconds(site: Site) -> None:
    engine_site.loopback_rails(site.root / "prefill", 8, host=1)
    prefill = site.worker("prefill")
    router = site.router()
    until(lambda: site.api.record("prefill"), "the registration")
    until(lambda: call(site.router_port, "/health")[0] == 200, "the router")

    started = time.monotonic()
    statuses = [prefill.terminate(), router.terminate()]

    assert statuses == [0, 0]
    assert time.monotonic() - started < 2
    assert site.api.record("prefill") is None


def test_no_worker_is_an_answer_of_503(site: Site) -> None:
    site.router()
    until(lambda: call(site.router_port, "/health")[0] == 200, "the router")

    status, answer = site.ask()

    assert status == 503
    assert answer["error"]["message"] == "no active mixed worker"


def test_prefill_alone_is_no_pair(site: Site) -> None:
    engine_site.loopback_rails(site.root / "prefill", 1, host=1)
    site.worker("prefill")
    site.router()
    site.active(1)

    status, answer = site.ask()

    assert status == 503
    assert answer["error"]["message"] == "no active decode worker"


def test_a_worker_that_advertises_0_0_0_0_is_not_used(site: Site) -> None:
    # Where the router is, nobody listens: the worker is at 127.0.3.1, as it would be on another node.
    site.worker("null", POD_IP="0.0.0.0")
    site.router()
    until(site.workers, "the registration")

    status, answer = site.ask()

    assert status == 503
    snapshot = f"http://0.0.0.0:{site.snapshot_port}"
    assert answer["error"]["message"] == (
        f"snapshot HTTP GET failed for worker 0.0.0.0:{site.worker_port}: {snapshot}: [Errno 111] Connection refused; "
        "no active mixed worker"
    )


def test_without_an_address_a_worker_advertises_what_it_binds(site: Site) -> None:
    site.worker("null", POD_IP="")

    assert until(lambda: site.api.record("null"), "the registration")["url"] == f"http://127.0.3.1:{site.worker_port}"


def test_a_bootstrap_address_of_0_0_0_0_is_named(site: Site) -> None:
    engine_site.loopback_rails(site.root / "prefill", 1, host=1)
    engine_site.loopback_rails(site.root / "decode", 1, host=2)
    site.worker("prefill", SGLANG_HOST_IP="0.0.0.0")
    site.worker("decode")
    site.router()
    site.active(2)

    status, answer = site.ask()

    assert status == 500
    assert f"Failed to connect to bootstrap server http://0.0.0.0:{site.bootstrap_port}" in answer["error"]["message"]
    assert call(site.worker_port, "/health", host=HOSTS["decode"])[0] == 200


def test_a_rail_that_prefill_does_not_have_is_a_dead_session(site: Site) -> None:
    engine_site.loopback_rails(site.root / "prefill", 1, host=1)
    engine_site.add_device(site.root / "decode", 0, [], name="ionic_0")
    engine_site.loopback_rails(site.root / "decode", 2, host=2)
    (site.root / "decode/dev/infiniband/uverbs0").unlink()
    site.worker("prefill")
    site.worker("decode")
    site.router()
    site.active(2)

    status, answer = site.ask()

    assert status == 500
    assert "Failed to get kvcache from prefill instance" in answer["error"]["message"]
    assert "is not alive): prefill does not serve rail 1" in answer["error"]["message"]


@pytest.mark.parametrize("mode", ["prefill", "decode"])
def test_without_rdma_devices_a_disaggregated_worker_refuses(site: Site, mode: str) -> None:
    worker = site.worker(mode)

    assert worker.wait() == 1
    assert "No RDMA devices found" in worker.output


def test_link_local_gids_only_are_refused(site: Site) -> None:
    engine_site.add_device(
        site.root / "decode", 0, ["fe80:0000:0000:0000:0000:0000:0000:0001", "0000:0000:0000:0000:0000:0000:0000:0000"]
    )
    worker = site.worker("decode")

    assert worker.wait() == 1
    assert "GID is NULL" in worker.output


def test_a_prefill_without_an_address_of_its_own_refuses(site: Site) -> None:
    # 192.0.2.1 is for documentation; binding to it sends nothing.
    engine_site.add_device(site.root / "prefill", 0, ["0000:0000:0000:0000:0000:ffff:c000:0201"])
    worker = site.worker("prefill")

    assert worker.wait() == 1
    assert "rail 0 (ionic_0, lo, 192.0.2.1) is not used: [Errno 99]" in worker.output


def test_a_port_that_is_taken_is_named(site: Site) -> None:
    site.worker("null")
    until(lambda: call(site.worker_port, "/health", host=HOSTS["null"])[0] == 200, "the first worker")

    second = site.worker("null", name="second")

    assert second.wait() == 1
    assert f"cannot listen on 127.0.3.1:{site.worker_port}: Address already in use" in second.output


def test_unknown_flags_are_fatal(site: Site) -> None:
    worker = site.worker("null", "--mem-fraction-statik", "0.9")

    assert worker.wait() == 2
    assert "unrecognized arguments: --mem-fraction-statik 0.9" in worker.output


def test_the_flags_of_the_recipes_are_taken(site: Site) -> None:
    flags = (
        "--trust-remote-code --attention-backend aiter --mem-fraction-static 0.97 --context-length 32768 --tp-size 8"
    )
    flags += " --max-running-requests 16 --max-mamba-cache-size 16 --language-only --request-transport http --kv-event-transport zmq"
    flags += " --nsa-prefill-backend tilelang --nsa-decode-backend tilelang --kv-cache-dtype fp8_e4m3 --chunked-prefill-size 8192"
    flags += " --cuda-graph-max-bs 24 --reasoning-parser glm45 --disaggregation-transfer-backend mori"
    site.worker("null", *flags.split())

    assert until(lambda: site.api.record("null"), "the registration")["disagg_mode"] == "mixed"


def test_a_failing_registration_says_why_and_is_tried_again(site: Site) -> None:
    site.api.failure = (403, 'pods "null" is forbidden')
    worker = site.worker("null")
    until(lambda: "registration failed: PATCH 127.0.0.1:" in worker.output, "the error")
    assert '/pods/null: 403 pods "null" is forbidden' in worker.output

    site.api.failure = None

    assert until(lambda: site.api.record("null"), "the second attempt")


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (["--request-transport", "nats"], {}, "NATS is not there"),
        ([], {"INFERA_K8S_LABEL_SELECTOR": ""}, "INFERA_K8S_LABEL_SELECTOR (or --k8s-label-selector) must be set"),
        ([], {"INFERA_K8S_API": ""}, "KUBERNETES_SERVICE_HOST is not set"),
    ],
)
def test_a_router_that_cannot_work_says_what_is_missing(
    site: Site, arguments: list[str], environment: dict[str, str], message: str
) -> None:
    router = site.router(*arguments, **environment)

    assert router.wait() == 1
    assert message in router.output


def test_a_router_that_may_not_list_pods_is_not_ready(site: Site) -> None:
    site.api.failure = (403, "pods is forbidden")
    router = site.router()
    until(lambda: "discovery: GET" in router.output, "the error")

    assert call(site.router_port, "/health")[0] == 503
    assert "403 pods is forbidden" in router.output


def test_a_pod_that_is_being_deleted_is_out_at_once(site: Site) -> None:
    site.worker("null")
    site.router()
    site.active(1)

    site.api.pods["null"]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    until(lambda: not site.workers(), "the worker to be out", seconds=3)
    assert site.ask()[0] == 503


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "worker_id, url and model_name are required"),
        (
            '{"worker_id": "a", "url": "http://a:1", "model_name": "c"}',
            "disagg_mode is None, not one of prefill, decode, mixed",
        ),
        (
            '{"worker_id": "a", "url": "http://a:b", "model_name": "c", "disagg_mode": "mixed"}',
            "url is 'http://a:b', not http://host:port",
        ),
        (
            '{"worker_id": "a", "url": "a:30000", "model_name": "c", "disagg_mode": "mixed"}',
            "url is 'a:30000', not http://host:port",
        ),
    ],
)
def test_an_unreadable_record_is_no_worker(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_record({"metadata": {"name": "broken", "annotations": {ANNOTATION: text}}})


def test_a_pod_without_a_record_is_no_worker() -> None:
    for pod in ({"metadata": {"name": "a"}}, {"metadata": {"name": "a", "annotations": None}}):
        assert parse_record(pod) is None


def test_an_unreadable_record_is_told_once_and_the_others_go_on(site: Site) -> None:
    site.api.add_pod("broken", annotations={ANNOTATION: "{"})
    site.worker("null")
    router = site.router()
    site.active(1)

    assert router.output.count("pod broken: annotation infera.amd.com/worker-info is unreadable") == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Text("hello"), "no worker answers there"),
        ({"blocks": []}, "no worker answers there"),
        ({"worker_id": "other:1"}, "another worker answers there: other:1"),
        ({"worker_id": "a:1"}, None),
    ],
)
def test_what_answers_at_the_snapshot_port_is_looked_at(answer: Text | dict[str, t.Any], reason: str | None) -> None:
    with Service("127.0.0.1", 0, {"GET /snapshot": lambda _request: answer}) as service:
        service.start()
        url = f"http://127.0.0.1:{service.server_port}"
        worker = Worker({"worker_id": "a:1", "kv": {"snapshot_url": url}}, pod="a", node="lab1")

        assert snapshot_failure(worker) == (reason and f"snapshot HTTP GET failed for worker a:1: {url}: {reason}")


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/v1/chat/completions", b"{", 400, "the body is not JSON"),
        ("/v1/chat/completions", b"[]", 400, "the body is not a JSON object"),
        ("/v1/chat/completions", b'{"messages": []}', 400, "messages: a non-empty list is required"),
        ("/v1/chat/completions", b'{"messages": [{"role": "user"}]}', 400, "messages[0].content: a text is required"),
        ("/v1/chat/completions", b'{"messages": [{"content": "a"}]}', 400, "messages[0].role: a text is required"),
        ("/v1/completions", b"{}", 400, "prompt: a non-empty text is required"),
        ("/v1/completions", b'{"prompt": "a", "max_tokens": 0}', 400, "max_tokens: a number from 1 is required"),
        (
            "/v1/completions",
            b'{"prompt": "a", "model": "b"}',
            404,
            "The model `b` does not exist. Registered: lab-model",
        ),
        ("/v1/embeddings", b"{}", 404, "POST /v1/embeddings: no such endpoint"),
    ],
)
def test_bad_requests_are_answered_in_words(
    aggregated: Site, path: str, body: bytes, status: int, message: str
) -> None:
    answer = call(aggregated.router_port, path, raw=body)

    assert answer[0] == status
    assert message in answer[1]["error"]["message"]


def test_a_prompt_beyond_the_context_is_refused(aggregated: Site) -> None:
    status, answer = aggregated.ask({"prompt": "word " * 20}, "/v1/completions")

    assert status == 400
    assert "The input (21 tokens) is longer than the model's context length (10 tokens)" in answer["error"]["message"]
