# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""`k3s agent`: find the server, make sure that it is the right one, then join."""

from __future__ import annotations

from . import files, node, tokens
from .api import Api, Unreachable
from .children import Children
from .log import log
from .notify import notify_ready
from .server import CLUSTER_INFO, given_token
from .settings import Settings

RETRY_SECONDS = 2


def run(children: Children, settings: Settings) -> None:
    """Run until stopped. Raises tokens.TokenError (a malformed token), ChildDied, Stopped."""
    token = tokens.parse(given_token(settings))
    files.folder(settings.data_dir / "agent")
    cluster: dict[str, str] = {}
    while not cluster:
        cluster = _validated_cluster(settings, token)
        if not cluster:
            children.pause(RETRY_SECONDS)
    node.start_runtime(children, settings)
    api = Api(settings.server, cluster["server-ca"].encode(), token.password)
    children.wait_for("node password", lambda: node.password_accepted(api, settings.node_name))
    node.start_kubelet(children, settings, cluster, settings.server, token.password)
    node.join(children, settings, api, cluster)
    log("info", "k3s agent is up and running")
    notify_ready()
    node.keep_routes(children, settings, api)


def _validated_cluster(settings: Settings, token: tokens.Token) -> dict[str, str]:
    """What the server publishes, once its CA and our token are seen to be right; else empty, with k3s's words in the log.

    As k3s does, an agent with a wrong token does not give up: its unit stays `activating`.
    """
    path = f"/api/v1/namespaces/kube-public/configmaps/{CLUSTER_INFO}"
    try:
        status, document = Api(settings.server, None).call("GET", path)
        if status != 200:
            raise Unreachable(f"{settings.server}{path}: {status}")
        cluster: dict[str, str] = document["data"]
        ca_pem = cluster["server-ca"].encode()
        token.check_ca(ca_pem)
    except (Unreachable, tokens.TokenError) as error:
        reason = f"failed to get CA certs: {error}" if isinstance(error, Unreachable) else str(error)
        log("error", f"Failed to validate connection to cluster at {settings.server}: {reason}")
        return {}
    if not token.ca_hash:
        log(
            "warning",
            "Cluster CA certificate is not trusted by the host CA bundle, but the token does not include a CA hash. "
            "Use the full token from the server's node-token file to enable Cluster CA validation.",
        )
    try:
        status, _answer = Api(settings.server, ca_pem, token.password).call("GET", "/readyz")
    except Unreachable as error:
        log("info", f"Waiting to retrieve agent configuration; server is not ready: {error}")
        return {}
    if status != 200:
        log(
            "info",
            f"Waiting to retrieve agent configuration; server is not ready: {settings.server}/readyz: {status} {_REASONS.get(status, '')}".strip(),
        )
        return {}
    return cluster


_REASONS = {401: "Unauthorized", 403: "Forbidden", 500: "Internal Server Error", 503: "Service Unavailable"}
