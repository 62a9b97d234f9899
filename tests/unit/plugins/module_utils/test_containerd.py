# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The wrapper around ctr: what it reads out of real output, and what it says when ctr does not do its work.

The listings are copied from containerd 1.6.20; the program is replaced by a scripted runner, save in the last tests, which
start small programs to try the pipe.
"""

from __future__ import annotations

import subprocess

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils import containerd as edge
from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Completed, Containerd, run, stream
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError

DIGEST = "sha256:f09a3ccdf49198d46da60efe9cfb7e60594419dda9a63ccfd4afce75ac48384f"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LISTING = "\n".join(
    [
        "REF                       TYPE       DIGEST   SIZE    PLATFORMS   LABELS ",
        f"docker.io/lab/engine:v1   {MANIFEST} {DIGEST} 2.9 MiB linux/amd64 "
        "io.cri-containerd.image=managed,io.cri-containerd.pinned=pinned ",
        f"docker.io/lab/engine@{DIGEST} {MANIFEST} {DIGEST} 42.5 GiB linux/amd64,linux/arm64 -                         ",
        f"docker.io/lab/lost:v1     {MANIFEST} {DIGEST} 498.0 B -           io.cri-containerd.image=managed        ",
        "",
    ]
)
CHECK = "\n".join(
    [
        "REF                    TYPE       DIGEST   STATUS            SIZE            UNPACKED ",
        f"docker.io/lab/whole:v1 {MANIFEST} {DIGEST} complete (2/2)    2.9 MiB/2.9 MiB true",
        f"docker.io/lab/part:v1  {MANIFEST} {DIGEST} incomplete (1/2)  339.0 B/2.9 MiB true",
        f"docker.io/lab/lost:v1  {MANIFEST} {DIGEST} unavailable (0/?) 0.0 B/?         false",
        "",
    ]
)


def containerd(answer):
    calls = []

    def runner(command, feed=None):
        calls.append(list(command))
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return Containerd(["k3s", "ctr"], "k8s.io", "node1", runner), calls


def test_a_listing_is_read_with_sizes_platforms_and_labels():
    store, calls = containerd(Completed(0, LISTING))

    tagged, digested, lost = store.images()

    assert calls == [["k3s", "ctr", "--namespace", "k8s.io", "images", "list"]]
    assert (tagged.name, tagged.digest) == ("docker.io/lab/engine:v1", DIGEST)
    assert tagged.size == 3040870  # 2.9 * 1024 * 1024, cut
    assert tagged.pinned
    assert tagged.managed
    assert digested.size == 45634027520  # 42.5 * 1024**3
    assert digested.platforms == ("linux/amd64", "linux/arm64")
    assert not digested.pinned
    assert not digested.managed
    assert (lost.size, lost.platforms) == (498, ())


def test_an_empty_store_is_no_error():
    store, _calls = containerd(Completed(0, "REF TYPE DIGEST SIZE PLATFORMS LABELS \n"))

    assert store.images() == []


def test_incomplete_content_is_found_even_when_ctr_calls_that_an_error():
    store, calls = containerd(Completed(1, CHECK, "ctr: unable to check unpack for docker.io/lab/lost:v1"))

    assert store.incomplete(["docker.io/lab/part:v1"]) == {"docker.io/lab/part:v1", "docker.io/lab/lost:v1"}
    assert calls[0][-1] == "name==docker.io/lab/part:v1"


def test_nothing_is_asked_for_no_names():
    store, calls = containerd(Completed(0))

    assert store.incomplete([]) == set()
    assert calls == []


@pytest.mark.parametrize(
    ("act", "arguments"),
    [
        (lambda store: store.tag("a:v1", ["b:v1", "c:v1"]), ["tag", "--force", "a:v1", "b:v1", "c:v1"]),
        (lambda store: store.label("a:v1", {"x": "1", "y": ""}), ["label", "a:v1", "x=1", "y="]),
        (lambda store: store.remove(["a:v1", "b:v1"]), ["remove", "--sync", "a:v1", "b:v1"]),
        (lambda store: store.load("a", lambda stream: None), ["import", "--digests", "--base-name", "a", "-"]),
    ],
)
def test_each_verb_is_one_call(act, arguments):
    store, calls = containerd(Completed(0))

    act(store)

    assert calls == [["k3s", "ctr", "--namespace", "k8s.io", "images", *arguments]]


@pytest.mark.parametrize(
    ("answer", "code", "says"),
    [
        (FileNotFoundError("k3s"), "containerd_ctr_missing", "'k3s'"),
        (PermissionError(13, "Permission denied"), "containerd_unreachable", "Permission denied"),
        (subprocess.TimeoutExpired("k3s", 120), "containerd_unreachable", "120 s"),
        (
            Completed(1, "", 'ctr: failed to dial "/run/k3s/containerd/containerd.sock": context deadline exceeded\n'),
            "containerd_unreachable",
            "context deadline exceeded",
        ),
        (
            Completed(
                1, "", 'ctr: connection error: desc = "transport: dial unix /run/x.sock: connect: permission denied"'
            ),
            "containerd_unreachable",
            "permission denied",
        ),
        (
            Completed(1, "", "ctr: failed to copy: write /mnt/data/ingest/1/data: no space left on device"),
            "image_no_space",
            "no space left",
        ),
        (Completed(1, "", 'ctr: image "x": not found\n'), "containerd_failed", 'image "x": not found'),
        (Completed(2, "", ""), "containerd_failed", "exit status 2: it said nothing"),
    ],
)
def test_failures_say_what_is_wrong_and_what_to_do(answer, code, says):
    store, _calls = containerd(answer)

    with pytest.raises(FindingError) as failed:
        store.images()

    (finding,) = failed.value.findings
    assert finding.code == code
    assert says in finding.message
    assert finding.where == "node1"
    assert finding.fix


def test_the_last_word_counts_not_the_log_before_it():
    log = 'time="2026-11-30T20:26:14Z" level=error msg="failed"\nctr: unable to delete x: in use\n'
    store, _calls = containerd(Completed(1, "", log))

    with pytest.raises(FindingError, match="unable to delete x: in use"):
        store.remove(["x"])


# -- the pipe, with real programs -----------------------------------------------------------------------------------


def test_what_is_fed_arrives_and_the_output_comes_back():
    ended = run(["sh", "-c", "wc -c; echo said >&2; exit 3"], lambda stream: stream.write(b"x" * 1_000_000))

    assert ended.returncode == 3
    assert "1000000" in ended.stderr
    assert "said" in ended.stderr


def test_a_talkative_program_does_not_stop_the_feed():
    """ctr 2.x prints its progress; a pipe of 64 KiB would fill and both would wait."""
    ended = run(
        ["sh", "-c", "yes progress | head -c 1000000; cat > /dev/null"], lambda stream: stream.write(b"x" * 1_000_000)
    )

    assert ended.returncode == 0


def test_a_program_that_stops_reading_is_no_traceback():
    ended = run(
        ["sh", "-c", "echo no space left on device >&2; exit 1"], lambda stream: stream.write(b"x" * 10_000_000)
    )

    assert ended.returncode == 1
    assert "no space left" in ended.stderr


def test_the_feeds_error_comes_out_after_the_program_has_seen_the_end(tmp_path):
    note = tmp_path / "seen"

    def feed(stream):
        stream.write(b"half")
        raise ValueError("bad blob")

    with pytest.raises(ValueError, match="bad blob"):
        run(["sh", "-c", f"cat > {note}.part; mv {note}.part {note}"], feed)

    assert note.read_bytes() == b"half"


def test_a_program_that_is_not_there_is_told_by_name():
    with pytest.raises(FileNotFoundError, match="no-such-ctr"):
        run(["no-such-ctr", "images", "list"])


# -- what a program prints, in pieces -------------------------------------------------------------------------------


def test_a_long_output_comes_in_pieces_and_need_not_be_read_to_its_end():
    with stream(["sh", "-c", "head -c 1000000 /dev/zero"]) as pieces:
        first = next(pieces)

    assert 0 < len(first) <= 1 << 18


def test_a_program_that_fails_after_some_output_is_told_by_its_last_words():
    with (
        pytest.raises(OSError, match="ctr: content digest sha256:1: not found"),
        stream(["sh", "-c", "echo half; echo 'ctr: content digest sha256:1: not found' >&2; exit 1"]) as pieces,
    ):
        assert b"".join(pieces) == b"half\n"


def test_the_readers_own_error_ends_the_program(tmp_path):
    with pytest.raises(ValueError, match="bad layer"), stream(["sh", "-c", "echo x; exec sleep 60"]) as pieces:
        next(pieces)
        raise ValueError("bad layer")


def test_a_program_that_prints_for_ever_is_ended_in_time(monkeypatch):
    monkeypatch.setattr(edge, "STREAM_PATIENCE", 0.2)

    with pytest.raises(OSError), stream(["sh", "-c", "exec sleep 60"]) as pieces:
        assert list(pieces) == []


def test_streaming_a_program_that_is_not_there():
    with pytest.raises(FileNotFoundError, match="no-such-ctr"), stream(["no-such-ctr"]):
        pass


def test_content_is_asked_for_in_the_namespace(tmp_path):
    ctr = tmp_path / "ctr"
    ctr.write_text('#!/bin/sh\necho "$@"\n')
    ctr.chmod(0o755)

    with Containerd([str(ctr), "--address", "x"], "other").content(DIGEST) as pieces:
        assert b"".join(pieces).decode().split() == ["--address", "x", "--namespace", "other", "content", "get", DIGEST]
