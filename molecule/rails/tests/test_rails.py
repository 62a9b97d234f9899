# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The rails stage proves all eight rails of both nodes, keeps what it saw on the controller, and leaves the nodes as they were."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

ARTIFACTS = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "artifacts/lab"


def test_every_rail_has_its_partner_both_ways(host):
    fabric = json.loads((ARTIFACTS / "record.json").read_text())["rails"]["fabric"]

    (pair,) = fabric["pairs"]
    assert {pair["a"], pair["b"]} == {"lab1", "lab2"}
    assert (pair["verdict"], pair["fit"]) == ("full", True)
    assert [(rail["a_rail"], rail["b_rail"], rail["ok"]) for rail in pair["rails"]] == [
        (index, index, True) for index in range(8)
    ]


def test_rails_agree_with_the_interfaces_of_the_node(host):
    rails = json.loads((ARTIFACTS / "record.json").read_text())["rails"]["hosts"][host.check_output("hostname")][
        "rails"
    ]

    for rail in rails:
        assert rail["address"] in host.check_output("ip -6 -o address show dev %s", rail["netdev"])
        assert rail["gid_index"] == 1


def test_page_is_private_and_needs_no_network(host):
    page = ARTIFACTS / "fabric.html"

    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    text = page.read_text()
    assert "lab1" in text and "lab2" in text
    assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text


def test_nothing_of_the_nodes_routing_was_changed(host):
    rules = host.check_output("ip -6 rule show")
    assert rules.count("from fd00:77:") == 8
    assert host.run("pgrep -af '[r]ail_probe'").stdout == ""
