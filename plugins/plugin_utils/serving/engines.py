# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What each engine calls the things that every deployment has: its module, its flags, its address variables.

A recipe says what a model needs; an engine says how that is spelt. Flags listed as derived come from the deployment
alone, so that no override can make a manifest subtly wrong (a role that disagrees with its group, TP that differs from
the GPUs requested).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Callable

HTTP_PORT = 30000
BOOTSTRAP_PORT = 8998
KV_SNAPSHOT_PORT = 8801
KV_EVENTS_PORT = 5557
ROUTER_PORT = 8000

# The router and the workers default to NATS for both; no broker is deployed.
TRANSPORT_ARGS = ("--request-transport", "http", "--kv-event-transport", "zmq")


@dataclass(frozen=True)
class WorkerStart:
    """What an engine has to be told: the model's path in the container, its public name, TP, role and transfer."""

    model_path: str
    served_name: str
    tensor_parallel: int
    role: str
    transfer: str


@dataclass(frozen=True)
class Engine:
    """An engine's spelling. C(address_variables) stop the engine's own scan of interfaces for a "KV host IP"."""

    name: str
    module: str
    address_variables: tuple[str, ...]
    transfers: tuple[str, ...]
    derived_flags: frozenset[str]
    arguments: Callable[[WorkerStart], list[str]]
    environment: Callable[[WorkerStart], dict[str, str]]


def _sglang_arguments(start: WorkerStart) -> list[str]:
    # SGLang binds to loopback unless told otherwise, and what it binds to is what older overlays advertise: so neither
    # the default nor 0.0.0.0, but the pod's own address.
    arguments = ["--host", "$(POD_IP)", "--port", str(HTTP_PORT), "--model-path", start.model_path]
    arguments += ["--served-model-name", start.served_name, "--tp-size", str(start.tensor_parallel), *TRANSPORT_ARGS]
    if start.role != "aggregated":
        # No --disaggregation-ib-device: Mooncake finds all devices, and naming one limits it to one rail.
        arguments += ["--disaggregation-mode", start.role, "--disaggregation-transfer-backend", start.transfer]
        arguments += ["--disaggregation-bootstrap-port", str(BOOTSTRAP_PORT)]
    return arguments


def _vllm_arguments(start: WorkerStart) -> list[str]:
    arguments = ["--host", "$(POD_IP)", "--port", str(HTTP_PORT), "--model", start.model_path]
    arguments += [
        "--served-model-name",
        start.served_name,
        "--tensor-parallel-size",
        str(start.tensor_parallel),
        *TRANSPORT_ARGS,
    ]
    if start.role != "aggregated":
        kv_role = {"prefill": "kv_producer", "decode": "kv_consumer"}[start.role]
        transfer = {"kv_connector": "MooncakeConnector", "kv_role": kv_role}
        # Without the data-parallel address the bootstrap address is 0.0.0.0 and requests hang for 480 s.
        arguments += [
            "--kv-transfer-config",
            json.dumps(transfer, separators=(",", ":")),
            "--data-parallel-address",
            "$(POD_IP)",
        ]
    return arguments


def _vllm_environment(start: WorkerStart) -> dict[str, str]:
    return {} if start.role == "aggregated" else {"VLLM_MOONCAKE_BOOTSTRAP_PORT": str(BOOTSTRAP_PORT)}


ENGINES: dict[str, Engine] = {
    engine.name: engine
    for engine in (
        Engine(
            name="sglang",
            module="infera.engine.sglang",
            address_variables=("SGLANG_HOST_IP", "HOST_IP"),
            transfers=("mooncake",),
            derived_flags=frozenset(
                {
                    "--host",
                    "--port",
                    "--model-path",
                    "--served-model-name",
                    "--tp-size",
                    "--tp",
                    "--tensor-parallel-size",
                    "--request-transport",
                    "--kv-event-transport",
                    "--disaggregation-mode",
                    "--disaggregation-transfer-backend",
                    "--disaggregation-bootstrap-port",
                }
            ),
            arguments=_sglang_arguments,
            environment=lambda start: {},
        ),
        Engine(
            name="vllm",
            module="infera.engine.vllm",
            address_variables=("VLLM_HOST_IP",),
            transfers=("mooncake",),
            derived_flags=frozenset(
                {
                    "--host",
                    "--port",
                    "--model",
                    "--served-model-name",
                    "--tensor-parallel-size",
                    "--tp",
                    "-tp",
                    "--request-transport",
                    "--kv-event-transport",
                    "--kv-transfer-config",
                    "--data-parallel-address",
                }
            ),
            arguments=_vllm_arguments,
            environment=_vllm_environment,
        ),
    )
}
