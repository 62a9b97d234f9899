# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The cluster record: one JSON file per cluster, a key per stage."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import tempfile
from typing import Any, Mapping


class RecordError(Exception):
    """The record cannot be read or written; the message names the file and the remedy."""


def write_stage(path: str, stage: str, result: dict[str, Any]) -> None:
    """Replace C(stage) in the record at C(path) by C(result) and the time (UTC, ISO 8601); other stages stay.

    Two stages may write at once (jobs of two clusters' operators): a lock beside the file orders them.
    """
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with open(f"{path}.lock", "w", opener=_private, encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            record = read(path)
            now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
            record[stage] = {"at": now, **result}
            _replace(path, json.dumps(record, indent=2, sort_keys=True) + "\n")
    except OSError as error:
        raise RecordError(
            f"The cluster record {path} cannot be written: {error.strerror}. Set cluster_dir to a folder that can."
        ) from error


def _private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def address_of(host: str, variables: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    """The address that a host advertises: the inventory's or this run's, else the one that it had when it joined; empty if none is known."""
    node = variables.get("k3s_node_name") or host
    known = (record.get(f"k3s/{node}") or {}).get("node") or {}
    return str(variables.get("cluster_address") or known.get("address") or "")


def read(path: str) -> dict[str, Any]:
    """All stages of a record; empty where there is none yet. Raises RecordError."""
    try:
        with open(path, encoding="utf-8") as handle:
            record = json.load(handle)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise RecordError(
            f"The cluster record {path} is not JSON ({error}). Move it away; the next run writes a new one."
        ) from error
    if not isinstance(record, dict):
        raise RecordError(f"The cluster record {path} holds no object. Move it away; the next run writes a new one.")
    return record


def _replace(path: str, text: str) -> None:
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".record-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
