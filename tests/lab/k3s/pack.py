# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pack the stand-in into one executable file, byte for byte the same from the same sources."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "standin"
INTERPRETER = b"#!/usr/bin/python3\n"
_ENTRY = "import sys\n\nfrom standin.__main__ import main\n\nsys.exit(main(sys.argv))\n"


def packed(sources: Path) -> bytes:
    """The executable's bytes: an interpreter line and a zip archive with neither times nor compression in it."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_STORED) as archive:
        for name, text in [
            ("__main__.py", _ENTRY.encode()),
            *((f"standin/{path.name}", path.read_bytes()) for path in sorted(sources.glob("*.py"))),
        ]:
            entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, text)
    return INTERPRETER + content.getvalue()


def main(arguments: list[str]) -> int:
    """Write the executable, whole or not at all."""
    if len(arguments) != 1:
        print("usage: tests/lab/k3s/build OUT", file=sys.stderr)
        return 2
    out = Path(arguments[0])
    beside = out.with_name(f".{out.name}.new")
    beside.write_bytes(packed(SOURCES))
    beside.chmod(0o755)
    os.replace(beside, out)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
