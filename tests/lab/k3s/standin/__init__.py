# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for k3s, for tests only: real Kubernetes components behind k3s's command line, files and unit behaviour."""

from __future__ import annotations

# stand-in: k3s says v1.20.2+k3s1; this is what the kubelet built by the lab reports, so that both agree as in k3s.
VERSION = "v1.20.2"
VERSION_LINES = (
    f"k3s version {VERSION} (stand-in for tests)\n"
    "This is not k3s: a lab stand-in that runs Kubernetes components from Debian."
)
