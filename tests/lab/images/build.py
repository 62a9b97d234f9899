# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Builds the lab's container images from Debian packages, without a registry, a container tool or a privilege.

python3 build.py --cache DIR --kubernetes DIR --out DIR

writes engine.tar, overlay.tar, device-plugin.tar and k3s-airgap-images-amd64.tar (the pause image) as OCI archives, and
images.json: {"engine": {"name": "docker.io/lab/engine:v1@sha256:...", "archive": "engine.tar"}, "overlay": ..., ...}.
The same inputs give the same digests: members are sorted, times and owners are zero. Packages stay in the cache at the
version first fetched, so digests do not move with Debian's point releases.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import typing as t
from urllib.parse import unquote

HERE = pathlib.Path(__file__).resolve().parent

# Python with what json, http, ssl, hashlib and threading need. Debian's dependencies of the standard library also name
# perl, Kerberos, Tk's and readline's world, for modules that PRUNED leaves out; hence a list instead of the closure.
ENGINE_PACKAGES = (
    "libc6",
    "libgcc-s1",
    "zlib1g",
    "libexpat1",
    "libssl3",
    "libbz2-1.0",
    "liblzma5",
    "libffi8",
    "libuuid1",
    "libcrypt1",
    "python3-minimal",
    "python3.11-minimal",
    "libpython3.11-minimal",
    "libpython3.11-stdlib",
    "busybox-static",
)
OVERLAY_PACKAGES = ("busybox-static",)
# For whoever looks around in a pod, and for infera-exec.
APPLETS = """
    sh ash cat cp cut date df env grep head hostname id ip kill ln ls mkdir mount mv nc netstat ping ping6 ps pwd readlink rm
    sed sleep sort tail tar test top touch uname vi wc wget
""".split()
PRUNED_FOLDERS = (
    "usr/share/",
    "usr/lib/x86_64-linux-gnu/gconv/",
    "usr/lib/x86_64-linux-gnu/perl",
    "usr/lib/x86_64-linux-gnu/engines-3/",
    "usr/lib/x86_64-linux-gnu/ossl-modules/",
    "usr/include/",
    *(
        f"usr/lib/python3.11/{folder}/"
        for folder in (
            "curses",
            "dbm",
            "distutils",
            "ensurepip",
            "lib2to3",
            "pydoc_data",
            "sqlite3",
            "test",
            "unittest",
            "wsgiref",
        )
    ),
)
# Extension modules whose libraries are not in ENGINE_PACKAGES.
PRUNED_MODULES = (
    "_curses",
    "_curses_panel",
    "_dbm",
    "_gdbm",
    "_sqlite3",
    "nis",
    "readline",
    "_testcapi",
    "_xxtestfuzz",
)
USR_MERGED = ("bin", "lib", "lib64", "sbin")


class BuildError(Exception):
    """Something the caller can mend; the message says what."""


class Entry(t.NamedTuple):
    """One member of a layer: a folder (kind `d`), a file (`f`) or a link (`l`, content = target)."""

    kind: str
    mode: int
    content: bytes


Tree = dict[str, Entry]


# --- what goes into the images -------------------------------------------------------------------------------------------


def fetch(packages: t.Sequence[str], cache: pathlib.Path) -> list[pathlib.Path]:
    """Paths of the packages' files in the cache; what is missing is downloaded in one go."""
    folder = cache / "debs"
    folder.mkdir(parents=True, exist_ok=True)

    def cached(package: str) -> pathlib.Path | None:
        return max(folder.glob(f"{package}_*.deb"), default=None)

    missing = [package for package in packages if cached(package) is None]
    if missing:
        say(f"fetching {len(missing)} Debian packages")
        with tempfile.TemporaryDirectory(dir=folder) as work:
            command = ["apt-get", "-qq", "-o", "APT::Sandbox::User=root", "download", *missing]
            result = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
            if result.returncode:
                raise BuildError(
                    f"apt-get download failed (is the package list there? try apt-get update): {result.stderr.strip()}"
                )
            for file in sorted(pathlib.Path(work).glob("*.deb")):
                file.replace(folder / file.name)
    found = [cached(package) for package in packages]
    absent = [package for package, file in zip(packages, found, strict=True) if file is None]
    if absent:
        raise BuildError(f"apt-get download left no file for {', '.join(absent)}")
    return [file for file in found if file is not None]


