# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The stand-in's reader takes what the role writes as YAML says it, and refuses what it does not know."""

from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.tests.lab.k3s.standin.configfile import ConfigError, parse

AS_TO_NICE_YAML_WRITES = """\
data-dir: /mnt/data/k3s
node-name: lab1
node-label:
-   infera.ai/rack=a
-   'on: weekends'
write-kubeconfig-mode: '0600'
disable:
- traefik
- servicelb
secrets-encryption: false
kubelet-arg: []
flannel-iface: eth0
"""


def test_the_form_that_the_role_writes():
    assert parse(AS_TO_NICE_YAML_WRITES) == {
        "data-dir": "/mnt/data/k3s",
        "node-name": "lab1",
        "node-label": ["infera.ai/rack=a", "on: weekends"],
        "write-kubeconfig-mode": "0600",
        "disable": ["traefik", "servicelb"],
        "secrets-encryption": "false",
        "flannel-iface": "eth0",
    }


def test_json_is_yaml_too():
    assert parse('{"tls-san": ["a", "b"], "cluster-init": true, "https-listen-port": 6443, "node-ip": null}') == {
        "tls-san": ["a", "b"],
        "cluster-init": "true",
        "https-listen-port": "6443",
        "node-ip": "",
    }


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("https://10.0.0.1:6443", "https://10.0.0.1:6443"),
        ("key=value:NoSchedule", "key=value:NoSchedule"),
        ("with#hash", "with#hash"),
        ("before # a comment", "before"),
        ("'single ''quoted'' # text'", "single 'quoted' # text"),
        (r'"tab\tand \"quotes\" and \u00e9"', 'tab\tand "quotes" and \u00e9'),
        ("True", "true"),
        ("0600", "0600"),
        ("~", ""),
        ("[a, \"b, c\", 'd']", ["a", "b, c", "d"]),
    ],
)
def test_values(text, value):
    assert parse(f"key: {text}\n") == {"key": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b\n- c\n", "line 2: a list item without a key"),
        ("a:\n  b: c\n", "line 2: expected `key: value`"),
        ("a: b\na: c\n", "line 2: a is given twice"),
        ("a: 'b\n", "line 1: the single quote is not closed"),
        ('a: "b\n', "line 1: the double quote is not closed"),
        ("a: |\n", "line 1: | may not start"),
        ("a: &b c\n", "line 1: & may not start"),
        ("a: b: c\n", "line 1: a mapping is not a value"),
        ("a: [b\n", "line 1: a flow list must end on its line"),
        ("a:\n\t- b\n", "line 2: a tab indents"),
        ("just text\n", "line 1: expected `key: value`"),
        ('{"a": ', "not valid JSON"),
        ('{"a": {"b": 1}}', "only scalars and lists"),
    ],
)
def test_what_is_outside_is_refused_with_its_line(text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text)
    assert message in str(caught.value)


def test_comments_and_a_document_start_are_skipped():
    assert parse("---\n# a comment\n\nkey: value\n") == {"key": "value"}
