# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The controller's side: what the host sent is read here, and its bytes go no further."""

from __future__ import annotations

import base64
from typing import Any

import pytest

pytest.importorskip("elftools")

from ansible_collections.infera.baremetal.plugins.action import verbs_abi_info
from ansible_collections.infera.baremetal.tests.unit.plugins.action.run_action import run
from ansible_collections.infera.baremetal.tests.unit.plugins.plugin_utils.tiny_elf import Tiny

CONTENT = base64.b64encode(Tiny(abis=(4, 4)).build()).decode()


class Telling(verbs_abi_info.ActionModule):
    """Answers in the place of the module on the host, and notes whether the connection was silent meanwhile."""

    answer: dict[str, Any] = {}
    silent: list[bool] = []

    def _execute_module(self, *arguments: Any, **keywords: Any) -> dict[str, Any]:
        type(self).silent.append(self._play_context.no_log)
        return self.answer


def test_the_host_is_judged_and_the_librarys_bytes_are_not_returned() -> None:
    Telling.answer = {
        "host": {
            "kernel": {"abi": 1, "devices": [{"name": "ionic_0", "uverbs": "uverbs0", "abi": 1}]},
            "provider": {"path": "/lib/p", "real_path": "/lib/p", "sha256": "0" * 64, "content": CONTENT},
            "libibverbs": None,
            "suffixes": [],
            "driver_files": ["/etc/libibverbs.d/ionic.driver"],
        }
    }

    result = run(Telling)

    assert (result["changed"], result["compatible"], result["provider"]["min_abi"]) == (False, False, 4)
    assert "verbs_abi_mismatch" in [finding["code"] for finding in result["findings"]]
    assert CONTENT not in str(result) and Telling.silent[-1] is True


def test_a_host_that_fails_keeps_its_own_words() -> None:
    Telling.answer = {"failed": True, "msg": "no Python"}

    assert run(Telling)["msg"] == "no Python"


def test_a_controller_without_pyelftools_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    Telling.answer = {"host": {}}
    monkeypatch.setattr(verbs_abi_info, "HAS_ELFTOOLS", False)

    assert "pip install -r requirements.txt" in run(Telling)["msg"]
