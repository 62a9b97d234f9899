# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Flags, environment and config.yaml are read as k3s reads them."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.tests.lab.k3s.standin import flags, settings


def test_every_honoured_flag_is_a_flag_of_k3s():
    assert (flags.HONOURED | flags.BOOLEANS | flags.LISTS | set(flags.ALIASES.values())) <= flags.known("server")


def test_an_unknown_flag_is_fatal():
    with pytest.raises(settings.UsageError, match="flag provided but not defined: -kublet-arg"):
        settings.parse_command_line("server", ["--kublet-arg=x"])


def test_a_server_flag_is_unknown_to_an_agent():
    with pytest.raises(settings.UsageError, match="flag provided but not defined: -disable"):
        settings.parse_command_line("agent", ["--disable=traefik"])


def test_the_forms_of_a_flag():
    arguments = ["--data-dir", "/a", "-d=/b", "--debug", "--tls-san=x", "--tls-san", "y", "--selinux=false"]

    assert settings.parse_command_line("server", arguments) == {
        "data-dir": ["/b"],
        "debug": ["true"],
        "tls-san": ["x", "y"],
        "selinux": ["false"],
    }


def test_an_unknown_key_is_skipped_with_the_words_of_k3s(capsys):
    values = settings.values_of_file("agent", "kublet-arg: x\ndisable: [traefik]\nnode-name: a\n")

    assert values == {"node-name": ["a"]}
    log = capsys.readouterr().err
    assert 'level=warning msg="Unknown flag --kublet-arg found in config.yaml, skipping\\n"' in log
    assert "Unknown flag --disable found in config.yaml, skipping" in log


def test_the_command_line_wins_over_the_file_and_the_file_over_the_environment(tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text("data-dir: /file\nnode-name: file\ntls-san: [file]\n")
    environment = {"K3S_DATA_DIR": "/environment", "K3S_NODE_NAME": "environment", "K3S_TOKEN_FILE": "/environment"}

    loaded = settings.load("server", ["-c", str(config), "--node-name=Line"], environment)

    assert (str(loaded.data_dir), loaded.node_name, loaded.token_file) == ("/file", "line", "/environment")
    assert loaded.tls_sans == ("file",)


def test_a_flag_without_effect_is_named(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text("secrets-encryption: true\n")

    settings.load("server", ["-c", str(config)], {})

    assert "--secrets-encryption is accepted and has no effect" in capsys.readouterr().err


def test_drop_ins_are_not_lost_in_silence(tmp_path):
    (tmp_path / "config.yaml.d").mkdir()
    (tmp_path / "config.yaml.d" / "10.yaml").write_text("node-name: a\n")

    with pytest.raises(settings.UsageError, match="config.yaml.d"):
        settings.load("server", ["-c", str(tmp_path / "config.yaml")], {})


def test_defaults_are_those_of_k3s():
    made = settings.from_values("server", {})

    assert made.data_dir == Path("/var/lib/rancher/k3s")
    assert (made.cluster_cidr, made.service_cidr) == ("10.42.0.0/16", "10.43.0.0/16")
    assert (made.kubernetes_service_ip, made.cluster_dns) == ("10.43.0.1", "10.43.0.10")
    assert (str(made.kubeconfig), made.kubeconfig_mode) == ("/etc/rancher/k3s/k3s.yaml", 0o600)


@pytest.mark.parametrize(
    ("role", "values", "message"),
    [
        ("agent", {"token": ["x"]}, "--server is required"),
        ("agent", {"server": ["https://a:6443"]}, "--token is required"),
        ("server", {"server": ["https://a:6443"]}, "knows one server"),
        ("server", {"service-cidr": ["10.43.0.0/16,fd00::/112"]}, "invalid service-cidr"),
        ("server", {"write-kubeconfig-mode": ["rw"]}, "invalid write-kubeconfig-mode"),
    ],
)
def test_values_that_do_not_fit(role, values, message):
    with pytest.raises(settings.UsageError, match=message):
        settings.from_values(role, values)


def test_component_arguments_become_flags():
    made = settings.from_values("server", {"kubelet-arg": ["max-pods=20", "v=4"]})

    assert made.arguments_for("kubelet") == ["--max-pods=20", "--v=4"]
    assert made.arguments_for("kube-proxy") == []
