# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A strict reader for the YAML that a k3s config.yaml needs: scalars and lists of scalars by key, or one JSON object.

# stand-in: k3s has a whole YAML parser. Debian's python3-yaml is not on the nodes, and what this reader does not know it
refuses with the line's number rather than guess.
"""

from __future__ import annotations

import json
import re
from typing import Any

_KEY = re.compile(r"""(?P<key>[A-Za-z0-9][A-Za-z0-9_.+-]*|"[^"\\]+"|'[^']+')\s*:(?:\s+(?P<rest>.*))?$""")
_SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_DOUBLE_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN_MAY_NOT_START = "&*!|>%@`?{}],"


class ConfigError(Exception):
    """The file cannot be read; the message names the line."""


def parse(text: str) -> dict[str, str | list[str]]:
    """Values by key, as the text that k3s would put behind the flag: `true`, `0600`, a list of such; empty keys are left out.

    Raises ConfigError for anything outside the subset.
    """
    if text.lstrip().startswith("{"):
        return _from_json(text)
    result: dict[str, str | list[str]] = {}
    open_key = ""
    for number, raw in enumerate(text.splitlines(), start=1):
        line = _without_comment(raw).rstrip()
        stripped = line.strip()
        if not stripped or stripped == "---":
            continue
        if "\t" in line[: len(line) - len(line.lstrip())]:
            raise ConfigError(f"line {number}: a tab indents")
        if stripped == "-" or stripped.startswith("- "):
            items = result.get(open_key)
            if not open_key or not isinstance(items, list):
                raise ConfigError(f"line {number}: a list item without a key")
            items.append(_scalar(stripped[1:].strip(), number))
            continue
        match = _KEY.match(line)
        if match is None:
            raise ConfigError(f"line {number}: expected `key: value` at the line's start")
        key = match["key"].strip("'\"")
        if key in result:
            raise ConfigError(f"line {number}: {key} is given twice")
        rest = (match["rest"] or "").strip()
        open_key = "" if rest else key
        result[key] = _value(rest, number) if rest else []
    return {key: value for key, value in result.items() if value != []}


def _from_json(text: str) -> dict[str, str | list[str]]:
    try:
        document = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"not valid JSON: {error}") from error
    return {
        key: [_json_text(item) for item in value] if isinstance(value, list) else _json_text(value)
        for key, value in document.items()
    }


def _json_text(value: Any) -> str:
    if isinstance(value, (dict, list)):
        raise ConfigError("only scalars and lists of scalars are values of a k3s configuration")
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _value(text: str, number: int) -> str | list[str]:
    if not text.startswith("["):
        return _scalar(text, number)
    if not text.endswith("]"):
        raise ConfigError(f"line {number}: a flow list must end on its line")
    inner = text[1:-1].strip()
    items: list[str] = []
    while inner:
        quoted = _SINGLE_QUOTED.match(inner) or _DOUBLE_QUOTED.match(inner)
        item, rest = (quoted.group(), inner[quoted.end() :].lstrip()) if quoted else _split_comma(inner)
        if rest and not rest.startswith(","):
            raise ConfigError(f"line {number}: expected a comma in the list")
        items.append(_scalar(item.strip(), number))
        inner = rest[1:].strip()
    return items


def _split_comma(text: str) -> tuple[str, str]:
    position = text.find(",")
    return (text, "") if position < 0 else (text[:position], text[position:])


def _scalar(text: str, number: int) -> str:
    if text.startswith("'"):
        match = _SINGLE_QUOTED.fullmatch(text)
        if match is None:
            raise ConfigError(f"line {number}: the single quote is not closed")
        return match[1].replace("''", "'")
    if text.startswith('"'):
        if _DOUBLE_QUOTED.fullmatch(text) is None:
            raise ConfigError(f"line {number}: the double quote is not closed")
        try:
            return json.loads(text)
        except ValueError as error:
            raise ConfigError(f"line {number}: unknown escape in a quoted text") from error
    if text[:1] and (text[0] in _PLAIN_MAY_NOT_START or text.startswith(("- ", "["))):
        raise ConfigError(f"line {number}: {text[0]} may not start a plain value here")
    if ": " in text or text.endswith(":"):
        raise ConfigError(f"line {number}: a mapping is not a value of a k3s configuration")
    if text in ("~", "null"):
        return ""
    return text.lower() if text.lower() in ("true", "false") else text


def _without_comment(line: str) -> str:
    """The line without its comment: `#` at the start or after white space, outside quotes."""
    position = 0
    while position < len(line):
        character = line[position]
        starts_token = position == 0 or line[position - 1] in " \t[,"
        if character == "#" and (position == 0 or line[position - 1] in " \t"):
            return line[:position]
        if character in "'\"" and starts_token:
            quoted = (_SINGLE_QUOTED if character == "'" else _DOUBLE_QUOTED).match(line, position)
            position = quoted.end() if quoted else len(line)
            continue
        position += 1
    return line
