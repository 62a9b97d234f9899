# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The KV cache's way over real sockets on loopback: what arrives, and what is said when it does not."""

from __future__ import annotations

import socket
import threading
import typing as t

import pytest
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.rails import Rail
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.transfer import (
    NUMBER,
    KvStore,
    RailServers,
    TransferError,
    bound_socket,
    pull,
    route_handler,
)
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.web import Request, Service

KV = bytes(range(256)) * 16


def rail(index: int, address: str | None) -> Rail:
    """A rail on loopback."""
    return Rail(index, f"ionic_{index}", "lo", "ACTIVE", 1, address)


class Prefill:
    """Prefill's two servers."""

    def __init__(self, rails: t.Sequence[Rail]) -> None:
        self.store = KvStore()
        self.servers = RailServers(rails, self.store, patience=0)
        self.bootstrap = Service("127.0.0.1", 0, {"GET /route": self.route})
        self.bootstrap.start()
        self.tamper: t.Callable[[dict[str, t.Any]], None] = lambda _answer: None

    def route(self, request: Request) -> dict[str, t.Any]:
        """The real answer, changed as the test wants."""
        answer = route_handler(self.servers, self.store)(request)
        self.tamper(answer)
        return answer

    def pull(self, room: int, rails: t.Sequence[Rail], timeout: float = 5) -> t.Any:
        """As decode does it."""
        return pull("127.0.0.1", self.bootstrap.server_port, room, rails, timeout)


@pytest.fixture(name="prefill")
def prefill_host() -> t.Iterator[Prefill]:
    """A prefill host with an IPv6 rail and two IPv4 ones."""
    host = Prefill([rail(0, "::1"), rail(1, "127.0.1.1"), rail(2, "127.0.1.2")])
    yield host
    host.bootstrap.close(0)
    host.servers.close()


DECODE = [rail(0, "::1"), rail(1, "127.0.2.1"), rail(2, "127.0.2.2")]


@pytest.mark.parametrize(
    ("room", "index", "local", "remote"),
    [
        (3, 0, "[::1]:", "[::1]:"),
        (4, 1, "127.0.2.1:", "127.0.1.1:"),
        (2**63 - 1, 1, "127.0.2.1:", "127.0.1.1:"),
        (5, 2, "127.0.2.2:", "127.0.1.2:"),
    ],
)
def test_a_room_travels_over_its_rail_between_that_rails_addresses(
    prefill: Prefill, room: int, index: int, local: str, remote: str
) -> None:
    prefill.store.put(room, KV)

    pulled = prefill.pull(room, DECODE)

    assert pulled.kv == KV
    assert pulled.rail.index == index
    assert pulled.local.startswith(local) and pulled.remote.startswith(remote)


def test_decode_may_ask_before_prefill_is_done(prefill: Prefill) -> None:
    timer = threading.Timer(0.3, prefill.store.put, (1, KV))
    timer.start()

    assert prefill.pull(1, DECODE).kv == KV
    timer.join()


def test_a_rail_that_does_not_answer_is_a_dead_session_with_the_errno(prefill: Prefill) -> None:
    prefill.store.put(1, KV)
    with socket.create_server(("127.0.1.1", 0)) as closed:
        port = closed.getsockname()[1]
    prefill.tamper = lambda answer: answer["rails"][1].update(port=port)

    with pytest.raises(TransferError) as failure:
        prefill.pull(1, DECODE)

    assert str(failure.value).startswith(
        "Failed to get kvcache from prefill instance, it might be dead (remote mooncake session 127.0.1.1:"
    )
    assert "is not alive): rail 1 (ionic_1, lo) from 127.0.2.1 to 127.0.1.1:" in str(failure.value)
    assert str(failure.value).endswith("[Errno 111] Connection refused")


def test_an_own_address_that_is_gone_is_told_apart(prefill: Prefill) -> None:
    prefill.store.put(0, KV)

    with pytest.raises(
        TransferError, match=r"from 192.0.2.1 to \[::1\]:\d+: \[Errno 99\] Cannot assign requested address"
    ):
        prefill.pull(0, [rail(0, "192.0.2.1")])


def test_a_peer_that_says_nothing_is_given_up(prefill: Prefill) -> None:
    prefill.store.put(1, KV)
    with socket.create_server(("127.0.1.1", 0)) as silent:
        prefill.tamper = lambda answer: answer["rails"][1].update(port=silent.getsockname()[1])

        with pytest.raises(TransferError, match=r"\[Errno 110\] timed out"):
            prefill.pull(1, DECODE, timeout=0.2)


