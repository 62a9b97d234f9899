# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Kubernetes that is on the host already: this collection's, or another's."""

from __future__ import annotations

from typing import Iterator

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import Check, Facts, Settings


def _kubernetes(host: str, facts: Facts, settings: Settings) -> Iterator[Finding]:
    k3s = facts["k3s"]
    wanted = (facts["data_dir"] or {}).get("path", "")
    if facts["other_kubernetes"]:
        yield Finding(
            "kubernetes_foreign",
            "error",
            f"another Kubernetes is there: {', '.join(facts['other_kubernetes'])}",
            "Remove it with its own tool (kubeadm reset, rke2-uninstall.sh, snap remove microk8s), or take the host out of k3s_cluster.",
            host,
        )
    if k3s["installed"] and not k3s["own"]:
        uninstall = "k3s-agent-uninstall.sh" if k3s["unit"] == "k3s-agent.service" else "k3s-uninstall.sh"
        yield Finding(
            "k3s_foreign",
            "error",
            f"a k3s is installed that this collection did not install ({k3s['unit'] or 'no unit'}, data-dir {k3s['data_dir']})",
            f"Remove it: `K3S_DATA_DIR={k3s['data_dir']} /usr/local/bin/{uninstall}` on the host.",
            host,
        )
    elif k3s["installed"] and wanted and k3s["data_dir"].rstrip("/") != wanted.rstrip("/"):
        yield Finding(
            "k3s_other_data_dir",
            "error",
            f"k3s is installed with the data-dir {k3s['data_dir']}, and k3s_data_dir is {wanted}",
            f"Set k3s_data_dir to {k3s['data_dir']}, or run playbooks/reset.yml on this host first.",
            host,
            why="a changed data-dir starts an empty cluster beside the old one",
        )
    if facts["leftovers"]:
        yield Finding(
            "kubernetes_leftovers",
            "warning",
            f"an earlier cluster left {', '.join(facts['leftovers'])}",
            "Look whether anything there is needed, then remove it.",
            host,
        )


EXISTING_CHECKS: tuple[Check, ...] = (_kubernetes,)
