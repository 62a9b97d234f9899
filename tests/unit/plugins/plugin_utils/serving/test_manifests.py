# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The objects: what must hold is asserted by hand; the golden files show a change of output in review.

UPDATE_GOLDEN=1 in the environment writes the golden files anew.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.deployment import parse_deployment
from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.manifests import (
    build_manifests,
    merge_arguments,
    startup_budget,
    worker_name,
)

GOLDEN = Path(__file__).parent / "golden"
LAB_RECIPES = Path(__file__).parents[4] / "lab" / "recipes"
DIGEST = "sha256:" + "0123456789abcdef" * 4

WORKER_1 = {"node": "gpu1", "address": "10.1.0.1", "model_dir": "/mnt/models", "libionic": "/opt/infera/libionic.so"}
WORKER_2 = {"node": "gpu2", "address": "10.1.0.2", "model_dir": "/mnt/nvme/models", "libionic": ""}
QWEN: dict[str, Any] = {
    "recipe": "qwen3-0.6b",
    "router": {"node": "gpu1", "model_dir": "/mnt/models"},
    "prefill": [WORKER_1],
    "decode": [WORKER_2],
    "aggregated": [WORKER_1, WORKER_2],
}
LAB: dict[str, Any] = {
    **QWEN,
    "recipe": "lab",
    "recipe_paths": [str(LAB_RECIPES)],
    "images": {"engine": f"docker.io/lab/engine:v1@{DIGEST}", "overlay": f"docker.io/lab/overlay:v1@{DIGEST}"},
}


