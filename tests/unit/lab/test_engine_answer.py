# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the lab's model says, and that it hangs on the KV cache."""

from __future__ import annotations

import hashlib
import re

import pytest
from ansible_collections.infera.baremetal.tests.lab.images.engine.infera.answer import (
    WORDS,
    PromptError,
    answer_from,
    expected_answer,
    kv_of,
    messages_of,
    tokens_of,
)


def test_an_answer_quotes_the_question_and_ends_in_eight_words() -> None:
    answer = expected_answer("Which way?")

    match = re.fullmatch(r"The lab's answer to 'Which way\?' is ((?:[a-z]+ ){7}[a-z]+)\.", answer)
    assert match
    assert set(match[1].split()) <= set(WORDS)


def test_the_words_of_a_kv_cache_worked_out_by_hand() -> None:
    # sha256("") begins e3 b0 c4 42 98 fc 1c 14; each byte modulo 64 is 35 48 4 2 24 60 28 20.
    assert hashlib.sha256(b"").hexdigest().startswith("e3b0c44298fc1c14")
    assert len(WORDS) == 64

    answer = "".join(answer_from([("user", "x")], b""))

    assert (
        answer
        == "The lab's answer to 'x' is " + " ".join(WORDS[index] for index in (35, 48, 4, 2, 24, 60, 28, 20)) + "."
    )


def test_another_kv_cache_is_another_answer() -> None:
    messages = [("user", "Which way?")]
    kv = kv_of(messages)
    damaged = kv[:-1] + bytes([kv[-1] ^ 1])

    assert answer_from(messages, kv) != answer_from(messages, damaged)
    assert answer_from(messages, kv) != answer_from(messages, kv[:-1024])


def test_a_kv_cache_has_1_kib_for_each_token_and_knows_the_order() -> None:
    assert tokens_of([("system", "Be brief."), ("user", "Hi")]) == ["<system>", "Be", "brief", ".", "<user>", "Hi"]
    assert len(kv_of([("system", "Be brief."), ("user", "Hi")])) == 6 * 1024
    assert kv_of([("user", "a b")])[-1024:] != kv_of([("user", "b b")])[-1024:]


def test_a_prefix_has_the_prefix_of_the_kv_cache() -> None:
    assert kv_of([("user", "one two three")]).startswith(kv_of([("user", "one two")]))


def test_white_space_of_the_question_is_kept_and_a_limit_cuts() -> None:
    assert expected_answer(" a\n  b ").startswith("The lab's answer to ' a\n  b ' is ")
    assert expected_answer("a", max_tokens=2) == "The lab's"


def test_a_chat_of_one_message_and_a_completion_agree() -> None:
    chat = messages_of(
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi "}, {"type": "text", "text": "you"}]}]}
    )

    assert chat == messages_of({"prompt": "Hi you"}) == [("user", "Hi you")]


@pytest.mark.parametrize(
    "request_body",
    [
        {},
        {"prompt": "  "},
        {"prompt": ["a"]},
        {"messages": "a"},
        {"messages": ["a"]},
        {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
    ],
)
def test_what_is_no_prompt(request_body: dict[str, object]) -> None:
    with pytest.raises(PromptError):
        messages_of(request_body)
