# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Completions in the form of the OpenAI API, whole or as a stream."""

from __future__ import annotations

import json
import time
import typing as t
import uuid

from .answer import KvCache, Message, answer_from, tokens_of
from .web import Events, HttpError


def max_tokens_of(request: dict[str, t.Any]) -> int | None:
    """The longest answer that is wanted; None for any."""
    wanted = request.get("max_completion_tokens", request.get("max_tokens"))
    if wanted is not None and (not isinstance(wanted, int) or isinstance(wanted, bool) or wanted < 1):
        raise HttpError(400, f"max_tokens: a number from 1 is required, not {wanted!r}")
    return wanted


def completion(
    request: dict[str, t.Any],
    model: str,
    messages: t.Sequence[Message],
    kv: KvCache,
    provenance: dict[str, t.Any],
) -> dict[str, t.Any] | Events:
    """The answer to a chat or completion request; `provenance` goes along as `infera`."""
    pieces = answer_from(messages, kv)
    limit = max_tokens_of(request)
    reason = "length" if limit is not None and limit < len(pieces) else "stop"
    pieces = pieces[:limit]
    chat = "messages" in request
    prompt_tokens = len(tokens_of(messages))
    frame = {
        "id": f"{'chatcmpl' if chat else 'cmpl'}-{uuid.uuid4().hex}",
        "object": "chat.completion" if chat else "text_completion",
        "created": int(time.time()),
        "model": model,
    }
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": len(pieces),
        "total_tokens": prompt_tokens + len(pieces),
    }
    if request.get("stream"):
        return Events(_chunks(frame, pieces, chat, reason, usage, provenance))
    text = "".join(pieces)
    said: dict[str, t.Any] = {"message": {"role": "assistant", "content": text}} if chat else {"text": text}
    return frame | {"choices": [{"index": 0, "finish_reason": reason} | said], "usage": usage, "infera": provenance}


def _chunks(
    frame: dict[str, t.Any],
    pieces: list[str],
    chat: bool,
    reason: str,
    usage: dict[str, int],
    provenance: dict[str, t.Any],
) -> t.Iterator[bytes]:
    if chat:
        frame = frame | {"object": "chat.completion.chunk"}
    for piece in pieces:
        said: dict[str, t.Any] = {"delta": {"role": "assistant", "content": piece}} if chat else {"text": piece}
        yield _event(frame | {"choices": [{"index": 0, "finish_reason": None} | said]})
    last: dict[str, t.Any] = {"delta": {}} if chat else {"text": ""}
    yield _event(
        frame | {"choices": [{"index": 0, "finish_reason": reason} | last], "usage": usage, "infera": provenance}
    )
    yield b"data: [DONE]\n\n"


def _event(content: dict[str, t.Any]) -> bytes:
    return b"data: " + json.dumps(content).encode() + b"\n\n"
