# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.k3s_config import (
    config_findings,
    file_sha256,
    input_findings,
    node_findings,
)

GOOD = {
    "config": {"kubelet-arg": ["max-pods=50"]},
    "data_dir": "/data/k3s",
    "node_ip": "10.1.0.1",
    "flannel_iface": "enp9s0",
    "node_name": "gpu1",
    "version": "v1.36.2+k3s1",
    "binary_sha256": "ab" * 32,
    "token": "",
    "server": "gpu1",
}


def codes(findings):
    return [finding.code for finding in findings]


def test_good_input_has_no_findings():
    assert input_findings(GOOD, server=True) == []
    assert input_findings(GOOD, server=False) == []


def test_an_agent_cannot_join_a_server_of_which_only_the_name_is_known():
    left_out = {**GOOD, "server": "gpu9", "server_in_run": False, "server_address": ""}

    (finding,) = input_findings(left_out, server=False)
    assert finding.code == "k3s_server_unknown"
    assert "gpu9" in finding.message and "without --limit" in finding.fix
    assert input_findings({**left_out, "server_address": "10.1.0.9"}, server=False) == []
    assert input_findings({**left_out, "server_in_run": True}, server=False) == []
    assert input_findings(left_out, server=True) == []


def test_a_misspelt_key_is_refused_with_the_nearest_one():
    (finding,) = config_findings({"kublet-arg": []}, server=True)

    assert finding.code == "k3s_config_unknown"
    assert finding.where == "k3s_config: kublet-arg"
    assert "Did you mean kubelet-arg?" in finding.fix


@pytest.mark.parametrize(
    ("key", "server", "expected"),
    [
        ("tls-san", True, []),
        ("tls-san+", True, []),
        ("tls-san", False, ["k3s_config_server_key"]),
        ("data-dir", True, ["k3s_config_owned"]),
        ("token", False, ["k3s_config_owned"]),
        ("zzz", True, ["k3s_config_unknown"]),
    ],
)
def test_keys(key, server, expected):
    assert codes(config_findings({key: 1}, server)) == expected


def test_an_allowed_key_passes():
    assert config_findings({"brand-new": 1}, server=True, allowed=["brand-new"]) == []


@pytest.mark.parametrize("config", ["a: 1", ["a"], 3])
def test_a_config_that_is_no_mapping_is_one_finding(config):
    assert len(config_findings(config, server=True)) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"data_dir": ""}, "k3s_data_dir_unset"),
        ({"data_dir": "data/k3s"}, "k3s_data_dir_form"),
        ({"data_dir": "/data/../k3s"}, "k3s_data_dir_form"),
        ({"data_dir": "/data/my k3s"}, "k3s_data_dir_form"),
        ({"data_dir": "/"}, "k3s_data_dir_form"),
        ({"node_ip": ""}, "k3s_node_ip"),
        ({"node_ip": "0.0.0.0"}, "k3s_node_ip"),
        ({"node_ip": "127.0.0.1"}, "k3s_node_ip"),
        ({"flannel_iface": ""}, "k3s_flannel_iface"),
        ({"node_name": "GPU_1"}, "k3s_node_name"),
        ({"version": "1.36"}, "k3s_version_form"),
        ({"binary_sha256": "abc"}, "k3s_sha256"),
        ({"airgap_archive": "a.tar", "airgap_sha256": ""}, "k3s_sha256"),
        ({"token": "two words"}, "k3s_token_characters"),
        ({"node_labels": {"a b": "c"}}, "k3s_node_label"),
        ({"node_labels": {"tier": None}}, "k3s_node_label"),
        ({"node_labels": "oops"}, "k3s_not_a_mapping"),
        ({"node_taints": ["gpu"]}, "k3s_node_taint"),
        ({"disable": ["treafik"]}, "k3s_disable_unknown"),
        ({"cluster_cidr": "10.99.0.0/99"}, "k3s_cidr"),
        ({"cluster_cidr": ""}, "k3s_cidr"),
        ({"registries": "oops"}, "k3s_not_a_mapping"),
        ({"environment": {"A": "x\ny"}}, "k3s_environment"),
        ({"environment": {"B C": "1"}}, "k3s_environment"),
        ({"ready_timeout": "soon"}, "k3s_ready_timeout"),
        ({"ready_timeout": "0"}, "k3s_ready_timeout"),
        ({"cluster_name": "../x"}, "cluster_name_invalid"),
        ({"cluster_name": ""}, "cluster_name_invalid"),
        ({"token": "100%"}, "k3s_token_characters"),
        ({"token": "K10" + "ab" * 32 + "::server:x"}, "k3s_token_form"),
    ],
)
def test_bad_input(change, code):
    assert codes(input_findings({**GOOD, **change}, server=True)) == [code]


