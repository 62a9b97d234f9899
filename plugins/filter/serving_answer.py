# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
name: serving_answer
short_description: The text of a chat completion
description:
  - Takes the text out of what M(ansible.builtin.uri) returned for C(/v1/chat/completions).
author:
  - infera.baremetal authors (@infera-project)
options:
  _input:
    description: The result of the request.
    type: dict
    required: true
"""

EXAMPLES = r"""
- name: Show the answer
  ansible.builtin.debug:
    msg: "{{ completion | infera.baremetal.serving_answer }}"
"""

RETURN = r"""
_value:
  description: The text; empty where there is none.
  type: str
"""

from typing import Any, Mapping


def serving_answer(answer: Mapping[str, Any]) -> str:
    from ansible_collections.infera.baremetal.plugins.plugin_utils.serving.verify import answer_text

    return answer_text(answer)


class FilterModule:
    def filters(self) -> dict[str, Any]:
        return {"serving_answer": serving_answer}
