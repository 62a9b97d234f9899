# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""containerd, configured as k3s does, and the import of the air-gap archives."""

from __future__ import annotations

from pathlib import Path

from . import files
from .children import Children
from .log import log
from .settings import Settings

STATE = Path("/run/k3s/containerd")
SOCKET = STATE / "containerd.sock"
ARCHIVES = ("*.tar", "*.tar.gz", "*.tgz", "*.tar.zst")
_BINARIES = {
    "containerd": "/usr/bin/containerd",
    "ctr": "/usr/bin/ctr",
    "runc": "/usr/sbin/runc",
    "kubectl": "/opt/lab/kubernetes/kubectl",
}


def configuration(data_dir: Path, pause_image: str) -> str:
    """containerd's config.toml."""
    agent = data_dir / "agent"
    return f"""\
version = 2
root = "{agent}/containerd"
state = "{STATE}"
disabled_plugins = ["io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.internal.v1.opt", "io.containerd.tracing.processor.v1.otlp"]

[grpc]
  address = "{SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause_image}"
  stream_server_address = "127.0.0.1"
  stream_server_port = "10010"
  # The lab's nodes lack CAP_SYS_RESOURCE: without this every sandbox dies.
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{agent}/etc/cni/net.d"
"""


def start(children: Children, settings: Settings) -> None:
    """Start containerd; its log is where k3s keeps it."""
    agent = settings.data_dir / "agent"
    files.folder(agent / "etc/cni/net.d")
    files.folder(agent / "images")
    # 0711 as k3s: containers with user namespaces have to pass through.
    files.folder(agent / "containerd", 0o711)
    files.folder(STATE, 0o711)
    configuration_file = agent / "etc/containerd/config.toml"
    files.write(configuration_file, configuration(settings.data_dir, settings.pause_image))
    _link_binaries(settings.data_dir)
    SOCKET.unlink(missing_ok=True)
    children.start(
        "containerd", ["containerd", "--config", str(configuration_file)], agent / "containerd/containerd.log"
    )


def _link_binaries(data_dir: Path) -> None:
    # stand-in: k3s extracts its binaries there; these are links to Debian's.
    folder = files.folder(data_dir / "data/current/bin")
    for name, target in _BINARIES.items():
        link = folder / name
        if not link.is_symlink():
            link.symlink_to(target)


def import_archives(children: Children, settings: Settings) -> None:
    """Import every archive of `$D/agent/images`, before the kubelet starts."""
    children.wait_for("containerd", SOCKET.exists)
    folder = settings.data_dir / "agent/images"
    for archive in sorted({path for pattern in ARCHIVES for path in folder.glob(pattern)}):
        log("info", f"Importing images from {archive}")
        # stand-in: k3s labels them pinned, which containerd 1.6 does not know; and it watches the folder while it runs.
        children.run(
            "ctr", ["ctr", "--address", str(SOCKET), "--namespace", "k8s.io", "images", "import", str(archive)]
        )
        log("info", f"Imported images from {archive}")
