#!/usr/bin/python
# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
module: containerd_image
short_description: Import images that are pinned to a digest into containerd
description:
  - Makes sure that a node's containerd holds an image with exactly the content that its digest names, under the names by which
    the kubelet finds it (C(repo@sha256:...), which is what CRI looks up, and C(repo:tag)), and with the label that keeps the
    kubelet's garbage collection away.
  - The archive is an OCI image archive, one uncompressed tar. With O(archive_on=controller) it is checked on the controller
    against the digest, every blob, before anything is sent to any host. It is sent only to hosts that lack the image, waits in
    O(staging_dir) for its import, and is removed whatever happens.
  - While containerd reads it, every byte is checked again. The image's names are written last, so that a bad archive or a killed
    import leaves no name behind.
  - An image that is there means no work, one call to the host, and no look at the archive.
author:
  - infera.baremetal authors (@infera-project)
attributes:
  check_mode:
    description: Predicts the change. Archives on the controller are checked; nothing is sent. A host without containerd lacks all images.
    support: full
  diff_mode:
    description: Shows the image's names before and after.
    support: full
  action:
    description: Archives on the controller are checked and sent by the action plugin of the same name.
    support: full
options:
  name:
    description:
      - The image, as C(repo:tag@sha256:...). C(docker.io) and C(library/) are added as the kubelet's runtime does.
      - Exactly one of O(name) and O(images) is given.
    type: str
  archive:
    description: The archive of O(name). A path that is not absolute starts where the run starts, or in a C(files) folder as usual.
    type: path
  images:
    description: Several images in one task.
    type: list
    elements: dict
    suboptions:
      name:
        description: The image, as in O(name).
        type: str
        required: true
      archive:
        description: The image's archive, as in O(archive). It may hold other images too.
        type: path
  archive_on:
    description: Where the archives are.
    type: str
    choices: [controller, node]
    default: controller
  state:
    description:
      - V(present) imports what is missing.
      - V(absent) removes the image's names, and its content when it has no other name.
      - V(query) changes nothing and returns which images are missing.
    type: str
    choices: [present, absent, query]
    default: present
  pinned:
    description: Whether the names carry the label C(io.cri-containerd.pinned=pinned). containerd honours it from version 1.7.3.
    type: bool
    default: true
  namespace:
    description: containerd's namespace. The kubelet's images are in V(k8s.io).
    type: str
    default: k8s.io
  ctr:
    description: containerd's client with its leading arguments.
    type: list
    elements: str
    default: [k3s, ctr]
  staging_dir:
    description:
      - Folder on the node in which archives wait for their import, on a disk with space for the largest of them; best on the file
        system of containerd's data. It is made when needed and removed afterwards.
      - It must not be inside of k3s's C(agent/images).
    type: path
    default: /var/tmp/infera-images
  stage:
    description: Set by the action plugin, which runs the module in steps. Leave it alone.
    type: dict
    suboptions:
      step:
        description: V(plan) looks, gives lacking names, and prepares O(staging_dir). V(import) imports, V(discard) removes what is staged.
        type: str
        choices: [plan, import, discard]
        required: true
      owner:
        description: The account that will write to O(staging_dir); the one that called sudo by default.
        type: str
        default: ""
      keep:
        description: Staged files that are of use.
        type: list
        elements: str
        default: []
"""

EXAMPLES = r"""
- name: Import all images of this node
  infera.baremetal.containerd_image:
    images:
      - name: docker.io/lab/engine:v1@sha256:f09a3ccdf49198d46da60efe9cfb7e60594419dda9a63ccfd4afce75ac48384f
        archive: /srv/images/engine.tar
      - name: docker.io/lab/overlay:v1@sha256:c06d55f43ad42351e2abe97112c9d93f8a0b4c46846074a52b7082308d20fded
        archive: /srv/images/overlay.tar
    staging_dir: /mnt/data/k3s/.infera-staging

- name: Import from an archive that is on the node, say on a shared file system
  infera.baremetal.containerd_image:
    name: docker.io/lab/engine:v1@sha256:f09a3ccdf49198d46da60efe9cfb7e60594419dda9a63ccfd4afce75ac48384f
    archive: /mnt/share/engine.tar
    archive_on: node

