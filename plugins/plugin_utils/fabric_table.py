# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fabric at a glance, in plain text."""

from __future__ import annotations

from typing import Any, Iterable, Mapping, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

MOST_PAIRS = 20
_WORST_FIRST = ("none", "one_way", "unknown", "partial", "full")


def lines(fabric: Mapping[str, Any], seen: Mapping[str, Any]) -> list[str]:
    """Hosts x rails, then pairs of hosts, the worst first."""
    return [*_hosts(fabric["pairs"], seen), "", *_pairs(fabric["pairs"])]


def _hosts(pairs: Sequence[Mapping[str, Any]], seen: Mapping[str, Any]) -> list[str]:
    peers: dict[str, int] = dict.fromkeys(seen, 0)
    good: dict[tuple[str, int], int] = {}
    for pair in pairs:
        for host in (pair["a"], pair["b"]):
            peers[host] = peers.get(host, 0) + 1
        for link in pair["rails"]:
            if link["ok"]:
                for key in ((pair["a"], link["a_rail"]), (pair["b"], link["b_rail"])):
                    good[key] = good.get(key, 0) + 1
    rails = {host: {rail["index"]: rail for rail in each.get("rails") or []} for host, each in seen.items()}
    width = max((len(own) for own in rails.values()), default=0)
    rows = [["host", *(f"rail {index}" for index in range(width))]]
    for host in sorted(peers, key=natural_key):
        cells = [
            _cell(rails.get(host, {}).get(index), good.get((host, index), 0), peers[host]) for index in range(width)
        ]
        rows.append([host, *cells])
    return _aligned(rows)


def _cell(rail: Mapping[str, Any] | None, good: int, peers: int) -> str:
    if rail is None:
        return "-"
    if good and good == peers:
        return "ok"
    if any(finding["severity"] == "error" for finding in rail.get("findings") or []):
        return "down" if rail.get("state") not in ("ACTIVE", None) else "error"
    return f"{good}/{peers}" if peers else "alone"


def _pairs(pairs: Sequence[Mapping[str, Any]]) -> list[str]:
    ordered = sorted(pairs, key=lambda pair: (_WORST_FIRST.index(pair["verdict"]), not pair["needed"]))
    listed = [pair for pair in ordered if pair["verdict"] != "full" or len(pairs) <= MOST_PAIRS][:MOST_PAIRS]
    rows = [["pair", "verdict", "rails", "fit"]]
    for pair in listed:
        good = sum(link["ok"] for link in pair["rails"])
        fit = "yes" if pair["fit"] else "NO, and serving needs it" if pair["needed"] else "no"
        rows.append([f"{pair['a']} - {pair['b']}", pair["verdict"], f"{good}/{len(pair['rails'])}", fit])
    more = len(pairs) - len(listed)
    full = sum(pair["verdict"] == "full" for pair in pairs)
    return [*_aligned(rows), *([f"{more} more pairs; {full} of all {len(pairs)} are full"] if more else [])]


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    table = [list(row) for row in rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in table]
