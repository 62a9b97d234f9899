# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the tools print was taken from rdma-core 56 and perftest 6.24 over Soft-RoCE, or from their sources where they fail otherwise.

Here stand-ins print it, since there is no RDMA: the device's name says how one behaves.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import rdma_test
from ansible_collections.infera.baremetal.plugins.module_utils.rdma_test import (
    Outcome,
    RailTest,
    missing_tools,
    parse,
    parse_tests,
    run_client,
    sent_bytes,
    start_servers,
    stop_servers,
)

PINGPONG = """\
  local address:  LID 0x0000, QPN 0x000011, PSN 0xf6ff68, GID fd00:a:1:1::2
  remote address: LID 0x0000, QPN 0x000011, PSN 0xb99fbf, GID fd00:a:1:2::2
819200 bytes in 0.53 seconds = 12.29 Mbit/sec
100 iters in 0.53 seconds = 5331.20 usec/iter
"""
BANDWIDTH = """\
 WARNING: BW peak won't be measured in this run.
---------------------------------------------------------------------------------------
                    RDMA_Write BW Test
 Dual-port       : OFF\t\tDevice         : ionic_0
 Mtu             : 4096[B]
 GID index       : 1
---------------------------------------------------------------------------------------
 local address: LID 0000 QPN 0x0012 PSN 0x6e20d2 RKey 0x0004a2 VAddr 0x005578d3a1b000
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      1200000          0.00               335.42   \t\t     0.639763
---------------------------------------------------------------------------------------
"""
STAND_IN = f"""\
#!{sys.executable}
# A stand-in for ibv_rc_pingpong and ib_write_bw: it moves nothing, and prints what they print. A file stands for a listening port.
import os, sys, time
tool, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
device, port = arguments[arguments.index("-d") + 1], arguments[arguments.index("-p") + 1]
client = arguments[-1] if arguments[-2] != "-p" else ""
listening = os.path.join(os.path.dirname(os.path.abspath(__file__)), port)
if client and not os.path.exists(listening):
    sys.exit("Couldn't connect to " + client + ":" + port)
if not client:
    if device == "slow":
        time.sleep(1)
    open(listening, "w").close()
if device == "hangs" or (not client and device == "waits"):
    time.sleep(60)
if device == "no_route":
    sys.exit("Failed to modify QP to RTR")
print({PINGPONG!r} if tool == "ibv_rc_pingpong" else {BANDWIDTH!r})
"""


@pytest.fixture(name="path")
def fixture_path(tmp_path: Path) -> str:
    for tool in ("ibv_rc_pingpong", "ib_write_bw"):
        (tmp_path / tool).write_text(STAND_IN)
        (tmp_path / tool).chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


@pytest.fixture(name="folder")
def fixture_folder(tmp_path: Path) -> Iterator[str]:
    folder = str(tmp_path / "servers")
    yield folder
    stop_servers(folder)


@pytest.fixture(autouse=True)
def fixture_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, seconds in (
        ("COUNTER_SECONDS", 0.1),
        ("COUNTER_PAUSE", 0.01),
        ("CONNECT_PAUSE", 0.05),
        ("KILL_SECONDS", 1),
    ):
        monkeypatch.setattr(rdma_test, name, seconds)


def rail_test(device: str = "ionic_0", rail: int = 0, **given: Any) -> RailTest:
    port = given.pop("tcp_port", 18515 + 2 * rail)
    return RailTest(rail, device, 1, 3, f"rail{rail}", "b", rail, "10.1.0.2", port, **given)


# --- commands and words -----------------------------------------------------------------------------------------------


def test_the_commands_of_both_sides() -> None:
    assert rail_test().command("pingpong", 2, client=False) == (
        "ibv_rc_pingpong -d ionic_0 -i 1 -e -g 3 -n 100 -p 18515".split()
    )
    assert rail_test().command("bandwidth", 2, client=True) == (
        "ib_write_bw -d ionic_0 -i 1 -F --report_gbits -x 3 -D 2 -p 18516 10.1.0.2".split()
    )


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rdma_device": "-h"}, "rdma_device is '-h'"),
        ({"peer_address": ""}, "peer_address is ''"),
        ({"tcp_port": 65535}, "tcp_port is 65535; it must be from 1 to 65534"),
        ({"tcp_port": 0}, "tcp_port is 0"),
    ],
)
def test_what_a_tool_would_misunderstand_is_refused(given: dict[str, Any], words: str) -> None:
    entry = {**vars(rail_test()), **given}

    with pytest.raises(ValueError, match=words):
        parse_tests([entry])


