# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Paths, what is missing, and what the API server says."""

from __future__ import annotations

import http.server
import json
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.kube import KubeError, collection, connect, path_of
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.cluster_double import cluster

pytest.importorskip("kubernetes")

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "router", "namespace": "infera"}}
CONFLICT = {
    "kind": "Status",
    "message": 'Apply failed with 1 conflict: conflict with "kubectl-set"',
    "reason": "Conflict",
    "code": 409,
}


class Server(http.server.BaseHTTPRequestHandler):
    """An API server on loopback that answers each path as the test says, and keeps what it was asked."""

    answers: dict[str, tuple[int, Any]] = {}
    asked: list[tuple[str, str, str, Any]] = []

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        Server.asked.append(
            (self.command, self.path, self.headers.get("Content-Type", ""), json.loads(body) if body else None)
        )
        status, answer = Server.answers.get(self.path.partition("?")[0], (404, {"message": "not found", "code": 404}))
        data = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_PATCH = do_DELETE = _answer

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


def kubeconfig(folder: Path, port: int, **user: str) -> str:
    path = folder / "kubeconfig"
    path.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                "users": [{"name": "u", "user": user}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    return str(path)


@pytest.fixture(name="port")
def _port() -> Iterator[int]:
    Server.answers, Server.asked = {}, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_paths_are_those_of_the_api() -> None:
    assert path_of(DEPLOYMENT) == "/apis/apps/v1/namespaces/infera/deployments/router"
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "infera"}}
    assert path_of(namespace) == "/api/v1/namespaces/infera"
    assert collection("v1", "Node", "ignored") == "/api/v1/nodes"
    assert collection("v1", "Pod") == "/api/v1/pods"


def test_what_is_not_there_is_none_and_deleting_it_again_is_no_error() -> None:
    empty, _double = cluster()

    assert empty.get(path_of(DEPLOYMENT)) is None
    empty.delete(path_of(DEPLOYMENT))


def test_an_apply_goes_server_side_as_a_dry_run_under_the_managers_name(port: int, tmp_path: Path) -> None:
    Server.answers = {path_of(DEPLOYMENT): (200, {**DEPLOYMENT, "spec": {"replicas": 1}})}

    answer = connect(kubeconfig(tmp_path, port)).apply(DEPLOYMENT, "infera", force=True, dry_run=True)

    assert answer["spec"] == {"replicas": 1}
    method, path, content_type, body = Server.asked[0]
    assert (method, content_type, body) == ("PATCH", "application/apply-patch+yaml", DEPLOYMENT)
    assert path == f"{path_of(DEPLOYMENT)}?fieldManager=infera&force=true&dryRun=All"


def test_objects_are_listed_by_label_and_a_log_is_text(port: int, tmp_path: Path) -> None:
    Server.answers = {
        "/api/v1/namespaces/infera/pods": (200, {"items": [{"metadata": {"name": "p"}}]}),
        "/api/v1/namespaces/infera/pods/p/log": (200, "first\nlast\n"),
    }
    api = connect(kubeconfig(tmp_path, port))

    assert api.list("v1", "Pod", "infera", "a=b") == [{"metadata": {"name": "p"}}]
    assert api.log("infera", "p", "main", 20) == "first\nlast\n"
    assert api.log("infera", "gone", "", 20) == ""
    assert Server.asked[0][1].endswith("pods?labelSelector=a%3Db")
    assert Server.asked[1][1].endswith("log?container=main&tailLines=20")


def test_a_conflict_is_told_in_the_servers_words_with_the_way_out(port: int, tmp_path: Path) -> None:
    Server.answers = {path_of(DEPLOYMENT): (409, CONFLICT)}

    with pytest.raises(KubeError) as caught:
        connect(kubeconfig(tmp_path, port)).apply(DEPLOYMENT, "infera")

    assert caught.value.status == 409
    assert str(caught.value) == (
        'Apply failed with 1 conflict: conflict with "kubectl-set". '
        "Undo that change, or allow to take the field over (force_conflicts)."
    )


def test_an_answer_that_is_no_status_is_given_as_it_is(port: int, tmp_path: Path) -> None:
    Server.answers = {"/api/v1/nodes": (502, "bad gateway")}

    with pytest.raises(KubeError, match="bad gateway"):
        connect(kubeconfig(tmp_path, port)).list("v1", "Node")


def test_an_api_that_does_not_answer_is_one_line(tmp_path: Path) -> None:
    # Port 9 of loopback: nobody listens there.
    with pytest.raises(KubeError, match="^The API does not answer: ") as caught:
        connect(kubeconfig(tmp_path, 9)).list("v1", "Node")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "{}", "clusters: []"])
def test_a_file_that_is_no_kubeconfig_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "broken"
    path.write_text(text)

    with pytest.raises(KubeError, match="broken is no usable kubeconfig: "):
        connect(str(path))


def test_an_error_about_a_kubeconfig_does_not_show_its_secret(tmp_path: Path) -> None:
    path = Path(kubeconfig(tmp_path, 9, **{"client-key-data": "hunter2", "client-certificate-data": "hunter2"}))
    path.write_text(path.read_text().replace("http://", "https://"))

    with pytest.raises(KubeError, match="is no usable kubeconfig") as caught:
        connect(str(path))
    assert "hunter2" not in str(caught.value)
