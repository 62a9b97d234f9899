# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The secrets of a standing cluster, and which of them a text shows.

Those the operator gives (token, registry password, service environment), and those that k3s makes (secure token, client key of
the kubeconfig, node passwords).
"""

from __future__ import annotations

import base64
import re

from lab_places import ARTIFACTS, DATA_DIR
from lab_site import Site


def known(site: Site) -> dict[str, str]:
    """Name -> value, read where only root can."""
    kubeconfig = (ARTIFACTS / "kubeconfig").read_text()
    found = {
        "k3s_token": site.variables["k3s_token"],
        "k3s_registries": site.variables["k3s_registries"]["configs"]["registry.lab"]["auth"]["password"],
        "k3s_environment": site.variables["k3s_environment"]["LAB_CHECK"],
        "server token": site.nodes["lab1"].run(f"cat {DATA_DIR}/server/token").strip(),
    }
    key = re.search(r"client-key-data: (\S+)", kubeconfig)
    bearer = re.search(r"^\s+token: (\S+)", kubeconfig, re.MULTILINE)
    if key:
        found["client key"] = key.group(1)
        # A line of the key itself: a log would show it decoded.
        found["client key, decoded"] = base64.b64decode(key.group(1)).decode().splitlines()[1]
    if bearer:
        found["kubeconfig's token"] = bearer.group(1)
    for name, node in site.nodes.items():
        found[f"node password of {name}"] = node.run("cat /etc/rancher/node/password").strip()
    assert key or bearer, "the kubeconfig holds no credential"
    assert all(len(value) >= 16 for value in found.values()), [name for name, value in found.items() if len(value) < 16]
    return found


def shown(secrets: dict[str, str], text: str) -> list[str]:
    """The names of the secrets that a text shows."""
    return [name for name, value in secrets.items() if value in text]
