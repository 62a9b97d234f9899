# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""containerd's image store through its C(ctr) program, which every k3s node has (C(k3s ctr)).

Only flags and output that are the same in containerd 1.6 and 2.x are used. What C(ctr) names an import differs between its
local and its transfer code, so callers list afterwards and tag what is missing.
"""

from __future__ import annotations

import collections
import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError

#: The label that keeps the kubelet's garbage collection away (containerd 1.7 and later report it through CRI).
PINNED_LABEL = "io.cri-containerd.pinned"
PINNED_VALUE = "pinned"
#: Set by containerd's CRI plugin on every name it has taken notice of.
MANAGED_LABEL = "io.cri-containerd.image"
#: sudo's secure_path leaves out /usr/local/bin on the RHEL family, and k3s is there.
SEARCH_PATH = os.pathsep.join(
    [os.environ.get("PATH", ""), "/usr/local/bin", "/usr/local/sbin", "/usr/bin", "/usr/sbin", "/bin"]
)
#: Seconds for everything but an import; ctr itself gives up on a dead socket after 10.
PATIENCE = 120
#: Seconds for one blob of an image's content, and how much of it is read at once.
STREAM_PATIENCE = 3600
STREAM_BYTES = 1 << 18

_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3, "TiB": 1024**4}
_LISTED = re.compile(
    r"(?P<name>\S+)\s+(?P<type>\S+)\s+(?P<digest>sha256:[0-9a-f]{64})\s+"
    r"(?P<number>[0-9.]+) (?P<unit>[KMGT]?i?B)\s+(?P<platforms>\S+)\s+(?P<labels>\S.*?)\s*"
)
_CHECKED = re.compile(r"(?P<name>\S+)\s+\S+\s+sha256:[0-9a-f]{64}\s+(?P<status>[a-z]+)\b.*")
_UNREACHABLE = (
    "failed to dial",
    "connection refused",
    "context deadline exceeded",
    "permission denied",
    "no such file",
)


@dataclass(frozen=True)
class StoredImage:
    """One name in the store and what it points at. C(size) is in bytes, as exact as C(ctr) prints it (one decimal)."""

    name: str
    media_type: str
    digest: str
    size: int
    platforms: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def pinned(self) -> bool:
        return self.labels.get(PINNED_LABEL) == PINNED_VALUE

    @property
    def managed(self) -> bool:
        return MANAGED_LABEL in self.labels


@dataclass(frozen=True)
class Completed:
    """How a command ended."""

    returncode: int
    stdout: str = ""
    stderr: str = ""


#: Opens what a command prints, in pieces.
Streamer = Callable[[Sequence[str]], "contextlib.AbstractContextManager[Iterator[bytes]]"]
#: Writes the import's tar; what it raises ends the import.
Feed = Callable[[BinaryIO], None]


class Runner(Protocol):
    """Runs a command, feeding its standard input where there is a feed. Tests pass a scripted one."""

    def __call__(self, command: Sequence[str], feed: Feed | None = None) -> Completed: ...


def run(command: Sequence[str], feed: Feed | None = None) -> Completed:
    """Runs C(command) for real. What the feed raises is raised once the command has ended."""
    program = shutil.which(command[0], path=SEARCH_PATH)
    if program is None:
        raise FileNotFoundError(command[0])
    arguments = [program, *command[1:]]
    if feed is None:
        ended = subprocess.run(arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE, check=False)
        return Completed(ended.returncode, _text(ended.stdout), _text(ended.stderr))
    # The output goes to a file: ctr 2.x reports its progress, and a full pipe would stop it while we still write.
    with tempfile.TemporaryFile() as output:
        with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=output, stderr=output) as process:
            _feed(process, feed)
        output.seek(0)
        return Completed(process.returncode, "", _text(output.read()))


@contextlib.contextmanager
def stream(command: Sequence[str]) -> Iterator[Iterator[bytes]]:
    """Runs C(command) and gives what it prints, in pieces. Raises OSError where it fails, or has not ended after STREAM_PATIENCE."""
    program = shutil.which(command[0], path=SEARCH_PATH)
    if program is None:
        raise FileNotFoundError(command[0])
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            [program, *command[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said
        )
        clock = threading.Timer(STREAM_PATIENCE, process.kill)
        clock.start()
        try:
            pieces = iter(lambda: process.stdout.read1(STREAM_BYTES), b"")
            yield pieces
            collections.deque(pieces, maxlen=0)  # what was not wanted
            if process.wait():
                said.seek(0)
                raise OSError(_last_words(Completed(process.returncode, "", _text(said.read()))))
        finally:
            clock.cancel()
            process.kill()
            process.stdout.close()
            process.wait()


def _feed(process: subprocess.Popen[bytes], feed: Feed) -> None:
    """Writes to the command and closes its input; on an error too, so that ctr sees the end and gives up its lease."""
    try:
        with process.stdin as stream:
            feed(stream)
    except BrokenPipeError:
        pass  # it ended by itself; its output says why
    except BaseException:
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
        raise


class Containerd:
    """The image store of one containerd namespace."""

    def __init__(
        self,
        ctr: Sequence[str],
        namespace: str = "k8s.io",
        where: str = "",
        runner: Runner = run,
        streamer: Streamer = stream,
    ) -> None:
        """C(ctr) is the command with its leading arguments (C(["k3s", "ctr"])); C(where) names the host in findings."""
        self._ctr = list(ctr)
        self._namespace = namespace
        self._where = where
        self._runner = runner
        self._streamer = streamer

    def images(self) -> list[StoredImage]:
        """Every name in the namespace. Raises FindingError when containerd cannot be asked."""
        lines = self._call("images", "list").stdout.splitlines()[1:]
        return [image for image in map(_listed, lines) if image is not None]

    def incomplete(self, names: Iterable[str]) -> set[str]:
        """Those of the names whose content is not all there (lost, or never fetched)."""
        filters = [f"name=={name}" for name in names]
        if not filters:
            return set()
        # It exits 1 when a manifest is lost, with a full table all the same.
        result = self._call("images", "check", *filters, tolerate=True)
        rows = [match for match in map(_CHECKED.fullmatch, result.stdout.splitlines()[1:]) if match]
        return {row["name"] for row in rows if row["status"] != "complete"}

    def load(self, repository: str, feed: Feed) -> None:
        """Imports the tar that C(feed) writes, and unpacks it; also names C(repository@digest)."""
        self._call("images", "import", "--digests", "--base-name", repository, "-", feed=feed)

    def tag(self, source: str, targets: Sequence[str]) -> None:
        """Gives the image more names, with its labels; a name that points elsewhere is moved."""
        self._call("images", "tag", "--force", source, *targets)

    def label(self, name: str, labels: Mapping[str, str]) -> None:
        """Sets labels; an empty value removes one."""
        self._call("images", "label", name, *(f"{key}={value}" for key, value in labels.items()))

    def content(self, digest: str) -> contextlib.AbstractContextManager[Iterator[bytes]]:
        """A blob, as it is stored, in pieces. Raises OSError where the store does not have it, or cannot be asked."""
        return self._streamer([*self._ctr, "--namespace", self._namespace, "content", "get", digest])

    def remove(self, names: Sequence[str]) -> None:
        """Removes names; content that has none left is released before this returns."""
        self._call("images", "remove", "--sync", *names)

    def _call(self, *arguments: str, feed: Feed | None = None, tolerate: bool = False) -> Completed:
        command = [*self._ctr, "--namespace", self._namespace, *arguments]
        try:
            result = self._runner(command, feed) if feed else self._runner(command)
        except FileNotFoundError as error:
            raise FindingError(self._missing()) from error
        except subprocess.TimeoutExpired as error:
            raise FindingError(self._unreachable(f"no answer in {PATIENCE} s")) from error
        except OSError as error:
            raise FindingError(self._unreachable(str(error))) from error
        if result.returncode and not (tolerate and result.stdout.strip()):
            raise FindingError(self._failed(arguments, result))
        return result

    def _finding(self, code: str, message: str, fix: str) -> Finding:
        return Finding(code=code, severity="error", message=message, fix=fix, where=self._where)

    def _missing(self) -> Finding:
        return self._finding(
            "containerd_ctr_missing",
            f"The program {self._ctr[0]!r} is not on this host.",
            "Install k3s first (playbooks/k3s.yml), or name containerd's client in images_ctr.",
        )

    def _unreachable(self, reason: str) -> Finding:
        return self._finding(
            "containerd_unreachable",
            f"containerd does not answer `{' '.join(self._ctr)}`: {reason}",
            "Start it (`systemctl status k3s k3s-agent`), and run as root; images_ctr names the client and its --address.",
        )

    def _failed(self, arguments: Sequence[str], result: Completed) -> Finding:
        reason = _last_words(result)
        if "no space left" in reason.lower():
            return self._finding(
                "image_no_space",
                f"containerd has no space left: {reason}",
                "Free space on the file system of k3s_data_dir, or move it to a larger disk; then run playbooks/images.yml again.",
            )
        if any(sign in reason for sign in _UNREACHABLE) and ("dial" in reason or "sock" in reason):
            return self._unreachable(reason)
        return self._finding(
            "containerd_failed",
            f"`{' '.join([*self._ctr, *arguments[:2]])}` failed with exit status {result.returncode}: {reason}",
            "Look at containerd's log (k3s_data_dir/agent/containerd/containerd.log), then run playbooks/images.yml again.",
        )


def _listed(line: str) -> StoredImage | None:
    match = _LISTED.fullmatch(line)
    if match is None:
        return None
    platforms = () if match["platforms"] == "-" else tuple(match["platforms"].split(","))
    return StoredImage(
        name=match["name"],
        media_type=match["type"],
        digest=match["digest"],
        size=int(float(match["number"]) * _UNITS.get(match["unit"], 1)),
        platforms=platforms,
        labels=_labels(match["labels"]),
    )


def _labels(text: str) -> dict[str, str]:
    if text == "-":
        return {}
    return dict(pair.partition("=")[::2] for pair in text.split(",") if "=" in pair)


def _last_words(result: Completed) -> str:
    lines = [line.strip() for line in f"{result.stdout}\n{result.stderr}".splitlines() if line.strip()]
    said = [line for line in lines if line.startswith(("ctr:", "time=", "FATA", "E"))] or lines
    return said[-1] if said else "it said nothing"


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace")