- name: Ask which images a pod on this node would have to pull
  infera.baremetal.containerd_image:
    images:
      - name: docker.io/lab/engine:v1@sha256:f09a3ccdf49198d46da60efe9cfb7e60594419dda9a63ccfd4afce75ac48384f
    state: query
  register: images
"""

RETURN = r"""
image:
  description: The image, when O(name) was given; as an element of RV(images).
  type: dict
  returned: when O(name) is given
images:
  description: The images in the order of O(images), as they are now.
  type: list
  elements: dict
  returned: success
  contains:
    name:
      description: The name, fully qualified, with tag and digest.
      type: str
    digest:
      description: The digest it is pinned to.
      type: str
    size:
      description: Bytes of its content, as exact as containerd's client prints them (one decimal); 0 when it is missing.
      type: int
    present:
      description: Whether the kubelet finds it under the name that CRI looks up, with all its content.
      type: bool
    pinned:
      description: Whether its names carry the label that keeps garbage collection away.
      type: bool
    names:
      description: Those of its names that are there.
      type: list
      elements: str
missing:
  description: Names of the images that a pod would have to pull. In check mode, those that would have been imported too.
  type: list
  elements: str
  returned: success
reachable:
  description: Whether containerd answered. It may be false in check mode only, on a host where k3s is not installed yet.
  type: bool
  returned: success
findings:
  description: What is wrong, each with its fix.
  type: list
  elements: dict
  returned: failure
