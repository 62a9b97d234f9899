# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for the C(ctr) program, at the edge where the real one would be started.

It keeps names in memory and prints what containerd 1.6.20 was seen to print. What the real program does with a tar is not
tried here but in the lab (tests/lab/checks/test_images.py); here it only notes the names in the last index.json.
"""

from __future__ import annotations

import io
import json
import tarfile

from ansible_collections.infera.baremetal.plugins.module_utils.containerd import Completed


class ScriptedCtr:
    """C(images): name -> {digest, labels, whole}. C(calls): what was asked, without the leading arguments."""

    def __init__(self, cri=True, digests_flag_works=True, prompt=False):
        self.images = {}
        self.calls = []
        self.answers = {}
        self.cri = cri
        self.prompt = prompt  # CRI notices new names at once
        self.digests_flag_works = digests_flag_works

    def put(self, name, digest, whole=True, **labels):
        self.images[name] = {"digest": digest, "labels": dict(labels), "whole": whole}

    def answer(self, verb, returncode=1, stdout="", stderr="", error=None):
        """What the program does the next time it is asked for C(verb)."""
        self.answers[verb] = error or Completed(returncode, stdout, stderr)

    def verbs(self):
        return [call[0] for call in self.calls]

    def __call__(self, command, feed=None):
        assert command[:5] == ["k3s", "ctr", "--namespace", "k8s.io", "images"]
        verb, arguments = command[5], command[6:]
        self.calls.append((verb, *arguments))
        answer = self.answers.pop(verb, None)
        if isinstance(answer, BaseException):
            raise answer
        if answer is not None:
            return answer
        if feed:
            return self.do_import(arguments, feed)
        return getattr(self, f"do_{verb}")(arguments)

    def do_list(self, _arguments):
        lines = ["REF TYPE DIGEST SIZE PLATFORMS LABELS "]
        for name, image in sorted(self.images.items()):
            labels = ",".join(f"{key}={value}" for key, value in sorted(image["labels"].items())) or "-"
            kind = "application/vnd.oci.image.manifest.v1+json"
            lines.append(f"{name}   {kind} {image['digest']} 2.9 MiB linux/amd64 {labels}   ")
        return Completed(0, "\n".join(lines) + "\n")

    def do_check(self, filters):
        lines = ["REF TYPE DIGEST STATUS SIZE UNPACKED "]
        for name, image in self.images.items():
            if f"name=={name}" in filters:
                status = (
                    "complete (2/2) 2.9 MiB/2.9 MiB true" if image["whole"] else "incomplete (1/2) 339.0 B/2.9 MiB true"
                )
                lines.append(f"{name} application/x {image['digest']} {status} ")
        return Completed(0, "\n".join(lines) + "\n")

    def do_import(self, arguments, feed):
        stream = io.BytesIO()
        try:
            feed(stream)
        except BaseException:
            assert b"index.json" not in stream.getvalue(), "an index was written for a bad archive"
            raise
        stream.seek(0)
        with tarfile.open(fileobj=stream) as tar:
            (target,) = json.load(tar.extractfile("index.json"))["manifests"]
        assert arguments[:2] == ["--digests", "--base-name"]
        name = target.get("annotations", {}).get("io.containerd.image.name")
        if name:
            self.put(name, target["digest"])
        if self.digests_flag_works or not name:
            self.put(f"{arguments[2]}@{target['digest']}", target["digest"])
        if self.prompt:
            self.notice()
        return Completed(0, "", "unpacking ...done\n")

    def do_tag(self, arguments):
        assert arguments[0] == "--force"
        source = self.images[arguments[1]]
        for target in arguments[2:]:
            self.images[target] = {**source, "labels": dict(source["labels"])}
        return Completed(0)

    def do_label(self, arguments):
        name, *pairs = arguments
        for pair in pairs:
            key, _equals, value = pair.partition("=")
            self.images[name]["labels"].pop(key, None)
            if value:
                self.images[name]["labels"][key] = value
        return Completed(0)

    def do_remove(self, arguments):
        assert arguments[0] == "--sync"
        for name in arguments[1:]:
            del self.images[name]
        return Completed(0)

    def notice(self):
        """What containerd's CRI plugin does a moment after a name appears: its own label, and in 1.6 none but that."""
        for image in self.images.values():
            if self.cri and "io.cri-containerd.image" not in image["labels"]:
                image["labels"] = {"io.cri-containerd.image": "managed"}
