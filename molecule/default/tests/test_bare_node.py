# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Roles that need no cluster leave a node as they found it, and say on the controller what they saw."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

RECORD = Path(os.environ["MOLECULE_PROJECT_DIRECTORY"]) / "artifacts/lab/record.json"


def test_nothing_is_installed(host):
    for path in ("/etc/rancher", "/usr/local/bin/k3s", "/var/lib/rancher", "/mnt/data/k3s", "/var/lib/kubelet"):
        assert not host.file(path).exists
    assert host.check_output("systemctl list-unit-files --no-legend 'k3s*'; true") == ""


def test_no_listener_stays(host):
    # Those that answered for k3s's ports while the hosts asked each other.
    for socket in ("tcp://6443", "tcp://10250", "udp://8472"):
        assert not host.socket(socket).is_listening
    assert host.run("pgrep -af '[p]ort_probe'").stdout == ""


def test_record_is_private_and_knows_the_host(host):
    assert stat.S_IMODE(RECORD.stat().st_mode) == 0o600
    preflight = json.loads(RECORD.read_text())["preflight"]
    assert host.check_output("hostname") in preflight["hosts"]
    assert [finding for finding in preflight["findings"] if finding["severity"] == "error"] == []