"""

import os
import platform
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.infera.baremetal.plugins.module_utils import staging
from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Containerd, Runner, run
from ansible_collections.infera.baremetal.plugins.module_utils.findings import FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.image_reference import parse_all
from ansible_collections.infera.baremetal.plugins.module_utils.node_images import (
    ImageState,
    NodeImages,
    WantedImage,
    intended_listing,
    listing,
    missing,
)

ARGUMENT_SPEC = {
    "name": {"type": "str"},
    "archive": {"type": "path"},
    "images": {
        "type": "list",
        "elements": "dict",
        "options": {"name": {"type": "str", "required": True}, "archive": {"type": "path"}},
    },
    "archive_on": {"type": "str", "choices": ["controller", "node"], "default": "controller"},
    "state": {"type": "str", "choices": ["present", "absent", "query"], "default": "present"},
    "pinned": {"type": "bool", "default": True},
    "namespace": {"type": "str", "default": "k8s.io"},
    "ctr": {"type": "list", "elements": "str", "default": ["k3s", "ctr"]},
    "staging_dir": {"type": "path", "default": "/var/tmp/infera-images"},
    "stage": {
        "type": "dict",
        "options": {
            "step": {"type": "str", "choices": ["plan", "import", "discard"], "required": True},
            "owner": {"type": "str", "default": ""},
            "keep": {"type": "list", "elements": "str", "default": []},
        },
    },
}
CONDITIONS = {
    "mutually_exclusive": [("name", "images"), ("archive", "images")],
    "required_one_of": [("name", "images")],
}


def main() -> None:
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True, **CONDITIONS)
    try:
        result = perform(module.params, module.check_mode)
    except FindingError as error:
        module.fail_json(msg=str(error), findings=[finding.to_dict() for finding in error.findings])
    module.exit_json(**result)


def perform(
    options: dict[str, Any], check_mode: bool, runner: Runner = run, lock: str = staging.LOCK
) -> dict[str, Any]:
    """What the module does, without Ansible. C(runner) and C(lock) are replaceable in tests."""
    if check_mode or options["state"] == "query":
        return _perform(options, check_mode, runner)
    with staging.alone(lock, platform.node()):
        return _perform(options, check_mode, runner)


def _perform(options: dict[str, Any], check_mode: bool, runner: Runner) -> dict[str, Any]:
    host = platform.node()
    step = (options["stage"] or {}).get("step")
    if step == "discard":
        staging.discard(options["staging_dir"])
        return {"changed": False}
    wanted = _wanted(options)
    node = NodeImages(Containerd(options["ctr"], options["namespace"], host, runner), options["pinned"], host)
    before, reachable = _examine(node, wanted, check_mode)
    if options["state"] == "query":
        return _report(options, before, before, reachable)
    if check_mode:
        return _predict(options, node, wanted, before, reachable)
    if options["state"] == "absent":
        removed = node.remove([image.reference for image in wanted])
        after = node.examine([image.reference for image in wanted]) if removed else before
        return {**_report(options, before, after, True), "changed": bool(removed)}
    if step == "plan":
        return _plan(options, node, wanted, before)
    return _report(options, before, _import(options, node, wanted, before), True)


def _wanted(options: dict[str, Any]) -> list[WantedImage]:
    if options["images"] is None:
        given = [("name", options["name"], options["archive"])]
    else:
        given = [
            (f"images[{index}].name", image["name"], image["archive"]) for index, image in enumerate(options["images"])
        ]
    references = parse_all((name, where) for where, name, _archive in given)
    return [WantedImage(reference, archive or "") for reference, (_w, _n, archive) in zip(references, given)]


def _examine(node: NodeImages, wanted: list[WantedImage], check_mode: bool) -> tuple[list[ImageState], bool]:
    """In check mode a host without containerd is one on which k3s is not installed yet: nothing is there."""
    references = [image.reference for image in wanted]
    try:
        return node.examine(references), True
    except FindingError:
        if not check_mode:
            raise
        return [ImageState(reference, ()) for reference in references], False


def _plan(
    options: dict[str, Any], node: NodeImages, wanted: list[WantedImage], before: list[ImageState]
) -> dict[str, Any]:
    """The first step: what can be had without an archive is done, and a place is made for the archives."""
    here = [state.reference for state in before if state.source]
    if any(not state.settled(options["pinned"]) for state in before if state.source):
        node.settle(here)
        after = node.examine([image.reference for image in wanted])
    else:
        after = before
    result = {**_report(options, before, after, True), "needed": _needed(before)}
    if result["needed"]:
        stage = options["stage"]
        place = staging.prepare(
            options["staging_dir"], stage["keep"], stage["owner"] or os.environ.get("SUDO_USER", ""), platform.node()
        )
        result["staging"] = {"path": place.path, "free_bytes": place.free_bytes, "files": place.files}
    else:
        staging.discard(options["staging_dir"])  # what a killed run left, of images that are here by now
    return result


def _import(
    options: dict[str, Any], node: NodeImages, wanted: list[WantedImage], before: list[ImageState]
) -> list[ImageState]:
    needed = _needed(before)
    if not needed and not options["stage"] and all(state.settled(options["pinned"]) for state in before):
        return before
    try:
        node.load_all([image for image in wanted if str(image.reference) in needed])
    finally:
        if options["stage"]:
            staging.discard(options["staging_dir"], options["stage"]["keep"])
    return node.settle([image.reference for image in wanted])


def _predict(
    options: dict[str, Any], node: NodeImages, wanted: list[WantedImage], before: list[ImageState], reachable: bool
) -> dict[str, Any]:
    result = _report(options, before, before, reachable)
    references = [image.reference for image in wanted]
    if options["state"] == "absent":
        going = node.removable(references) if reachable else []
        return {**result, "changed": bool(going), "diff": _diff(listing(before), "")}
    result["needed"] = _needed(before)
    result["changed"] = any(not state.settled(options["pinned"]) for state in before)
    result["diff"] = _diff(listing(before), intended_listing(references, options["pinned"]))
    return result


def _needed(states: list[ImageState]) -> list[str]:
    """The images that only an archive can bring, each once."""
    return list(dict.fromkeys(str(state.reference) for state in states if not state.source))


def _report(
    options: dict[str, Any], before: list[ImageState], after: list[ImageState], reachable: bool
) -> dict[str, Any]:
    images = [state.to_dict() for state in after]
    result = {
        "changed": listing(before) != listing(after),
        "images": images,
        "missing": missing(after),
        "reachable": reachable,
        "diff": _diff(listing(before), listing(after)),
    }
    if options["images"] is None:
        result["image"] = images[0]
    return result


def _diff(before: str, after: str) -> dict[str, str]:
    return {"before": before, "after": after, "before_header": "images", "after_header": "images"}


if __name__ == "__main__":
    main()
