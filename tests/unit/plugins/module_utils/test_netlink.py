# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

import struct

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import netlink


def header(length: int, kind: int, sequence: int) -> bytes:
    """struct nlmsghdr: length, type, flags, sequence number, port."""
    return struct.pack("=IHHII", length, kind, 0, sequence, 0)


def test_a_request_has_its_length_and_the_request_flag() -> None:
    assert netlink.message(26, b"body", sequence=7, flags=0x300) == struct.pack("=IHHII", 20, 26, 0x301, 7, 0) + b"body"


def test_messages_of_one_receive_are_taken_apart_at_multiples_of_four() -> None:
    data = header(17, 24, 1) + b"a" + b"\0\0\0" + header(18, 2, 2) + b"bc" + b"\0\0"

    assert list(netlink.messages(data)) == [(24, 1, b"a"), (2, 2, b"bc")]


@pytest.mark.parametrize(
    "data",
    [b"", b"\1\2\3", header(0, 24, 1), header(15, 24, 1), header(4096, 24, 1) + b"cut off"],
    ids=["nothing", "short", "length zero", "shorter than its header", "cut off"],
)
def test_what_is_no_whole_message_is_left_out(data: bytes) -> None:
    assert list(netlink.messages(data)) == []


def test_attributes_are_padded_and_read_back_without_their_flags() -> None:
    packed = netlink.pack(1, b"abcde") + netlink.pack(0x8000 | 5, b"wxyz")

    assert packed[:12] == struct.pack("=HH", 9, 1) + b"abcde\0\0\0"
    assert netlink.attributes(packed) == {1: b"abcde", 5: b"wxyz"}


def test_a_broken_attribute_ends_the_list() -> None:
    assert netlink.attributes(netlink.pack(1, b"abcd") + struct.pack("=HH", 2, 9)) == {1: b"abcd"}


def test_the_kernels_errors_are_negative() -> None:
    assert netlink.error_number(struct.pack("=i", -101)) == 101


@pytest.mark.parametrize(
    ("packed", "text"),
    [
        (bytes([10, 1, 0, 2]), "10.1.0.2"),
        (bytes.fromhex("fd00000a000100010000000000000002"), "fd00:a:1:1::2"),
        (None, ""),
        (b"abc", ""),
    ],
)
def test_addresses_of_both_families_are_text(packed: bytes | None, text: str) -> None:
    assert netlink.address_text(packed) == text


def test_a_device_that_is_gone_has_no_name() -> None:
    assert netlink.device_name(0) == ""


class FakeChannel:
    """Answers as the kernel would, in the pieces that it is given."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    def __enter__(self) -> FakeChannel:
        return self

    def __exit__(self, *_exception: object) -> None:
        pass

    def send(self, _data: bytes) -> None:
        pass

    def recv(self, _size: int) -> bytes:
        return self.pieces.pop(0)


def test_a_dump_goes_on_until_the_kernel_says_that_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [header(20, 24, 1) + b"one ", header(20, 24, 1) + b"two " + header(20, 3, 1) + bytes(4)]
    monkeypatch.setattr(netlink, "channel", lambda: FakeChannel(*pieces))

    assert netlink.dump(26, b"") == [b"one ", b"two "]


def test_a_dump_that_is_refused_is_an_error_with_the_systems_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netlink, "channel", lambda: FakeChannel(header(20, 2, 1) + struct.pack("=i", -95)))

    with pytest.raises(OSError, match="Operation not supported"):
        netlink.dump(26, b"")


def test_a_table_without_end_is_read_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netlink, "_LIMIT", 2)
    monkeypatch.setattr(netlink, "channel", lambda: FakeChannel(*[header(20, 24, 1) + b"more"] * 9))

    assert netlink.dump(26, b"") == [b"more", b"more"]
