# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""infera-exec of the lab's overlay: the host's libionic in place of the image's, and then the command."""

from __future__ import annotations

import pathlib
import subprocess

import pytest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "lab" / "images" / "overlay" / "payload" / "bin" / "infera-exec"


def run(root: pathlib.Path, *command: str) -> subprocess.CompletedProcess[str]:
    """The script with its two absolute paths below `root`."""
    text = SCRIPT.read_text(encoding="ascii")
    for path in ("/host-libionic/", "/usr/lib/x86_64-linux-gnu/"):
        assert path in text
        text = text.replace(path, f"{root}{path}")
    # No ldconfig of the machine: it would look at the machine's libraries.
    environment = {"PATH": f"{root}/bin:/usr/bin:/bin"}
    (root / "bin").mkdir(exist_ok=True)
    ldconfig = root / "bin/ldconfig"
    ldconfig.write_text(f"#!/bin/sh\ntouch {root}/ldconfig-ran\n", encoding="ascii")
    ldconfig.chmod(0o755)
    return subprocess.run(
        ["sh", "-c", text, "infera-exec", *command], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(name="image")
def image_with_libionic(tmp_path: pathlib.Path) -> pathlib.Path:
    """An image with a library of its own, behind a link."""
    library = tmp_path / "usr/lib/x86_64-linux-gnu"
    library.mkdir(parents=True)
    (library / "libionic.so.1.0.54").write_text("image", encoding="ascii")
    (library / "libionic.so.1").symlink_to("libionic.so.1.0.54")
    return tmp_path


def mount(root: pathlib.Path) -> None:
    """The host's library, as the hostPath shows it."""
    (root / "host-libionic").mkdir()
    (root / "host-libionic/libionic.so").write_text("host", encoding="ascii")


def test_the_hosts_library_takes_the_place_of_the_file_behind_the_link(image: pathlib.Path) -> None:
    mount(image)

    result = run(image, "echo", "started", "with  spaces")

    assert result.returncode == 0
    assert result.stdout.splitlines()[-1] == "started with  spaces"
    library = image / "usr/lib/x86_64-linux-gnu"
    assert (library / "libionic.so.1").is_symlink()
    assert (library / "libionic.so.1.0.54").read_text(encoding="ascii") == "host"
    assert (image / "ldconfig-ran").exists()


def test_without_a_mount_nothing_is_said(image: pathlib.Path) -> None:
    result = run(image, "true")

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert (image / "usr/lib/x86_64-linux-gnu/libionic.so.1").read_text(encoding="ascii") == "image"


def test_an_image_without_the_library_gets_none(tmp_path: pathlib.Path) -> None:
    mount(tmp_path)

    result = run(tmp_path, "true")

    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert not (tmp_path / "usr").exists()


def test_the_commands_status_is_the_status(tmp_path: pathlib.Path) -> None:
    assert run(tmp_path, "sh", "-c", "exit 7").returncode == 7
    assert run(tmp_path).returncode == 64