def test_tools_are_looked_for_on_the_path(path: str, tmp_path: Path) -> None:
    assert missing_tools(path) == []
    (tmp_path / "ib_write_bw").unlink()
    assert missing_tools(str(tmp_path)) == ["ib_write_bw"]


def test_a_ping_pong_tells_its_time_and_counts_both_directions() -> None:
    assert parse("pingpong", PINGPONG) == Outcome(True, usec=5331.2, bytes=409600)


def test_the_average_is_what_counts_of_a_bandwidth() -> None:
    assert parse("bandwidth", BANDWIDTH) == Outcome(True, gbps=335.42, bytes=65536 * 1200000)


def test_an_average_of_zero_is_no_measurement() -> None:
    """Soft-RoCE on a busy host: 569 iterations, and averages of 0.000000."""
    text = BANDWIDTH.replace("335.42", "0.000000")

    assert parse("bandwidth", text) == Outcome(True, gbps=None, bytes=65536 * 1200000)


@pytest.mark.parametrize(
    ("text", "cause", "error"),
    [
        (
            "Failed to modify QP to RTR\nCouldn't connect to remote QP\n",
            "queue_pair",
            "(RTR): Failed to modify QP to RTR",
        ),
        ("Failed to modify QP 17 to RTR\n Unable to Connect the HCA's through the link\n", "queue_pair", "QP 17"),
        ("can't read sgid of index 9\n", "gid", "index 9"),
        ("\n Found Incompatibility issue with GID types.\n", "gid", "GID types"),
        ("IB device ionic_9 not found\n", "device", "ionic_9"),
        (" Did not detect devices \n If device exists, check if driver is up\n", "device", "Did not detect"),
        ("Failed to get IB devices list: Function not implemented\n", "device", "Function not implemented"),
        ("Couldn't register MR\n", "memory", "Couldn't register MR"),
        ("Couldn't allocate MR with error=12\n", "memory", "error=12"),
        (
            "Failed status transport retry counter exceeded (12) for wr_id 2\nparse WC failed 1\n",
            "unacknowledged",
            "retry",
        ),
        (
            " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n",
            "unacknowledged",
            "syndrom 0x81",
        ),
        (" Failed status 10: wr_id 0 syndrom 0x88\n", "completion", "status 10"),
        ("Couldn't listen to port 18515\n", "port_in_use", "18515"),
        ("Couldn't connect to 10.1.0.2:18515\n", "connection", "10.1.0.2:18515"),
        # Which error number is left is chance.
        ("client read/write: No space left on device\nCouldn't read/write remote address\n", "peer", "remote address"),
        (" Unable to read from socket/rdma_cm\n", "peer", "socket/rdma_cm"),
        ("---\nsomething new\n***\n", "unknown", "something new"),
        ("", "unknown", "it said nothing"),
        ("819200 bytes in 0.53 seconds = 12.29 Mbit/sec\n", "unknown", "819200"),
    ],
)
def test_a_failure_has_a_cause_and_the_line_that_tells_it(text: str, cause: str, error: str) -> None:
    for kind in ("pingpong", "bandwidth"):
        outcome = parse(kind, text)
        assert (outcome.ok, outcome.cause) == (False, cause)
        assert error in outcome.error


# --- counters ---------------------------------------------------------------------------------------------------------


def counters(root: Path, device: bool = True, **values: int) -> str:
    port = root / "class/infiniband/ionic_0/ports/1"
    paths = {
        "ionic": port / "hw_counters/tx_rdma_ucast_bytes",
        "words": port / "counters/port_xmit_data",
        "netdev": root / "class/net/rail0/statistics/tx_bytes",
    }
    for name, value in values.items():
        paths[name].parent.mkdir(parents=True, exist_ok=True)
        paths[name].write_text(f"{value}\n")
    if device:
        (root / "class/infiniband/ionic_0/device").mkdir(parents=True, exist_ok=True)
    return str(root)