class _Indented(yaml.SafeDumper):
    """Writes lists as yamllint wants them, indented and without aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        return True


def objects(**changes: Any) -> dict[tuple[str, str], dict[str, Any]]:
    built = build_manifests(parse_deployment({**copy.deepcopy(QWEN), **changes}))
    return {(each["kind"], each["metadata"]["name"]): each for each in built}


def pod(name: str, **changes: Any) -> dict[str, Any]:
    return objects(**changes)["Deployment", name]["spec"]["template"]["spec"]


def main(name: str, **changes: Any) -> dict[str, Any]:
    return pod(name, **changes)["containers"][0]


def environment(container: dict[str, Any]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def value_of(container: dict[str, Any], flag: str) -> str:
    return container["args"][container["args"].index(flag) + 1]


@pytest.mark.parametrize("shape", ["disaggregated", "aggregated"])
@pytest.mark.parametrize("described", [QWEN, LAB], ids=["qwen3-0.6b", "lab"])
def test_golden(described: dict[str, Any], shape: str) -> None:
    file = GOLDEN / f"{described['recipe']}-{shape}.yml"
    built = build_manifests(parse_deployment({**described, "shape": shape}))
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(
            yaml.dump(built, Dumper=_Indented, sort_keys=False, explicit_start=True, width=140), encoding="utf-8"
        )

    assert yaml.safe_load(file.read_text(encoding="utf-8")) == built


def test_the_objects_in_their_order() -> None:
    assert list(objects()) == [
        ("Namespace", "infera"),
        ("ServiceAccount", "infera-disc"),
        ("Role", "infera-disc"),
        ("RoleBinding", "infera-disc"),
        ("Service", "infera-router"),
        ("Deployment", "infera-router"),
        ("Deployment", "infera-prefill-gpu1"),
        ("Deployment", "infera-decode-gpu2"),
    ]


def test_discovery_may_do_with_pods_what_it_has_to_and_no_more() -> None:
    rules = objects()["Role", "infera-disc"]["rules"]

    assert rules == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]}]


def test_only_workers_are_on_the_host_network() -> None:
    assert "hostNetwork" not in pod("infera-router")
    for name in ("infera-prefill-gpu1", "infera-decode-gpu2"):
        assert (pod(name)["hostNetwork"], pod(name)["dnsPolicy"]) == (True, "ClusterFirstWithHostNet")


def test_each_pod_is_bound_to_its_node() -> None:
    nodes = {
        name: pod(name)["nodeSelector"]["kubernetes.io/hostname"]
        for name in ("infera-router", "infera-prefill-gpu1", "infera-decode-gpu2")
    }

    assert nodes == {"infera-router": "gpu1", "infera-prefill-gpu1": "gpu1", "infera-decode-gpu2": "gpu2"}


@pytest.mark.parametrize("name", ["infera-router", "infera-prefill-gpu1", "infera-decode-gpu2"])
def test_everything_runs_through_the_launcher_of_an_overlay_that_is_copied_first(name: str) -> None:
    overlay = pod(name)["initContainers"][0]

    assert overlay["command"] == ["cp", "-a", "/payload/.", "/overlay/"]
    assert main(name)["command"][:3] == ["/overlay/bin/infera-exec", "python3", "-m"]
    assert {"name": "overlay", "mountPath": "/overlay"} in overlay["volumeMounts"]
    assert {"name": "overlay", "mountPath": "/overlay"} in main(name)["volumeMounts"]


@pytest.mark.parametrize("name", ["infera-router", "infera-prefill-gpu1", "infera-decode-gpu2"])
def test_images_are_pinned_and_never_pulled_unless_allowed(name: str) -> None:
    for allow_pull, policy in ((False, "Never"), (True, "IfNotPresent")):
        for container in (
            pod(name, allow_pull=allow_pull)["initContainers"] + pod(name, allow_pull=allow_pull)["containers"]
        ):
            assert "@sha256:" in container["image"]
            assert container["imagePullPolicy"] == policy


def test_a_worker_has_the_whole_rdma_set() -> None:
    container = main("infera-prefill-gpu1")
    volumes = {volume["name"]: volume for volume in pod("infera-prefill-gpu1")["volumes"]}

    assert container["securityContext"] == {"privileged": True, "capabilities": {"add": ["IPC_LOCK", "SYS_PTRACE"]}}
    assert volumes["infiniband"]["hostPath"] == {"path": "/dev/infiniband", "type": "Directory"}
    assert volumes["libionic"]["hostPath"] == {"path": "/opt/infera/libionic.so", "type": "File"}
    assert volumes["shm"]["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Gi"}
    assert {"name": "infiniband", "mountPath": "/dev/infiniband"} in container["volumeMounts"]
    assert {"name": "libionic", "mountPath": "/host-libionic/libionic.so", "readOnly": True} in container[
        "volumeMounts"
    ]
    assert environment(container)["INFERA_REQUIRE_NATIVE"] == "mooncake"


def test_no_libionic_is_mounted_while_its_path_is_unset() -> None:
    decode = pod("infera-decode-gpu2")

    assert "libionic" not in [volume["name"] for volume in decode["volumes"]]
    assert "libionic" not in [mount["name"] for mount in decode["containers"][0]["volumeMounts"]]


def test_every_volume_is_mounted_and_every_mount_has_a_volume() -> None:
    for (kind, name), each in objects().items():
        if kind == "Deployment":
            spec = each["spec"]["template"]["spec"]
            mounted = {mount["name"] for container in spec["containers"] for mount in container["volumeMounts"]}
            assert mounted == {volume["name"] for volume in spec["volumes"]}, name


def test_the_models_are_where_each_node_has_them() -> None:
    paths = {
        name: next(volume["hostPath"]["path"] for volume in pod(name)["volumes"] if volume["name"] == "models")
        for name in ("infera-router", "infera-prefill-gpu1", "infera-decode-gpu2")
    }

    assert paths == {
        "infera-router": "/mnt/models",
        "infera-prefill-gpu1": "/mnt/models",
        "infera-decode-gpu2": "/mnt/nvme/models",
    }
    assert value_of(main("infera-decode-gpu2"), "--model-path") == "/models/Qwen3-0.6B"
    assert value_of(main("infera-router"), "--router-tokenizer-path") == "/models/Qwen3-0.6B"


def test_a_worker_advertises_the_address_that_was_chosen_and_binds_to_no_wildcard() -> None:
    container = main("infera-decode-gpu2")

    assert environment(container)["SGLANG_HOST_IP"] == environment(container)["HOST_IP"] == "10.1.0.2"
    assert environment(container)["POD_IP"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert value_of(container, "--host") == "$(POD_IP)"
    assert "0.0.0.0" not in container["args"]


def test_the_pods_address_comes_before_what_refers_to_it() -> None:
    names = [entry["name"] for entry in main("infera-decode-gpu2", network="pod")["env"]]

    assert names.index("POD_IP") < names.index("SGLANG_HOST_IP")
    assert environment(main("infera-decode-gpu2", network="pod"))["SGLANG_HOST_IP"] == "$(POD_IP)"


def test_the_pod_network_takes_no_host_ports() -> None:
    spec = pod("infera-decode-gpu2", network="pod")

    assert "hostNetwork" not in spec
    assert all("hostPort" not in port for port in spec["containers"][0]["ports"])


def test_host_ports_are_declared_so_that_two_workers_never_meet_on_a_node() -> None:
    ports = {
        name: sorted(port["hostPort"] for port in main(name)["ports"])
        for name in ("infera-prefill-gpu1", "infera-decode-gpu2")
    }

    assert ports == {"infera-prefill-gpu1": [5557, 8801, 8998, 30000], "infera-decode-gpu2": [5557, 8801, 30000]}


def test_gpus_are_those_of_tensor_parallelism() -> None:
    container = main("infera-prefill-gpu1", gpu_resource="amd.com/gpu")

    assert container["resources"] == {
        "requests": {"cpu": "16", "memory": "96Gi", "amd.com/gpu": "1"},
        "limits": {"amd.com/gpu": "1"},
    }
    assert value_of(container, "--tp-size") == "1"
    assert "amd.com/gpu" not in main("infera-router")["resources"]["requests"]


@pytest.mark.parametrize("timeout", [1, 95, 1800, 7200])
def test_the_startup_budget_is_never_below_the_engines_own_timeout(timeout: int) -> None:
    deployment = parse_deployment({**QWEN, "ready_timeout": timeout})
    probe = main("infera-prefill-gpu1", ready_timeout=timeout)["startupProbe"]

    assert environment(main("infera-prefill-gpu1", ready_timeout=timeout))["INFERA_ENGINE_READY_TIMEOUT"] == str(
        timeout
    )
    assert probe["periodSeconds"] * probe["failureThreshold"] == startup_budget(deployment) >= timeout


def test_a_startup_budget_worked_out_by_hand() -> None:
    # 1800 s and a tenth, in periods of 10 s.
    assert main("infera-prefill-gpu1")["startupProbe"]["failureThreshold"] == 198


def test_readiness_never_restarts_and_the_router_has_a_probe_of_its_own() -> None:
    for name, port in (("infera-router", 8000), ("infera-decode-gpu2", 30000)):
        assert main(name)["readinessProbe"]["httpGet"] == {"path": "/health", "port": port}
        assert "livenessProbe" not in main(name)


def test_a_worker_is_replaced_in_place_and_may_finish_what_it_does() -> None:
    worker = objects()["Deployment", "infera-decode-gpu2"]["spec"]

    assert worker["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    assert worker["template"]["spec"]["terminationGracePeriodSeconds"] == 120
    assert main("infera-decode-gpu2")["lifecycle"]["preStop"]["exec"]["command"] == ["sleep", "15"]


def test_disaggregation_is_told_to_both_sides() -> None:
    for name, mode in (("infera-prefill-gpu1", "prefill"), ("infera-decode-gpu2", "decode")):
        assert value_of(main(name), "--disaggregation-mode") == mode
        assert value_of(main(name), "--disaggregation-transfer-backend") == "mooncake"
        assert value_of(main(name), "--disaggregation-bootstrap-port") == "8998"
        # Naming devices limits Mooncake to one rail.
        assert "--disaggregation-ib-device" not in main(name)["args"]


def test_an_aggregated_worker_transfers_nothing_and_has_no_privilege() -> None:
    container = main("infera-aggregated-gpu1", shape="aggregated")

    assert "--disaggregation-mode" not in container["args"]
    assert "securityContext" not in container
    assert "INFERA_REQUIRE_NATIVE" not in environment(container)


def test_nothing_waits_for_nats() -> None:
    for name in ("infera-router", "infera-prefill-gpu1", "infera-decode-gpu2"):
        assert value_of(main(name), "--request-transport") == "http"
        assert value_of(main(name), "--kv-event-transport") == "zmq"


def test_the_router_finds_the_pods_of_its_deployment() -> None:
    assert environment(main("infera-router"))["INFERA_K8S_LABEL_SELECTOR"] == "infera.amd.com/deployment=infera"
    for name, service in (("infera-prefill-gpu1", "prefill"), ("infera-decode-gpu2", "decode")):
        labels = objects()["Deployment", name]["spec"]["template"]["metadata"]["labels"]
        assert (labels["infera.amd.com/deployment"], labels["infera.amd.com/service"]) == ("infera", service)


def test_a_change_of_the_pod_changes_its_revision() -> None:
    def revision(**changes: Any) -> str:
        template = objects(**changes)["Deployment", "infera-decode-gpu2"]["spec"]["template"]
        return template["metadata"]["annotations"]["infera.baremetal/template-hash"]

    assert revision() == revision()
    assert revision() != revision(overrides={"decode": {"env": {"DEBUG": "1"}}})
    assert revision() == revision(overrides={"prefill": {"env": {"DEBUG": "1"}}})


def test_overrides_reach_their_role_only() -> None:
    override = {
        "args": ["--attention-backend", "triton", "--log-level", "debug"],
        "env": {"SGLANG_USE_AITER": None, "DEBUG": "1"},
        "resources": {"cpu": "8", "shared_memory": "32Gi"},
        "image": f"docker.io/own/engine:v9@{DIGEST}",
    }
    overrides = {"decode": override}

    decode = main("infera-decode-gpu2", overrides=overrides)

    assert value_of(decode, "--attention-backend") == "triton"
    assert decode["args"].count("--attention-backend") == 1
    assert value_of(decode, "--log-level") == "debug"
    assert "SGLANG_USE_AITER" not in environment(decode)
    assert environment(decode)["DEBUG"] == "1"
    assert decode["resources"]["requests"] == {"cpu": "8", "memory": "96Gi", "amd.com/gpu": "1"}
    assert decode["image"] == f"docker.io/own/engine:v9@{DIGEST}"
    assert main("infera-prefill-gpu1", overrides=overrides) == main("infera-prefill-gpu1")


@pytest.mark.parametrize(
    ("base", "override", "merged"),
    [
        (["--a", "1", "--b"], [], ["--a", "1", "--b"]),
        (["--a", "1", "--b"], ["--a", "2"], ["--b", "--a", "2"]),
        (["--a=1", "--b"], ["--a", "2"], ["--b", "--a", "2"]),
        (["--bs", "1", "2", "3", "--c"], ["--bs", "4"], ["--c", "--bs", "4"]),
        (["--x", "-1", "--y"], ["--y"], ["--x", "-1", "--y"]),
    ],
)
def test_an_argument_takes_the_place_of_the_same_flag(base: list[str], override: list[str], merged: list[str]) -> None:
    assert merge_arguments(base, override) == merged


def test_a_lab_worker_sees_its_sysfs_where_the_recipe_says() -> None:
    built = {
        each["metadata"]["name"]: each
        for each in build_manifests(parse_deployment(LAB))
        if each["kind"] == "Deployment"
    }
    spec = built["infera-prefill-gpu1"]["spec"]["template"]["spec"]

    assert {"name": "sysfs", "hostPath": {"path": "/opt/lab/sysfs", "type": "Directory"}} in spec["volumes"]
    assert {"name": "sysfs", "mountPath": "/host-sysfs", "readOnly": True} in spec["containers"][0]["volumeMounts"]
    assert environment(spec["containers"][0])["INFERA_SYSFS_ROOT"] == "/host-sysfs"


@pytest.mark.parametrize("node", ["gpu-1.rack2.example.com", "a" * 63])
def test_a_long_or_dotted_node_name_gives_a_name_that_pods_can_have(node: str) -> None:
    described = {**QWEN, "decode": [{**WORKER_2, "node": node}]}
    deployment = parse_deployment(described)

    name = worker_name(deployment, deployment.workers[1])

    assert len(name) <= 46
    assert "." not in name
    assert name.startswith("infera-decode-")


def test_two_node_names_that_differ_in_a_dot_give_two_names() -> None:
    names = set()
    for node in ("gpu-1.a", "gpu.1-a"):
        deployment = parse_deployment({**QWEN, "decode": [{**WORKER_2, "node": node}]})
        names.add(worker_name(deployment, deployment.workers[1]))

    assert len(names) == 2


def test_several_workers_of_a_role_are_deployments_of_their_own() -> None:
    third = {**WORKER_2, "node": "gpu3", "address": "10.1.0.3"}

    names = [name for kind, name in objects(decode=[WORKER_2, third]) if kind == "Deployment"]

    assert names == ["infera-router", "infera-prefill-gpu1", "infera-decode-gpu2", "infera-decode-gpu3"]
