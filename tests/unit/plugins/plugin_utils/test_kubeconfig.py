# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

import pytest
import yaml
from ansible_collections.infera.baremetal.plugins.plugin_utils.kubeconfig import usable_from_elsewhere

K3S = """
apiVersion: v1
kind: Config
clusters: [{name: default, cluster: {certificate-authority-data: Q0E=, server: "https://127.0.0.1:6443"}}]
users: [{name: default, user: {client-key-data: S0VZ}}]
contexts: [{name: default, context: {cluster: default, user: default}}]
current-context: default
"""


def test_points_at_the_server_and_is_named_after_the_cluster():
    config = yaml.safe_load(usable_from_elsewhere(K3S, server="https://10.1.0.1:6443", name="east"))

    assert config["clusters"] == [
        {"name": "east", "cluster": {"certificate-authority-data": "Q0E=", "server": "https://10.1.0.1:6443"}}
    ]
    assert config["users"] == [{"name": "east", "user": {"client-key-data": "S0VZ"}}]
    assert config["contexts"] == [{"name": "east", "context": {"cluster": "east", "user": "east"}}]
    assert config["current-context"] == "east"


@pytest.mark.parametrize("text", ["", "a: [", "[]", "clusters: []", "clusters: [{cluster: {server: hunter2}}]"])
def test_what_is_no_kubeconfig_is_refused_without_its_text(text):
    with pytest.raises(ValueError) as caught:
        usable_from_elsewhere(text, server="https://10.1.0.1:6443", name="east")
    assert "hunter2" not in str(caught.value)