@pytest.mark.parametrize(
    ("values", "counter", "sent"),
    [
        ({"ionic": 500, "words": 10, "netdev": 7}, "hw_counters/tx_rdma_ucast_bytes", 500),
        ({"words": 10, "netdev": 7}, "counters/port_xmit_data", 40),
        # A NIC's netdev does not see its RDMA.
        ({"netdev": 7}, "", None),
        # A software device counts what leaves by any netdev.
        ({"words": 10, "netdev": 7, "device": False}, "statistics/tx_bytes", 7),
        ({"words": 10, "device": False}, "", None),
    ],
)
def test_which_counter_tells_what_a_rail_sent(tmp_path: Path, values: Any, counter: str, sent: Optional[int]) -> None:
    path, value = sent_bytes(counters(tmp_path, **values), rail_test())

    assert path.endswith(counter)
    assert value == sent


# --- a client ---------------------------------------------------------------------------------------------------------


def listen(tmp_path: Path, *ports: int) -> None:
    for port in ports:
        (tmp_path / str(port)).touch()


def test_a_client_measures_all_rails_and_says_by_how_much_their_counters_rose(path: str, tmp_path: Path) -> None:
    listen(tmp_path, 18515, 18516, 18517, 18518)

    first, second = run_client(
        [rail_test(), rail_test("ionic_1", 1)], 2, 20, counters(tmp_path / "sys", words=10), path
    )

    assert (first["rail"], first["peer"], first["peer_rail"]) == (0, "b", 0)
    assert first["pingpong"] == {
        "ok": True,
        "cause": "",
        "error": "",
        "usec": 5331.2,
        "gbps": None,
        "bytes": 409600,
        # The stand-in sends nothing.
        "sent": 0,
        "counter": "class/infiniband/ionic_0/ports/1/counters/port_xmit_data",
    }
    assert first["bandwidth"]["gbps"] == 335.42
    # Rail 1 has no counter.
    assert (second["bandwidth"]["ok"], second["bandwidth"]["sent"], second["bandwidth"]["counter"]) == (True, None, "")


