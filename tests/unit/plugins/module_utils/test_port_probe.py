# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Only loopback is used, with ports that the system chose and a control name of the test's own."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.host import Host, read_listeners
from ansible_collections.infera.baremetal.plugins.module_utils.port_probe import (
    MAGIC,
    Port,
    Target,
    answer,
    check_address,
    open_sockets,
    parse_port,
    parse_targets,
    probe,
    question,
    start_listener,
    stop_listener,
)

HERE = "127.0.0.1"


@pytest.fixture(name="control")
def fixture_control() -> Iterator[str]:
    name = f"\0infera-port-probe-test-{os.getpid()}-{time.monotonic_ns()}"
    yield name
    stop_listener(name)


@pytest.fixture(name="ports")
def fixture_ports() -> list[Port]:
    """A TCP and a UDP port that are free, as far as one can know."""
    found = []
    for protocol, kind in (("tcp", socket.SOCK_STREAM), ("udp", socket.SOCK_DGRAM)):
        with socket.socket(socket.AF_INET, kind) as sock:
            sock.bind((HERE, 0))
            found.append(Port(sock.getsockname()[1], protocol))
    return found


def ask(host: str, port: Port, answers: bool = True, **options: float) -> str:
    (result,) = probe([Target(host, HERE, port, answers)], **options)
    return result.state


def test_what_listens_is_open_over_tcp_and_udp(control: str, ports: list[Port]) -> None:
    listening, unavailable = start_listener("gpu1", HERE, ports, 30, control)

    results = probe([Target("gpu1", HERE, port) for port in ports], source=HERE)

    assert (listening, unavailable) == ([str(port) for port in ports], [])
    assert [result.state for result in results] == ["open", "open"]
    assert all(result.rtt_ms is not None and result.rtt_ms >= 0 for result in results)


def test_another_host_behind_the_address_is_told_apart(control: str, ports: list[Port]) -> None:
    start_listener("gpu7", HERE, ports, 30, control)

    results = probe([Target("gpu1", HERE, port) for port in ports])

    assert [(result.state, result.detail) for result in results] == [("wrong_host", "gpu7"), ("wrong_host", "gpu7")]


def test_nothing_listens(ports: list[Port]) -> None:
    assert [ask("gpu1", port) for port in ports] == ["refused", "refused"]


def test_stopping_frees_the_ports_at_once_and_twice_is_no_error(control: str, ports: list[Port]) -> None:
    start_listener("gpu1", HERE, ports, 30, control)
    assert [ask("gpu1", port) for port in ports] == ["open", "open"]

    assert stop_listener(control) is True

    opened, unavailable = open_sockets(HERE, ports)
    for sock in opened.values():
        sock.close()
    assert unavailable == []
    assert stop_listener(control) is False


def test_a_listener_left_behind_is_replaced(control: str, ports: list[Port]) -> None:
    start_listener("old", HERE, ports, 30, control)

    listening, unavailable = start_listener("new", HERE, ports, 30, control)

    assert (listening, unavailable) == ([str(port) for port in ports], [])
    assert ask("new", ports[0]) == "open"


def test_a_listener_ends_by_itself(control: str, ports: list[Port]) -> None:
    start_listener("gpu1", HERE, ports, 0.3, control)

    time.sleep(0.6)

    assert ask("gpu1", ports[0]) == "refused"
    assert stop_listener(control) is False


def test_a_listener_holds_no_file_of_its_starter_and_has_a_name(
    control: str, ports: list[Port], tmp_path: Path
) -> None:
    with open(tmp_path / "held", "w", encoding="utf-8"):
        start_listener("gpu1", HERE, ports, 30, control)

    (listener,) = read_listeners(Host(), [str(ports[0])])

    assert listener.process == "infera-probe"
    files = [os.readlink(entry) for entry in Path(f"/proc/{listener.pid}/fd").iterdir()]
    assert {name.split(":")[0] for name in files} == {"/dev/null", "anon_inode", "socket"}


def test_a_port_that_is_taken_is_said_and_left_alone(control: str, ports: list[Port]) -> None:
    tcp = ports[0]
    with socket.socket() as holder:
        holder.bind((HERE, tcp.number))
        holder.listen(1)

        listening, unavailable = start_listener("gpu1", HERE, ports, 30, control)

        assert listening == [str(ports[1])]
        assert unavailable == [{"port": str(tcp), "reason": "in_use"}]


def test_an_address_that_is_not_here_is_said_with_the_systems_words(control: str, ports: list[Port]) -> None:
    listening, unavailable = start_listener("gpu1", "198.51.100.1", ports, 30, control)

    assert listening == []
    assert {entry["reason"] for entry in unavailable} == {"Cannot assign requested address"}