def package_tree(file: pathlib.Path) -> Tree:
    """A package's files with the paths that a system with a merged /usr has."""
    process = subprocess.run(["dpkg-deb", "--fsys-tarfile", str(file)], capture_output=True, check=False)
    if process.returncode:
        file.unlink()
        raise BuildError(
            f"{unquote(file.name)} is damaged and was removed from the cache; run again: {process.stderr.decode().strip()}"
        )
    tree: Tree = {}
    with tarfile.open(fileobj=io.BytesIO(process.stdout)) as archive:
        for member in archive:
            path = member.name.removeprefix("./").strip("/")
            if not path or path in USR_MERGED:
                continue
            if path.split("/")[0] in USR_MERGED:
                path = f"usr/{path}"
            if path_is_pruned(path):
                continue
            if member.isdir():
                tree[path] = Entry("d", stat.S_IMODE(member.mode), b"")
            elif member.issym():
                tree[path] = Entry("l", 0o777, member.linkname.encode())
            elif member.islnk():
                source = member.linkname.removeprefix("./")
                tree[path] = tree[source if source in tree else f"usr/{source}"]
            elif member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                tree[path] = Entry("f", stat.S_IMODE(member.mode), content.read())
    return tree


def path_is_pruned(path: str) -> bool:
    """Whether the engine can do without the file."""
    if f"{path}/".startswith(PRUNED_FOLDERS):
        return True
    folder, _slash, name = path.rpartition("/")
    return folder.endswith("/lib-dynload") and name.split(".")[0] in PRUNED_MODULES


def busybox_links() -> Tree:
    """sh, cp and their like. Busybox is in /bin, which is /usr/bin here."""
    return {f"usr/bin/{applet}": Entry("l", 0o777, b"busybox") for applet in APPLETS}


def root_skeleton() -> Tree:
    """The folders, links and files of /etc that a container's root has before any package."""
    tree = {folder: Entry("d", 0o755, b"") for folder in ("dev", "etc", "proc", "root", "run", "sys", "usr", "var")}
    tree["tmp"] = Entry("d", 0o1777, b"")
    for folder in USR_MERGED:
        tree[folder] = Entry("l", 0o777, f"usr/{folder}".encode())
        tree[f"usr/{folder}"] = Entry("d", 0o755, b"")
    tree["etc/passwd"] = Entry("f", 0o644, b"root:x:0:0:root:/root:/bin/sh\n")
    tree["etc/group"] = Entry("f", 0o644, b"root:x:0:\n")
    tree["etc/nsswitch.conf"] = Entry("f", 0o644, b"passwd: files\ngroup: files\nhosts: files dns\n")
    return tree


def source_tree(folder: pathlib.Path, at: str) -> Tree:
    """A folder of the checkout below the path `at`; modes are reduced to 0755 and 0644, whatever the umask was."""
    tree: Tree = {}
    for path in sorted(folder.rglob("*")):
        if "__pycache__" in path.parts or path.name.startswith("."):
            continue
        name = f"{at}/{path.relative_to(folder)}"
        if path.is_dir():
            tree[name] = Entry("d", 0o755, b"")
        else:
            tree[name] = Entry("f", 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644, path.read_bytes())
    return tree


def packages_tree(packages: t.Sequence[str], cache: pathlib.Path) -> Tree:
    """A root with the packages in it, and busybox's links where no package has a file."""
    tree = busybox_links() | root_skeleton()
    for file in fetch(packages, cache):
        tree |= package_tree(file)
    return tree


def compiled_pause() -> bytes:
    """The pause program, static."""
    with tempfile.TemporaryDirectory() as work:
        binary = pathlib.Path(work) / "pause"
        command = [
            "gcc",
            "-Os",
            "-static",
            "-s",
            "-Wl,--build-id=none",
            "-o",
            str(binary),
            str(HERE / "pause" / "pause.c"),
        ]
        try:
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise BuildError("gcc is missing: apt-get install gcc libc6-dev") from None
        if result.returncode:
            raise BuildError(f"the pause program does not compile: {result.stderr.strip()}")
        return binary.read_bytes()


# --- OCI archives --------------------------------------------------------------------------------------------------------


def layer_tar(tree: Tree) -> bytes:
    """The layer as a tar file; parents that nothing names are added."""
    complete = dict(tree)
    for path in tree:
        for parent in pathlib.PurePosixPath(path).parents:
            if str(parent) != ".":
                complete.setdefault(str(parent), Entry("d", 0o755, b""))
    return tar_bytes(complete)