def test_a_counter_that_starts_anew_says_nothing(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listen(tmp_path, 18515)
    values = iter([("counter", 100), ("counter", 5)])
    monkeypatch.setattr(rdma_test, "sent_bytes", lambda root, test: next(values))

    (result,) = run_client([rail_test(bandwidth=False)], 2, 20, str(tmp_path), path)

    assert result["pingpong"]["sent"] is None


@pytest.mark.parametrize(
    ("device", "cause", "seconds"),
    [("no_route", "queue_pair", 20), ("hangs", "hung", 0.5)],
)
def test_what_fails_is_not_measured(path: str, tmp_path: Path, device: str, cause: str, seconds: float) -> None:
    listen(tmp_path, 18515, 18517, 18518)

    bad, good = run_client(
        [rail_test(device), rail_test("ionic_1", 1)], 1, seconds if device == "hangs" else 20, "/none", path
    )

    assert (bad["pingpong"]["cause"], bad["bandwidth"]) == (cause, None)
    assert device == "hangs" or good["bandwidth"]["ok"]


def test_without_perftest_only_the_exchange_is_tried(path: str, tmp_path: Path) -> None:
    listen(tmp_path, 18515)

    (result,) = run_client([rail_test(bandwidth=False)], 2, 20, "/none", path)

    assert (result["pingpong"]["ok"], result["bandwidth"]) == (True, None)


def test_a_server_that_never_listens_is_given_up(path: str) -> None:
    (result,) = run_client([rail_test()], 2, 20, "/none", path, connect_seconds=0.2)

    assert result["pingpong"]["cause"] == "connection"
    assert "Couldn't connect to 10.1.0.2:18515" in result["pingpong"]["error"]


def test_nothing_to_measure_is_no_error(path: str) -> None:
    assert run_client([], 2, 20, "/none", path) == []


# --- servers ----------------------------------------------------------------------------------------------------------


def entries(folder: str) -> list[dict[str, Any]]:
    return [json.loads(entry.read_text()) for entry in sorted(Path(folder).glob("*.json"))]


def alive(pid: int) -> bool:
    return bool(rdma_test._started(pid))


def eventually(condition: Callable[[], bool], seconds: float = 10) -> bool:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def test_a_client_waits_for_its_servers_and_both_tell(path: str, folder: str) -> None:
    start_servers([rail_test("slow")], 2, 30, folder, path)

    (result,) = run_client([rail_test()], 2, 20, "/none", path)

    assert result["pingpong"]["ok"] and result["bandwidth"]["ok"]
    assert eventually(lambda: not any(alive(entry["pid"]) for entry in entries(folder)))
    assert stop_servers(folder) == [
        {"rail": 0, "peer": "b", "peer_rail": 0, "kind": kind, "ok": True, "cause": "", "error": ""}
        for kind in ("pingpong", "bandwidth")
    ]
    assert not os.path.exists(folder)


def test_a_server_tells_why_it_gave_up(path: str, folder: str) -> None:
    start_servers([rail_test("no_route", bandwidth=False)], 2, 30, folder, path)
    (entry,) = entries(folder)
    assert eventually(lambda: not alive(entry["pid"]))

    (told,) = stop_servers(folder)

    assert (told["ok"], told["cause"]) == (False, "queue_pair")


def test_what_still_waits_is_ended_and_nothing_else(path: str, folder: str) -> None:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as bystander:
        try:
            start_servers([rail_test("waits")], 2, 30, folder, path)
            started = entries(folder)
            # A number that was given to another process since.
            again = {**started[0], "pid": bystander.pid, "started": "1"}
            Path(folder, "7.json").write_text(json.dumps(again))
            Path(folder, "8.json").write_text("half a li")

            told = stop_servers(folder)

            assert [entry["cause"] for entry in told] == ["waiting", "waiting", "unknown"]
            assert not any(alive(entry["pid"]) for entry in started)
            assert bystander.poll() is None
        finally:
            bystander.kill()


def test_the_next_round_ends_what_waits_and_keeps_what_was_said(path: str, folder: str, tmp_path: Path) -> None:
    start_servers([rail_test("no_route"), rail_test("waits", 1)], 2, 30, folder, path)
    first = entries(folder)
    assert eventually(lambda: (tmp_path / "18517").exists() and not alive(first[0]["pid"]))

    start_servers([rail_test("waits", bandwidth=False)], 2, 30, folder, path)

    assert not any(alive(entry["pid"]) for entry in first)
    told = [(entry["rail"], entry["kind"], entry["cause"]) for entry in stop_servers(folder)]
    assert told[0] == (0, "pingpong", "queue_pair")
    assert [entry[:2] for entry in told] == [
        (0, "pingpong"),
        (0, "bandwidth"),
        (1, "pingpong"),
        (1, "bandwidth"),
        (0, "pingpong"),
    ]
    assert told[4][2] == "waiting"


def test_a_server_ends_by_itself(path: str, folder: str) -> None:
    start_servers([rail_test("waits", bandwidth=False)], 2, 1, folder, path)
    (entry,) = entries(folder)

    assert alive(entry["pid"])
    assert eventually(lambda: not alive(entry["pid"]), 8)


def test_one_that_ignores_the_request_to_end_is_killed(folder: str, tmp_path: Path) -> None:
    own = tmp_path / "pid"
    (tmp_path / "ibv_rc_pingpong").write_text(
        f"#!/bin/sh\n# A stand-in that will not end.\ntrap '' TERM\necho $$ > {own}\nwhile :; do sleep 0.1; done\n"
    )
    (tmp_path / "ibv_rc_pingpong").chmod(0o755)
    start_servers([rail_test(bandwidth=False)], 2, 30, folder, f"{tmp_path}:{os.environ['PATH']}")
    (entry,) = entries(folder)
    assert eventually(lambda: own.exists() and own.read_text().endswith("\n"))

    stop_servers(folder)

    assert not alive(entry["pid"])
    assert not alive(int(own.read_text()))


def test_without_servers_there_is_nothing_to_stop(folder: str) -> None:
    assert stop_servers(folder) == []