def test_something_else_that_listens_counts_as_open(ports: list[Port]) -> None:
    with socket.socket() as server:
        server.bind((HERE, ports[0].number))
        server.listen(1)

        (silent,) = probe([Target("gpu1", HERE, ports[0])])
        without_asking = ask("gpu1", ports[0], answers=False)

    assert (silent.state, silent.detail) == ("open", "something else than port_probe answers")
    assert without_asking == "open"


def hang_up(server: socket.socket) -> None:
    server.accept()[0].close()


def test_something_else_that_hangs_up_counts_as_open(ports: list[Port]) -> None:
    with socket.socket() as server:
        server.bind((HERE, ports[0].number))
        server.listen(1)
        thread = threading.Thread(target=hang_up, args=[server])
        thread.start()

        state = ask("gpu1", ports[0])
        thread.join()

    assert state == "open"


def test_a_datagram_that_nobody_answers_is_a_timeout_and_sent_again(ports: list[Port]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind((HERE, ports[1].number))
        silent.settimeout(1)

        state = ask("gpu1", ports[1], timeout=1.0)
        first, again = silent.recv(100), silent.recv(100)

    assert state == "timeout"
    assert first == again


def test_udp_without_a_listener_of_ours_is_not_tested(ports: list[Port]) -> None:
    assert ask("gpu1", ports[1], answers=False) == "not_tested"


def test_a_wrong_address_fails_by_itself_and_looks_no_name_up(ports: list[Port]) -> None:
    results = probe([Target("gpu1", "localhost", ports[0]), Target("gpu1", HERE, ports[0])])

    assert [(result.state, result.detail) for result in results] == [
        ("failed", "'localhost' is not an IP address"),
        ("refused", "Connection refused"),
    ]


def test_a_source_that_is_not_here_says_nothing_of_the_target(ports: list[Port]) -> None:
    (result,) = probe([Target("gpu1", HERE, ports[0])], source="198.51.100.1")

    assert (result.state, result.detail) == ("no_source", "198.51.100.1: Cannot assign requested address")


def test_five_hundred_targets_with_eight_at_once(control: str, ports: list[Port]) -> None:
    start_listener("gpu1", HERE, ports, 30, control)
    targets = [Target("gpu1", HERE, ports[number % 2]) for number in range(500)]

    results = probe(targets, concurrency=8)

    assert {result.state for result in results} == {"open"}
    assert [result.port for result in results] == [str(target.port) for target in targets]


def test_a_question_gets_its_nonce_and_the_name_and_nothing_else_an_answer() -> None:
    assert answer("gpu1", question("n0nce")) == f"{MAGIC} n0nce gpu1\n".encode()
    assert answer("gpu1", b"GET / HTTP/1.1\r\n\r\n") is None
    assert answer("gpu1", b"\xff" * 512) is None
    assert answer("gpu1", b"") is None


@pytest.mark.parametrize(("text", "port"), [("6443/tcp", Port(6443, "tcp")), (" 8472/udp ", Port(8472, "udp"))])
def test_ports_are_read(text: str, port: Port) -> None:
    assert parse_port(text) == port
    assert str(port) == text.strip()


@pytest.mark.parametrize("text", ["6443", "tcp/6443", "0/tcp", "65536/tcp", "6443/sctp", "", "-1/udp", "6443/tcp/udp"])
def test_what_is_no_port_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 6443/tcp"):
        parse_port(text)


def test_a_host_does_not_ask_itself() -> None:
    given = [
        {"host": "gpu1", "address": "10.1.0.1", "ports": ["6443/tcp"]},
        {"host": "gpu2", "address": "10.1.0.2", "ports": ["10250/tcp", "8472/udp"], "answers": "false"},
    ]

    assert parse_targets(given, "gpu1") == [
        Target("gpu2", "10.1.0.2", Port(10250, "tcp"), answers=False),
        Target("gpu2", "10.1.0.2", Port(8472, "udp"), answers=False),
    ]


def test_addresses_are_checked() -> None:
    assert check_address("fd00::0001") == "fd00::1"
    with pytest.raises(ValueError, match="'gpu1' is not an IP address"):
        check_address("gpu1")


def test_a_flood_of_idle_connections_does_not_shut_others_out(control: str, ports: list[Port]) -> None:
    start_listener("gpu1", HERE, ports, 30, control)
    idle = [socket.create_connection((HERE, ports[0].number)) for _number in range(100)]

    state = ask("gpu1", ports[0])

    for sock in idle:
        sock.close()
    assert state == "open"
