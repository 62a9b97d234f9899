# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Entry: picks the command as k3s does, by the first argument or by the name it was called by."""

from __future__ import annotations

import os
import sys

from . import VERSION_LINES

KUBERNETES_DIR = "/opt/lab/kubernetes"
CONTAINERD_SOCKET = "/run/k3s/containerd/containerd.sock"
ADMIN_KUBECONFIG = "/etc/rancher/k3s/k3s.yaml"
USAGE = "usage: k3s [--version] server|agent|ctr|kubectl|crictl [arguments]"


def main(argv: list[str]) -> int:
    """Run one command. `ctr` and `kubectl` replace this process; the services return an exit code."""
    called_as = os.path.basename(argv[0])
    words = [called_as, *argv[1:]] if called_as in ("ctr", "kubectl", "crictl") else argv[1:]
    command, rest = (words[0], words[1:]) if words else ("", [])
    if command in ("--version", "-v"):
        print(VERSION_LINES)
        return 0
    if command == "ctr":
        defaults = {"CONTAINERD_ADDRESS": CONTAINERD_SOCKET, "CONTAINERD_NAMESPACE": "k8s.io"}
        return _become("ctr", rest, defaults)
    if command == "kubectl":
        return _become(f"{KUBERNETES_DIR}/kubectl", rest, {"KUBECONFIG": ADMIN_KUBECONFIG})
    if command == "crictl":
        print("k3s crictl: this lab stand-in has none (Debian 12 does not package it)", file=sys.stderr)
        return 1
    if command in ("server", "agent"):
        from . import service

        return service.main(command, rest)
    print(USAGE, file=sys.stderr if command else sys.stdout)
    return 1 if command else 0


def _become(program: str, arguments: list[str], defaults: dict[str, str]) -> int:
    """Replace this process by the program; variables that the caller set win over the defaults."""
    environment = {**defaults, **os.environ}
    try:
        os.execvpe(program, [program, *arguments], environment)
    except OSError as error:
        print(f"k3s: cannot run {program}: {error.strerror}", file=sys.stderr)
    return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv))
