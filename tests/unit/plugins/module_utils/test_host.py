# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""host_layouts/ holds one folder a host: C(about) says what it stands for, C(files) is its root, C(links) its symlinks
(path and target), C(commands.json) what programs answer, C(expect.json) facts worked out by hand, keyed by dotted path."""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import host as module
from ansible_collections.infera.baremetal.plugins.module_utils.host import (
    Host,
    Mount,
    Wanted,
    mount_of,
    read_host,
    read_listeners,
)

LAYOUTS = Path(__file__).parent / "host_layouts"
PORTS = ("6443/tcp", "10250/tcp", "8472/udp", "30000/tcp", "8998/tcp")
MISSING_PROGRAM = (127, "")


def lay_out(name: str, root: Path) -> Host:
    """The layout as a root folder, with its commands and an 8 TB disk that is half full."""
    source = LAYOUTS / name
    shutil.copytree(source / "files", root, dirs_exist_ok=True)
    links = source / "links"
    for line in links.read_text().splitlines() if links.exists() else []:
        path, target = line.split(" ", 1)
        os.symlink(target, root / path.lstrip("/"))
    commands = json.loads((source / "commands.json").read_text())

    def run(command: Any) -> tuple[int, str]:
        line = " ".join(command)
        for known, answer in commands.items():
            if line == known or (known == "systemctl show" and line.startswith(known)):
                return 0, answer
        return MISSING_PROGRAM

    size = SimpleNamespace(f_frsize=1000, f_blocks=8_000_000_000, f_bavail=4_000_000_000)
    return Host(root=str(root), run=run, statvfs=lambda path: size, clock_synchronized=lambda: True)


def dig(facts: Any, path: str) -> Any:
    """The value at a dotted path; interface names may hold dots themselves."""
    while path:
        whole = [key for key in facts if path == key or path.startswith(f"{key}.")]
        key = max(whole, key=len)
        facts, path = facts[key], path[len(key) + 1 :]
    return facts


@pytest.mark.parametrize("name", sorted(folder.name for folder in LAYOUTS.iterdir()))
def test_layout_gives_the_facts_worked_out_by_hand(name: str, tmp_path: Path) -> None:
    wanted = Wanted("/data/k3s", PORTS, digests=("sha256:" + "a" * 64, "sha256:" + "b" * 64, "../../etc"))

    facts = read_host(wanted, lay_out(name, tmp_path))

    expected = json.loads((LAYOUTS / name / "expect.json").read_text())
    assert {path: dig(facts, path) for path in expected} == expected
    json.dumps(facts)


def test_every_layout_says_what_it_stands_for() -> None:
    for folder in LAYOUTS.iterdir():
        assert len((folder / "about").read_text().splitlines()) == 1


def test_bytes_that_are_not_utf8_are_replaced(tmp_path: Path) -> None:
    root = tmp_path / "root"
    host = lay_out("debian12_fresh", root)
    (root / "etc/os-release").write_bytes(b"ID=debian\nPRETTY_NAME=\xff\xfe\nVERSION_ID=12\n")

    facts = read_host(Wanted("/data/k3s"), host)

    assert facts["os"] == {"id": "debian", "version": "12", "like": [], "name": "\ufffd\ufffd"}
    assert facts["problems"] == []


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    host = lay_out("debian12_fresh", tmp_path)
    (tmp_path / "proc/swaps").unlink()
    (tmp_path / "proc/swaps").mkdir()

    facts = read_host(Wanted("/data/k3s"), host)

    assert facts["problems"] == [{"what": "/proc/swaps", "error": "Is a directory"}]
    assert facts["swap"] == []
    assert facts["hostname"] == "gpu1"


def test_a_mount_table_of_20000_lines_is_read_in_time(tmp_path: Path) -> None:
    host = lay_out("debian12_fresh", tmp_path)
    table = tmp_path / "proc/self/mountinfo"
    extra = "".join(
        f"{n} 29 0:{n} / /run/c{n} rw - overlay overlay rw,lowerdir={'x' * 200}\n" for n in range(100, 20100)
    )
    table.write_text(table.read_text() + extra)

    facts = read_host(Wanted("/data/k3s"), host)

    assert facts["data_dir"]["mount"]["target"] == "/data"


def test_a_data_dir_that_is_a_file_is_told_from_a_folder(tmp_path: Path) -> None:
    host = lay_out("debian12_fresh", tmp_path)
    (tmp_path / "data/k3s").write_text("")

    facts = read_host(Wanted("/data/k3s/deeper"), host)

    assert (facts["data_dir"]["nearest"], facts["data_dir"]["folder"]) == ("/data/k3s", False)


def test_a_symlink_that_points_to_itself_ends(tmp_path: Path) -> None:
    host = lay_out("debian12_fresh", tmp_path)
    os.symlink("k3s", tmp_path / "data/k3s")

    facts = read_host(Wanted("/data/k3s"), host)

    assert facts["data_dir"]["symlinks"][0] == {"component": "/data/k3s", "target": "k3s"}
    assert not facts["data_dir"]["exists"]


def test_a_relative_data_dir_is_not_looked_up(tmp_path: Path) -> None:
    facts = read_host(Wanted("data/k3s"), lay_out("debian12_fresh", tmp_path))

    assert facts["data_dir"]["absolute"] is False
    assert facts["data_dir"]["mount"] is None


@pytest.mark.parametrize(
    ("path", "target"),
    [("/data/k3s", "/data"), ("/database", "/"), ("/data", "/data"), ("/", "/"), ("/data/k3s/x", "/data")],
)
def test_a_mount_holds_what_is_below_it_by_components(path: str, target: str) -> None:
    mounts = [Mount("/", "a", "ext4", ()), Mount("/data", "b", "xfs", ())]

    assert mount_of(mounts, path).target == target


def test_of_two_mounts_at_one_place_the_later_counts() -> None:
    mounts = [Mount("/", "a", "ext4", ()), Mount("/data", "b", "autofs", ()), Mount("/data", "c", "xfs", ())]

    assert mount_of(mounts, "/data/k3s").source == "c"


@pytest.mark.parametrize(
    ("config", "units", "expected"),
    [
        ([], [], "/var/lib/rancher/k3s"),
        (["data-dir: /a\n"], [], "/a"),
        (["data-dir: /a\n", "data-dir: '/b'\n"], [], "/b"),
        (['"data-dir": "/a" # disk\n'], [], "/a"),
        (["#data-dir: /a\n"], [], "/var/lib/rancher/k3s"),
        (["data-dir: /a\n"], ["ExecStart=/usr/local/bin/k3s server --data-dir=/c\n"], "/c"),
        (["data-dir: /a\n"], ["ExecStart=/usr/local/bin/k3s server -d /c\n"], "/c"),
        (["data-dir: /a\n"], ["Environment=K3S_DATA_DIR=/d\n"], "/d"),
    ],
)
def test_the_configured_data_dir_is_the_one_k3s_would_use(config: list[str], units: list[str], expected: str) -> None:
    assert module.configured_data_dir(config, units) == expected


def test_interfaces_of_odd_shape_are_skipped() -> None:
    assert module.parse_interfaces('[{}, 3, {"ifname": "a b"}]') == {
        "a b": {"up": False, "kind": "", "addresses": [], "vxlan_port": None}
    }
    assert module.parse_interfaces("{") is None
    assert module.parse_interfaces("") == {}


def test_addresses_of_the_socket_tables_are_in_host_byte_order() -> None:
    table = "head\n 0: B80D0120000000000000000001000000:1F90 0:0 0A 0:0 0:0 0 0 0 42\n"

    (listener,) = module.parse_sockets(table, "tcp")

    assert (listener.address, listener.port, listener.inode) == ("2001:db8::1", 8080, 42)


def test_a_socket_that_closes_meanwhile_is_not_reported(tmp_path: Path) -> None:
    host = lay_out("ubuntu2204_kubeadm", tmp_path)
    (tmp_path / "proc/77/fd/9").unlink()
    table, tables = tmp_path / "proc/net/tcp", iter([(tmp_path / "proc/net/tcp").read_text(), "head\n"])
    read = host.read

    def read_changing(path: str, quiet: bool = False) -> Any:
        if path == "/proc/net/tcp":
            table.write_text(next(tables))
        return read(path, quiet)

    host.read = read_changing

    assert [(entry.port, entry.protocol) for entry in read_listeners(host, PORTS)] == [(8472, "udp")]


def test_a_missing_program_and_a_hanging_one_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMMAND_SECONDS", 0.2)

    assert module.run_command(["no-such-program-here"]) == (127, "")
    assert module.run_command(["sleep", "5"]) == (124, "")
    assert module.run_command(["echo", "a"]) == (0, "a\n")


def test_this_machine_can_be_read_without_a_change_or_an_error() -> None:
    facts = read_host(Wanted("/var/lib/none", PORTS))

    assert stat.S_ISDIR(os.stat(facts["data_dir"]["nearest"]).st_mode)
    assert facts["clock"]["last_seen"] >= facts["clock"]["first_seen"]
    json.dumps(facts)
