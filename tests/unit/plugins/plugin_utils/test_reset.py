# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
from __future__ import annotations

from ansible_collections.infera.baremetal.plugins.plugin_utils.reset import describe, reset_findings, reset_notes

EMPTY = {"units": [], "processes": [], "mounts": [], "interfaces": [], "routes": [], "rules": [], "paths": []}
FULL = {
    **EMPTY,
    "units": ["k3s"],
    "processes": ["1 a", "2 b"],
    "mounts": ["/run/netns/cni-1"],
    "interfaces": ["cni0"],
    "rules": ["x"],
    "paths": ["/run/netns/cni-1", "/var/log/pods/a", "/var/log/pods", "/data/k3s"],
}
GIVEN = {
    "cluster": "lab",
    "confirm": "",
    "servers": ["lab1"],
    "inventories": ["inventories/lab"],
    "limit": "",
    "check": False,
}


def survey(removed, *findings):
    return {"removed": removed, "findings": list(findings)}


def finding(**changes):
    return {"code": "c", "severity": "error", "message": "m", "fix": "f", "where": "/data", **changes}


def test_without_confirmation_it_says_what_would_go_from_where_and_the_command():
    found = reset_findings({"lab1": survey(FULL), "lab2": survey(EMPTY)}, GIVEN)

    assert [entry["code"] for entry in found] == ["reset_not_confirmed"]
    assert (
        "lab1 (server): unit k3s, 2 processes, 1 mount, 1 iptables entry, cni0, /var/log/pods, /data/k3s"
        in found[0]["message"]
    )
    assert "lab2" not in found[0]["message"]
    assert found[0]["fix"].endswith(": ansible-playbook -i inventories/lab playbooks/reset.yml -e reset_confirm=lab")


def test_the_command_keeps_the_limit_and_is_quoted():
    given = {**GIVEN, "limit": "lab2:&k3s_agent", "inventories": ["my inventory"]}

    fix = reset_findings({"lab2": survey(FULL)}, given)[0]["fix"]

    assert "ansible-playbook -i 'my inventory' --limit 'lab2:&k3s_agent' playbooks/reset.yml" in fix


def test_another_clusters_name_is_no_confirmation():
    found = reset_findings({"lab1": survey(FULL)}, {**GIVEN, "confirm": "prod"})

    assert found[0]["message"].startswith("reset_confirm is 'prod', not 'lab'.")


def test_confirmed_checked_or_fresh_nothing_is_asked():
    assert reset_findings({"lab1": survey(FULL)}, {**GIVEN, "confirm": "lab"}) == []
    assert reset_findings({"lab1": survey(FULL)}, {**GIVEN, "check": True}) == []
    assert reset_findings({"lab1": survey(EMPTY)}, GIVEN) == []


def test_what_is_in_the_way_on_a_host_is_told_with_its_name():
    found = reset_findings({"lab1": survey(FULL), "lab2": survey(EMPTY, finding())}, {**GIVEN, "confirm": "lab"})

    assert [(entry["where"], entry["severity"]) for entry in found] == [("lab2:/data", "error")]


def node(**changes):
    return {
        "host": "lab2",
        "name": "gpu two",
        "kubeconfig": "artifacts/lab/kubeconfig",
        "cluster": ["lab1", "lab2", "lab3"],
        "servers": ["lab1"],
        "hosts": ["lab2"],
        **changes,
    }


def test_an_agent_alone_leaves_its_node_object():
    notes = reset_notes([finding(severity="info")], node())

    assert [(note["code"], note["where"]) for note in notes] == [
        ("c", "lab2:/data"),
        ("reset_node_object_stays", "lab2"),
    ]
    assert "kubectl --kubeconfig artifacts/lab/kubeconfig delete node 'gpu two'" in notes[1]["fix"]


def test_with_the_server_gone_too_nothing_is_left_to_do():
    assert reset_notes([], node(hosts=["lab1", "lab2", "lab3"])) == []
    assert reset_notes([], node(host="lab1", hosts=["lab1", "lab2", "lab3"])) == []


def test_a_server_alone_leaves_its_agents():
    notes = reset_notes([], node(host="lab1", hosts=["lab1", "lab2"]))

    assert [(note["code"], note["message"].split(" ")[0]) for note in notes] == [("reset_agents_stay", "lab3")]


def test_nothing_to_describe_is_an_empty_text():
    assert describe(EMPTY) == ""
