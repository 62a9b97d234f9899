# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the lab is built from. Each result lies in the cache under a key made of its inputs, and is shared by all checkouts.

A build works in a folder beside its place and is renamed into it at the end, so a result is whole or not there. Its
commands hold the lock of that place: should the lab be killed, they run on, and the next lab waits for them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from .shell import LabError, run, succeeds

LAB = Path(__file__).resolve().parent.parent  # tests/lab
IMAGE_REPOSITORY = "localhost/infera-lab-node"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Build:
    """One thing to build: a command that fills a folder."""

    title: str
    name: str
    key: str
    about: str  # how long it takes on two cores
    cache: Path
    command: tuple[str, ...]  # {out} stands for the folder to fill
    packages: tuple[str, ...] = ()  # Debian packages that the command needs

    @property
    def directory(self) -> Path:
        return self.cache / f"{self.name}-{self.key}"

    @property
    def built(self) -> bool:
        return self.directory.is_dir()


def kubernetes(cache: Path) -> Build:
    """kube-apiserver and its kin, kubectl, and the lab's device plugin, which is compiled against kubelet's own vendor tree."""
    script = LAB / "build" / "kubernetes"
    sources = sorted((LAB / "images" / "device-plugin").glob("*.go"))
    return Build(
        "Kubernetes 1.20.2 from Debian's source",
        "kubernetes",
        key_of([script, *sources]),
        "8 min",
        cache,
        (str(script), "{out}"),
        ("golang-1.19-go", "golang-github-modern-go-reflect2-dev", "dpkg-dev", "make", "rsync", "jq"),
    )


def node(cache: Path) -> Build:
    """The nodes' root file system."""
    script = LAB / "build" / "node"
    return Build("the node image", "node", key_of([script]), "1 min", cache, (str(script), "{out}"), ("mmdebstrap",))


def images(cache: Path, kubernetes_build: Build) -> Build:
    """The OCI archives: engine, overlay, device plugin, pause."""
    script = LAB / "images" / "build.py"
    inputs = sorted(path for path in (LAB / "images").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return Build(
        "the container images",
        "images",
        key_of(inputs, kubernetes_build.key),
        "1 min",
        cache,
        (
            sys.executable,
            str(script),
            "--cache",
            str(cache),
            "--kubernetes",
            str(kubernetes_build.directory),
            "--out",
            "{out}",
        ),
    )


def key_of(files: Sequence[Path], *words: str) -> str:
    """A key that changes when a file's name (below tests/lab), content or mode, or a word does."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(LAB)}\0{file.stat().st_mode & 0o111:o}\0".encode())
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    for word in words:
        digest.update(f"{word}\0".encode())
    return digest.hexdigest()[:12]


def ensure(builds: Sequence[Build], say: Say) -> None:
    """Build, side by side, what is not in the cache yet."""
    running: list[tuple[Build, subprocess.Popen[bytes]]] = []
    with ExitStack() as stack:
        for build in builds:
            if build.built:
                continue
            lock = stack.enter_context(_locked(build, say))
            if not build.built:
                running.append((build, _start(build, lock)))
        try:
            failed = [build.title for build, process in running if process.wait() != 0]
        except BaseException:
            # Interrupted by its user: stop the process groups that were started here.
            for _build, process in running:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGTERM)
                    process.wait()
            raise
    if failed:
        raise LabError(f"building {' and '.join(failed)} failed; the last lines are above")


def node_image(build: Build, say: Say) -> str:
    """The name under which podman has the nodes' image."""
    image = f"{IMAGE_REPOSITORY}:{build.key}"
    if succeeds("podman", "image", "exists", image):
        return image
    ensure([build], say)
    with _locked(build, say):
        if not succeeds("podman", "image", "exists", image):
            run(
                "podman",
                "import",
                "--change",
                'CMD ["/sbin/init"]',
                "--change",
                "STOPSIGNAL SIGRTMIN+3",
                build.directory / "rootfs.tar",
                image,
                timeout=600,
            )
    return image


@contextmanager
def _locked(build: Build, say: Say) -> Iterator[int]:
    build.cache.mkdir(parents=True, exist_ok=True)
    lock = os.open(build.cache / f"{build.name}-{build.key}.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another run is building {build.title}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield lock
    finally:
        os.close(lock)


def _start(build: Build, lock: int) -> subprocess.Popen[bytes]:
    partial = build.directory.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    out = partial / "out"
    command = shlex.join([word.replace("{out}", str(out)) for word in build.command])
    # The shell does the rename, not this process, so that a build whose lab was killed still ends well.
    script = f"{command} && mv -T {shlex.quote(str(out))} {shlex.quote(str(build.directory))} && rm -rf {shlex.quote(str(partial))}"
    return subprocess.Popen(
        ["/bin/sh", "-c", script], stdin=subprocess.DEVNULL, pass_fds=[lock], start_new_session=True
    )
