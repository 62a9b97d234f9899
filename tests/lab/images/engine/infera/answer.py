# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the lab's model says: the one place where prompt, KV cache and answer are related.

Prefill computes `kv_of(messages)`; decode answers with `answer_from(messages, kv)`, so a KV cache that was lost, cut or
mixed up gives another answer. `expected_answer(prompt)` does both, for tests to compare with.
"""

from __future__ import annotations

import hashlib
import re
import typing as t

KV_BYTES_PER_TOKEN = 1024
ANSWER_WORDS = 8

WORDS = (
    "amber anchor basil beacon birch bramble candle cedar cinder clover cobalt copper coral crystal delta ember fable falcon "
    "fern flint garnet ginger glacier granite harbor hazel heron indigo iris island ivory jasper juniper kelp lantern laurel "
    "linen lotus maple marble meadow mercury mosaic nectar nutmeg oak olive onyx opal orchid pebble pepper quartz raven reef "
    "saffron sage silver slate spruce thistle topaz violet willow"
).split()

Message = tuple[str, str]
"""(role, text)"""
KvCache = t.Union[bytes, bytearray]


class PromptError(ValueError):
    """The request's prompt cannot be used; the message says why."""


def messages_of(request: dict[str, t.Any]) -> list[Message]:
    """The prompt of a chat request (`messages`) or a completion request (`prompt`, which counts as one user message)."""
    if "messages" not in request:
        prompt = request.get("prompt")
        if not isinstance(prompt, str) or not prompt.strip():
            raise PromptError("prompt: a non-empty text is required")
        return [("user", prompt)]
    messages = request["messages"]
    if not isinstance(messages, list) or not messages:
        raise PromptError("messages: a non-empty list is required")
    return [(_role(message, index), _text(message, index)) for index, message in enumerate(messages)]


def _role(message: t.Any, index: int) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        raise PromptError(f"messages[{index}].role: a text is required")
    return role


def _text(message: dict[str, t.Any], index: int) -> str:
    content = message.get("content")
    if isinstance(content, list):
        # The parts form of the chat API; the lab's model reads text only.
        parts = [
            part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content
        ]
        content = "".join(parts) if all(isinstance(part, str) for part in parts) else None
    if not isinstance(content, str):
        raise PromptError(f"messages[{index}].content: a text is required")
    return content


def tokens_of(messages: t.Sequence[Message]) -> list[str]:
    """The prompt's tokens: one for each message's role, then the text's words and signs."""
    return [token for role, text in messages for token in (f"<{role}>", *re.findall(r"\w+|[^\w\s]", text))]


def kv_of(messages: t.Sequence[Message]) -> KvCache:
    """The KV cache of a prompt, KV_BYTES_PER_TOKEN for each token, each block depending on all tokens before it."""
    state = b"lab"
    kv = bytearray()
    for token in tokens_of(messages):
        state = hashlib.sha256(state + token.encode("utf-8", "surrogatepass")).digest()
        kv += hashlib.shake_256(state).digest(KV_BYTES_PER_TOKEN)
    return kv


def answer_from(messages: t.Sequence[Message], kv: KvCache) -> list[str]:
    """The answer's pieces, to be joined without anything between; the last words come from the KV cache alone."""
    question = next((text for role, text in reversed(messages) if role == "user"), messages[-1][1])
    words = [WORDS[byte % len(WORDS)] for byte in hashlib.sha256(kv).digest()[:ANSWER_WORDS]]
    text = f"The lab's answer to '{question}' is {' '.join(words)}."
    return re.findall(r"\s*\S+\s*$|\s*\S+", text)


def expected_answer(prompt: str | t.Sequence[Message], max_tokens: int | None = None) -> str:
    """What the lab answers to a user's message, to a completion's prompt, or to (role, text) messages."""
    messages = [("user", prompt)] if isinstance(prompt, str) else list(prompt)
    return "".join(answer_from(messages, kv_of(messages))[:max_tokens])