def tar_bytes(tree: Tree) -> bytes:
    """A tar file that depends on nothing but paths, modes and contents."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path, entry in sorted(tree.items()):
            member = tarfile.TarInfo(path)
            member.mode = entry.mode
            if entry.kind == "d":
                member.type = tarfile.DIRTYPE
                archive.addfile(member)
            elif entry.kind == "l":
                member.type = tarfile.SYMTYPE
                member.linkname = entry.content.decode()
                archive.addfile(member)
            else:
                member.size = len(entry.content)
                archive.addfile(member, io.BytesIO(entry.content))
    return buffer.getvalue()


def digest_of(blob: bytes) -> str:
    """The OCI digest of a blob."""
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def oci_archive(reference: str, layers: t.Sequence[bytes], config: dict[str, t.Any]) -> tuple[str, bytes]:
    """(manifest digest, archive) of an image with these layers; `config` is the OCI image config's `config`."""
    blobs: dict[str, bytes] = {}

    def stored(media: str, blob: bytes) -> dict[str, t.Any]:
        blobs[digest_of(blob)] = blob
        return {"mediaType": f"application/vnd.oci.image.{media}", "digest": digest_of(blob), "size": len(blob)}

    def document(content: dict[str, t.Any]) -> bytes:
        return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()

    image = {
        "architecture": "amd64",
        "os": "linux",
        "created": "1970-01-01T00:00:00Z",
        "config": config,
        "rootfs": {"type": "layers", "diff_ids": [digest_of(layer) for layer in layers]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": stored("config.v1+json", document(image)),
        "layers": [stored("layer.v1.tar+gzip", gzip.compress(layer, 6, mtime=0)) for layer in layers],
    }
    descriptor = stored("manifest.v1+json", document(manifest))
    # skopeo and ctr read the one, containerd's import of a folder of archives (k3s's air-gap images) the other.
    descriptor["annotations"] = {"org.opencontainers.image.ref.name": reference, "io.containerd.image.name": reference}
    descriptor["platform"] = {"architecture": "amd64", "os": "linux"}
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [descriptor]}
    tree = {
        "oci-layout": Entry("f", 0o644, document({"imageLayoutVersion": "1.0.0"})),
        "index.json": Entry("f", 0o644, document(index)),
        "blobs": Entry("d", 0o755, b""),
        "blobs/sha256": Entry("d", 0o755, b""),
    }
    tree |= {
        f"blobs/sha256/{digest.removeprefix('sha256:')}": Entry("f", 0o644, blob) for digest, blob in blobs.items()
    }
    return descriptor["digest"], tar_bytes(tree)


# --- the four images -----------------------------------------------------------------------------------------------------


def build(cache: pathlib.Path, kubernetes: pathlib.Path, out: pathlib.Path) -> dict[str, dict[str, str]]:
    """Writes the archives and returns what images.json holds."""
    plugin = kubernetes / "lab-device-plugin"
    if not plugin.is_file():
        raise BuildError(f"{plugin} is missing: tests/lab/build/kubernetes {kubernetes} builds it")
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise BuildError(f"{tool} is missing: the images are built from Debian packages, on Debian or Ubuntu")
    path = "PATH=/usr/sbin:/usr/bin"
    images = {
        "engine": (
            "engine.tar",
            [
                packages_tree(ENGINE_PACKAGES, cache),
                source_tree(HERE / "engine" / "infera", "usr/lib/python3/dist-packages/infera"),
            ],
            {"Env": [path, "PYTHONUNBUFFERED=1"], "Cmd": ["python3"]},
        ),
        "overlay": (
            "overlay.tar",
            [packages_tree(OVERLAY_PACKAGES, cache), source_tree(HERE / "overlay" / "payload", "payload")],
            {"Env": [path], "Cmd": ["sh"]},
        ),
        "device_plugin": (
            "device-plugin.tar",
            [{"lab-device-plugin": Entry("f", 0o755, plugin.read_bytes())}],
            {"Env": ["PATH=/"], "Entrypoint": ["/lab-device-plugin"]},
        ),
        "pause": (
            "k3s-airgap-images-amd64.tar",
            [{"pause": Entry("f", 0o755, compiled_pause())}],
            {"Env": ["PATH=/"], "Entrypoint": ["/pause"]},
        ),
    }
    out.mkdir(parents=True, exist_ok=True)
    listed: dict[str, dict[str, str]] = {}
    for key, (file, trees, config) in images.items():
        reference = f"docker.io/lab/{key.replace('_', '-')}:v1"
        digest, archive = oci_archive(reference, [layer_tar(tree) for tree in trees], config)
        write(out / file, archive)
        listed[key] = {"name": f"{reference}@{digest}", "archive": file}
        say(f"{file}: {len(archive) / 1e6:.1f} MB, {digest[:19]}")
    write(out / "images.json", (json.dumps(listed, indent=2) + "\n").encode())
    return listed


def write(path: pathlib.Path, content: bytes) -> None:
    """The whole file or none of it: a killed build leaves the old archive."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as beside:
        beside.write(content)
    os.chmod(beside.name, 0o644)
    os.replace(beside.name, path)


def say(message: str) -> None:
    """Progress, in the manner of the lab's other builders."""
    print(f"   images: {message}", flush=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", maxsplit=1)[0])
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where Debian packages are kept")
    parser.add_argument("--kubernetes", type=pathlib.Path, required=True, help="folder with lab-device-plugin")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where archives and images.json go")
    options = parser.parse_args()
    try:
        build(options.cache, options.kubernetes, options.out)
    except BuildError as error:
        print(f"build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