def test_good_options_pass():
    good = {
        "node_labels": {"example.com/tier": "gpu", "empty": ""},
        "node_taints": ["amd.com/gpu=present:NoSchedule", "x:NoExecute"],
        "disable": ["traefik"],
        "cluster_cidr": "10.42.0.0/16,fd00:42::/56",
        "service_cidr": "10.43.0.0/16",
        "environment": {"HTTPS_PROXY": "http://proxy.example:3128"},
        "ready_timeout": "600",
        "cluster_name": "east-1",
    }
    assert input_findings({**GOOD, **good}, server=True) == []


def test_everything_wrong_is_listed_at_once():
    findings = input_findings(
        {**GOOD, "data_dir": "", "node_ip": "x", "token": "a b", "config": {"kublet-arg": 1}}, server=True
    )

    assert set(codes(findings)) == {"k3s_data_dir_unset", "k3s_node_ip", "k3s_token_characters", "k3s_config_unknown"}


def test_a_bad_token_is_not_repeated_in_its_finding():
    (finding,) = input_findings({**GOOD, "token": "hunter2 x"}, server=True)

    assert "hunter2" not in str(finding.to_dict())


def test_an_agent_needs_a_server():
    assert codes(input_findings({**GOOD, "server": ""}, server=False)) == ["k3s_no_server"]


@pytest.mark.parametrize(("found", "code"), [(None, "k3s_artifact_missing"), ("00", "k3s_artifact_digest")])
def test_artifacts_are_compared_with_their_pins(found, code):
    file = {"path": "/srv/k3s", "sha256": "ab" * 32, "variable": "k3s_binary_sha256", "found": found}

    (finding,) = input_findings({**GOOD, "artifacts": [file]}, server=True)

    assert (finding.code, finding.where) == (code, "/srv/k3s")


def test_sha256_of_a_file_and_of_none(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")

    # FIPS 180-2, appendix B.1
    assert file_sha256(str(tmp_path / "abc")) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert file_sha256(str(tmp_path / "absent")) is None


@pytest.mark.parametrize(
    ("installed", "wanted", "expected"),
    [
        ("v1.35.1+k3s1", "v1.36.2+k3s1", []),
        ("v1.36.2+k3s1", "v1.36.2+k3s1", []),
        ("v1.36.2+k3s1", "v1.36.1+k3s1", ["k3s_downgrade"]),
        ("v1.34.9+k3s1", "v1.36.2+k3s1", ["k3s_version_skip"]),
        (None, "v1.36.2+k3s1", []),
    ],
)
def test_what_an_upgrade_may_do(installed, wanted, expected):
    assert codes(node_findings({"installed_version": installed}, wanted, "/data/k3s")) == expected


def test_the_cidrs_of_a_cluster_that_stands_cannot_change():
    node = {"installed_version": "v1.36.2+k3s1", "config": {"cluster-cidr": "10.42.0.0/16"}}

    (finding,) = node_findings(
        node, "v1.36.2+k3s1", "", {"cluster-cidr": "10.52.0.0/16", "service-cidr": "10.43.0.0/16"}
    )

    assert (finding.code, finding.where) == ("k3s_cidr_changed", "k3s_cluster_cidr")
    assert "Set k3s_cluster_cidr back to 10.42.0.0/16" in finding.fix
    assert node_findings(node, "v1.36.2+k3s1", "", {"cluster-cidr": "10.42.0.0/16"}) == []


def test_a_config_that_somebody_broke_says_nothing_of_the_cluster():
    node = {"installed_version": "v1.36.2+k3s1", "config": {"cluster-cidr": "["}}

    assert node_findings(node, "v1.36.2+k3s1", "", {"cluster-cidr": "10.52.0.0/16"}) == []


def test_the_data_dir_of_an_installed_k3s_cannot_change():
    node = {"installed_version": "v1.36.2+k3s1", "data_dir": "/var/lib/rancher/k3s"}

    (finding,) = node_findings(node, "v1.36.2+k3s1", "/data/k3s")

    assert finding.code == "k3s_data_dir_changed"
    assert "/var/lib/rancher/k3s" in finding.message
