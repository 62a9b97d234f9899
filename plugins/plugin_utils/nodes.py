# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What a node lacks of what its pods will want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding


@dataclass(frozen=True)
class Node:
    """A node as it was found. C(folder): a path that its pods mount; C(has_folder): None where nobody looked."""

    name: str
    missing_images: tuple[str, ...] = ()
    folder: str = ""
    has_folder: bool | None = None


def node_findings(nodes: Iterable[Node], pull_variable: str, allow_pull: bool, predicting: bool) -> list[Finding]:
    """Images that containerd does not hold and folders that are not there.

    C(predicting): a run that changes nothing, in which no earlier stage has imported anything either.
    """
    findings = []
    for node in nodes:
        findings += [
            _image_missing(node.name, image, pull_variable, allow_pull, predicting) for image in node.missing_images
        ]
        if node.has_folder is False:
            findings.append(_folder_missing(node, predicting))
    return findings


def _image_missing(node: str, image: str, pull_variable: str, allow_pull: bool, predicting: bool) -> Finding:
    fix = f"add it with its archive to images_list and run the images stage, or set {pull_variable} to true"
    return Finding(
        code="node_image_missing",
        severity="info" if allow_pull or predicting else "error",
        message=f"containerd does not hold {image}",
        fix="none; it will be pulled" if allow_pull else fix,
        where=node,
    )


def _folder_missing(node: Node, predicting: bool) -> Finding:
    return Finding(
        code="node_model_dir_missing",
        severity="warning" if predicting else "error",
        message=f"the folder {node.folder} does not exist",
        fix="put the model there, or correct serving_model_dir of this host",
        where=node.name,
        why="a pod that mounts it is never started",
    )