def test_a_rail_that_prefill_does_not_serve(prefill: Prefill) -> None:
    prefill.store.put(0, KV)

    with pytest.raises(TransferError, match="prefill does not serve rail 7"):
        prefill.pull(0, [rail(7, "127.0.2.7")])


def test_a_wrong_digest_and_a_wrong_size_are_refused(prefill: Prefill) -> None:
    # A room each, as every request has: prefill forgets a room after it was served, at a time of its own.
    for room, change, message in (
        (1, {"sha256": "0" * 64}, "another digest than announced"),
        (3, {"size": 1}, "4096 bytes offered .* 1 announced"),
    ):
        prefill.store.put(room, KV)
        prefill.tamper = lambda answer, change=change: answer.update(change)

        with pytest.raises(TransferError, match=message):
            prefill.pull(room, DECODE)


def test_a_connection_that_is_cut_is_a_dead_session(prefill: Prefill) -> None:
    prefill.store.put(1, KV)
    with socket.create_server(("127.0.1.1", 0)) as cutting:
        prefill.tamper = lambda answer: answer["rails"][1].update(port=cutting.getsockname()[1])

        def cut() -> None:
            connection, _address = cutting.accept()
            connection.recv(8)
            connection.sendall(NUMBER.pack(len(KV)) + KV[:100])
            connection.close()

        threading.Thread(target=cut, daemon=True).start()

        with pytest.raises(TransferError, match=r"\[Errno 104\] connection closed after 100 of 4096 bytes"):
            prefill.pull(1, DECODE)


def test_an_unknown_room_has_no_way() -> None:
    host = Prefill([rail(0, "127.0.1.1")])
    host.store.get = lambda room, wait=0: None  # type: ignore[method-assign]  # without the wait

    with pytest.raises(
        TransferError, match="Failed to get kvcache from prefill: bootstrap server .*: room 9 is not known here"
    ):
        host.pull(9, DECODE)
    host.bootstrap.close(0)
    host.servers.close()


@pytest.mark.parametrize("address", ["0.0.0.0", "::"])
def test_a_bootstrap_server_at_a_bind_address_is_not_asked(address: str) -> None:
    shown = f"[{address}]" if ":" in address else address

    with pytest.raises(TransferError) as failure:
        pull(address, 8998, 1, DECODE)

    assert str(failure.value).startswith(f"Failed to connect to bootstrap server http://{shown}:8998")


def test_a_bootstrap_server_that_is_not_there(prefill: Prefill) -> None:
    prefill.bootstrap.close(0)

    with pytest.raises(
        TransferError, match=r"Failed to connect to bootstrap server http://127.0.0.1:\d+: \[Errno 111\]"
    ):
        prefill.pull(1, DECODE)


def test_a_rail_without_its_address_is_left_out(prefill: Prefill) -> None:
    servers = RailServers([rail(0, "192.0.2.1"), rail(1, None), rail(2, "127.0.1.3")], KvStore(), patience=0)

    assert [offer["index"] for offer in servers.offers()] == [2]
    servers.close()


def test_a_socket_is_bound_to_the_device_of_its_rail() -> None:
    with bound_socket(rail(0, "127.0.1.1")) as bound:
        device = bound.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16)

    assert device.rstrip(b"\0") == b"lo"


def test_rooms_are_bounded_in_number_bytes_and_time(monkeypatch: pytest.MonkeyPatch) -> None:
    few = KvStore(max_rooms=2)
    for room in (1, 2, 3):
        few.put(room, KV)
    assert [few.get(room) is not None for room in (1, 2, 3)] == [False, True, True]

    small = KvStore(max_bytes=len(KV) + 1)
    small.put(1, KV)
    small.put(2, KV)
    assert [small.get(room) is not None for room in (1, 2)] == [False, True]

    short = KvStore(lifetime=0)
    short.put(1, KV)
    assert short.get(1) is None


def test_a_room_is_fetched_once(prefill: Prefill) -> None:
    prefill.store.put(1, KV)
    prefill.pull(1, DECODE)

    for _turn in range(100):
        if prefill.store.get(1) is None:
            break
        threading.Event().wait(0.02)
    assert prefill.store.get(1) is None
