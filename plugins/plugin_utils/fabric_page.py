# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fabric as one HTML file: a heat map of pairs and rails, and behind every cell what was measured and what to do.

It needs no network and no script, says with glyphs what it says with colours, and prints. Every text from outside is escaped.
What a cell stands for is text below it, reached by a link: nothing is for the mouse alone.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.findings import SEVERITIES
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

# More pairs than this: those that are full are counted in the map, and have no table of their own.
MOST_FULL_PAIRS = 300
# More hosts than this: a cell of the map is one character wide, so that 64 hosts fit a screen and a sheet.
MOST_WIDE_HOSTS = 12
GLYPHS = {"full": "✓", "partial": "◐", "one_way": "◁", "none": "✕", "unknown": "?"}
WORDS = {
    "full": "all rails, both ways",
    "partial": "some rails",
    "one_way": "one end only",
    "none": "no rail",
    "unknown": "not measured",
}
_WORST_FIRST = ("none", "one_way", "unknown", "partial", "full")

# Nothing is loaded and nothing runs, whatever a host calls itself.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b2026; --soft: #59636e; --line: #d5dbe1; --card: #f6f8fa;
  --full: #d9f2e1; --full-ink: #0a4a27; --partial: #fdedc9; --partial-ink: #5e3c00; --one_way: #fddfcc; --one_way-ink: #6e2a00;
  --none: #f9d2d2; --none-ink: #751010; --unknown: #e7eaed; --unknown-ink: #363d45; --link: #0550ae; }
@media screen and (prefers-color-scheme: dark) { :root { --page: #101418; --ink: #e6ebf0; --soft: #9fabb7; --line: #2f3842; --card: #181e24;
  --full: #123d28; --full-ink: #b9f1cf; --partial: #46340a; --partial-ink: #ffe4a6; --one_way: #4f260e; --one_way-ink: #ffd2b8;
  --none: #551b1b; --none-ink: #ffcccc; --unknown: #2b3138; --unknown-ink: #d3dae1; --link: #79b8ff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 78rem; padding: 1.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; } h3 { font-size: 1rem; margin: 0; }
p { margin: .3rem 0; } .soft { color: var(--soft); } a { color: var(--link); }
code { font: .88em/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: .5rem; margin: 1rem 0 0; padding: 0; list-style: none; }
.facts li, .key li { border-radius: .4rem; padding: .2rem .6rem; }
  .key { display: flex; flex-wrap: wrap; gap: .4rem; padding: 0; list-style: none; font-size: .85rem; }
.wide { overflow-x: auto; } table { border-collapse: separate; border-spacing: 2px; font-variant-numeric: tabular-nums; }
th { font-weight: 600; text-align: left; padding: .15rem .5rem; white-space: nowrap; } td { padding: 0; text-align: center; border-radius: .3rem; }
.map td { min-width: 3.1rem; } .map td a, .map td span { display: block; padding: .35rem .45rem; color: inherit; text-decoration: none;
  white-space: nowrap; border-radius: .3rem; }
.map td a:hover, .map td a:focus-visible { outline: 2px solid currentColor; outline-offset: -2px; }
.map thead th { vertical-align: bottom; text-align: center; } .many thead th span { writing-mode: vertical-rl; transform: rotate(180deg); }
.map th { max-width: 9rem; overflow: hidden; text-overflow: ellipsis; }
.map tbody th { position: sticky; left: 0; background: var(--page); }
.many { border-spacing: 1px; font-size: .75rem; } .many td { min-width: .95rem; } .many td a, .many td span { padding: .1rem 0; }
  .many th { padding: 0 .2rem; } .many thead th { padding: .2rem 0; line-height: 1; }
  .many thead span { display: inline-block; max-height: 7rem; overflow: hidden; text-overflow: ellipsis; } .many th { max-width: 7rem; }
.needed { box-shadow: inset 0 0 0 2px currentColor; }
  .many .needed { box-shadow: inset 0 0 0 1px color-mix(in srgb, currentColor 45%, transparent); }
.chip { white-space: nowrap; }
.list td, .list th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); border-radius: 0; vertical-align: top; }
  .list { border-spacing: 0; width: 100%; }
.full { background: var(--full); color: var(--full-ink); } .partial, .warning { background: var(--partial); color: var(--partial-ink); }
.one_way { background: var(--one_way); color: var(--one_way-ink); } .none, .error { background: var(--none); color: var(--none-ink); }
.unknown, .info { background: var(--unknown); color: var(--unknown-ink); }
.finding { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; margin: .5rem 0; }
.chip { border-radius: .3rem; padding: .05rem .45rem; font-size: .82rem; font-weight: 600; }
.part { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .8rem; margin: .7rem 0; } .part:target { outline: 3px solid var(--link); }
h3 .back { float: right; font-weight: 400; font-size: .82rem; } .wrap { overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1rem .7rem 3rem; } .list thead { display: none; }
  .list td { display: inline-block; border: 0; padding: .1rem .4rem; } .list tr { display: block; border-bottom: 1px solid var(--line); padding: .3rem 0; }
  .list td::before { content: attr(data-label) " "; color: var(--soft); } .list td:empty { display: none; } }
@page { size: landscape; margin: 10mm; }
@media print { :root { color-scheme: light; font-size: 11px; } body { max-width: none; padding: 0; font-size: 1rem; }
  .finding, tr { break-inside: avoid; }
  h2, h3 { break-after: avoid; } a { color: inherit; } .back { display: none; } .wide { overflow: visible; }
  .many { font-size: 8px; } .many td { min-width: 11px; } * { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }
"""


def page(fabric: Mapping[str, Any], seen: Mapping[str, Any], cluster: str, at: str) -> str:
    """The page. C(fabric) and C(seen) as the filters of these names return them; C(at): when it was measured, for people."""
    hosts = sorted({*seen, *(pair[end] for pair in fabric["pairs"] for end in "ab")}, key=natural_key)
    parts = [
        *_head(fabric, hosts, cluster, at),
        *_findings(fabric["findings"]),
        *_map(fabric["pairs"], hosts, seen),
        *_rails(seen, hosts),
        *_details(fabric["pairs"], seen),
        *_hosts(seen, hosts),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _head(fabric: Mapping[str, Any], hosts: Sequence[str], cluster: str, at: str) -> Iterator[str]:
    pairs = fabric["pairs"]
    counts = {verdict: sum(pair["verdict"] == verdict for pair in pairs) for verdict in WORDS}
    unfit = sum(pair["needed"] and not pair["fit"] for pair in pairs)
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield f"<title>Fabric of {escape(cluster)}</title><style>{STYLE}</style></head><body><main>"
    yield f"<h1>Fabric of {escape(cluster)}</h1>"
    yield f'<p class="soft">Measured {escape(at)}. {_count(len(hosts), "host")}, {_count(len(pairs), "pair")} of hosts, each rail tried from both ends.</p>'
    yield '<ul class="facts">'
    if unfit:
        yield f'<li class="error"><b>{_count(unfit, "pair")}</b> that serving needs: not fit</li>'
    elif any(pair["needed"] for pair in pairs):
        yield '<li class="full"><b>Fit</b>: every pair that serving needs</li>'
    yield from (
        f'<li class="{verdict}">{GLYPHS[verdict]} <b>{counts[verdict]}</b> {WORDS[verdict]}</li>'
        for verdict in WORDS
        if counts[verdict]
    )
    yield "</ul>"


def _findings(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not findings:
        return
    yield '<h2 id="findings">What was found, and what to do</h2>'
    for finding in sorted(findings, key=lambda each: SEVERITIES.index(each["severity"])):
        why = f' <span class="soft">({escape(finding["why"])})</span>' if finding.get("why") else ""
        yield (
            f'<div class="finding"><p><span class="chip {finding["severity"]}">{finding["severity"]}</span> '
            f"<b>{escape(finding['where'])}</b> <code>{escape(finding['code'])}</code></p>"
            f'<p class="wrap">{escape(finding["message"])}{why}</p><p class="wrap"><b>Fix:</b> {_fix(finding["fix"])}</p></div>'
        )


def _fix(text: str) -> str:
    """What stands between backquotes is a command; several of them have a line each."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text)).replace("</code>; <code>", "</code><br><code>")


def _map(pairs: Sequence[Mapping[str, Any]], hosts: Sequence[str], seen: Mapping[str, Any]) -> Iterator[str]:
    by_hosts = {frozenset((pair["a"], pair["b"])): (number, pair) for number, pair in enumerate(pairs)}
    shown = {number for number, _pair in _with_details(pairs)}
    silent = {host: f"#host-{number}" for number, host in enumerate(hosts) if not seen.get(host, {}).get("rails")}
    many = " many" if len(hosts) > MOST_WIDE_HOSTS else ""
    leads = "A cell leads" if len(pairs) <= MOST_FULL_PAIRS else "A cell that is not full leads"
    figure = "A number: good rails, where only some are" if many else "Good rails of all"
    yield f'<h2 id="pairs">Pairs of hosts</h2><p class="soft">{figure}; a frame marks pairs of prefill and decode. {leads} to its rails.</p>'
    yield '<ul class="key">'
    yield from (f'<li class="{verdict}">{GLYPHS[verdict]} {words}</li>' for verdict, words in WORDS.items())
    yield f'</ul><div class="wide"><table class="map{many}"><thead><tr><td></td>'
    yield from (f'<th scope="col" title="{escape(host)}"><span>{escape(host)}</span></th>' for host in hosts)
    yield "</tr></thead><tbody>"
    for row in hosts:
        cells = [f'<th scope="row" title="{escape(row)}">{escape(row)}</th>']
        for column in hosts:
            if row == column:
                cells.append('<td class="self" aria-hidden="true"></td>')
                continue
            number, pair = by_hosts.get(frozenset((row, column)), (-1, None))
            target = f"#pair-{number}" if number in shown else silent.get(row) or silent.get(column)
            cells.append(_cell(pair, target, bool(many)))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _cell(pair: Mapping[str, Any] | None, target: str | None, narrow: bool) -> str:
    if pair is None:
        return '<td class="unknown"><span>?</span></td>'
    verdict = pair["verdict"]
    good, total = sum(link["ok"] for link in pair["rails"]), len(pair["rails"])
    label = escape(f"{pair['a']} and {pair['b']}: {good} of {total} rails, {WORDS[verdict]}", quote=True)
    text = GLYPHS[verdict]
    if narrow and verdict == "partial":
        text = str(good)
    elif total and not narrow:
        text += f" {good}/{total}"
    needed = " needed" if pair["needed"] else ""
    return f'<td class="{verdict}{needed}">{_linked(target, label, text)}</td>'


def _linked(target: str | None, label: str, text: str) -> str:
    """C(label) (escaped) for the pointer and for readers of a screen, C(text) for the eye."""
    if target is None:
        return f'<span title="{label}">{text}</span>'
    return f'<a href="{target}" aria-label="{label}" title="{label}">{text}</a>'


def _rails(seen: Mapping[str, Any], hosts: Sequence[str]) -> Iterator[str]:
    columns = sorted({rail["index"] for told in seen.values() for rail in told.get("rails") or []})
    yield '<h2 id="rails">Rails of each host</h2><p class="soft">Rate in Gb/s. A cell leads to its address, GID, MTU and firmware.</p>'
    yield '<div class="wide"><table class="map"><thead><tr><td></td>'
    yield from (f'<th scope="col">rail {index}</th>' for index in columns)
    yield "</tr></thead><tbody>"
    for number, host in enumerate(hosts):
        told = seen.get(host, {})
        rails = {rail["index"]: rail for rail in told.get("rails") or []}
        cells = [f'<th scope="row">{escape(host)}</th>']
        if rails:
            cells += [_rail(number, host, rails.get(index)) for index in columns]
        else:
            cells.append(
                f'<td class="unknown" colspan="{len(columns) or 1}"><a href="#host-{number}">? {escape(_silence(told))}</a></td>'
            )
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _silence(told: Mapping[str, Any]) -> str:
    return "not measured" if told.get("error") or "rails" not in told else "no rails"


def _rail(number: int, host: str, rail: Mapping[str, Any] | None) -> str:
    if rail is None:
        return '<td class="unknown"><span title="no such rail">–</span></td>'
    kind, glyph = _state(rail)
    label = escape(f"{host}, {_name(rail)}: {rail.get('state') or 'state unknown'}", quote=True)
    return f'<td class="{kind}">{_linked(f"#host-{number}", label, f"{glyph} {_rate(rail)}")}</td>'


def _state(rail: Mapping[str, Any]) -> tuple[str, str]:
    worst = {finding["severity"] for finding in rail.get("findings") or []}
    return ("none", "✕") if "error" in worst else ("partial", "◐") if "warning" in worst else ("full", "✓")


def _name(rail: Mapping[str, Any]) -> str:
    return str(rail.get("netdev") or rail.get("rdma_device") or f"rail {rail['index']}")


def _rate(rail: Mapping[str, Any]) -> str:
    rate = rail.get("rate_gbps")
    return f"{rate:g}" if isinstance(rate, (int, float)) else "–"


def _hosts(seen: Mapping[str, Any], hosts: Sequence[str]) -> Iterator[str]:
    columns = ("rail", "device", "state", "Gb/s", "MTU", "GID", "address", "firmware", "findings")
    yield '<h2 id="hosts">Hosts in full</h2>'
    for number, host in enumerate(hosts):
        told = seen.get(host, {})
        yield f'<section class="part" id="host-{number}"><h3>{escape(host)} <a class="back" href="#rails">↑ rails</a></h3>'
        if told.get("error"):
            yield f'<p class="wrap"><span class="chip unknown">? not measured</span> {escape(str(told["error"]))}</p>'
        yield from (f'<p class="wrap">{_said(finding)}</p>' for finding in told.get("findings") or [])
        if told.get("rails"):
            yield from _listed(columns, (_facts(rail) for rail in told["rails"]))
        elif not told.get("error"):
            yield f"<p>{_silence(told)}</p>"
        yield "</section>"


def _facts(rail: Mapping[str, Any]) -> list[str]:
    kind, glyph = _state(rail)
    state = f'<span class="chip {kind}">{glyph} {escape(str(rail.get("state") or "unknown"))}</span>'
    plain = [
        _name(rail),
        rail.get("rdma_device"),
        rail.get("mtu"),
        rail.get("gid_index"),
        rail.get("address"),
        rail.get("fw_version"),
    ]
    name, device, mtu, gid, address, firmware = ("–" if each in (None, "") else escape(str(each)) for each in plain)
    findings = "<br>".join(_said(finding) for finding in rail.get("findings") or [])
    return [name, device, state, _rate(rail), mtu, gid, address, firmware, findings]


def _said(finding: Mapping[str, Any]) -> str:
    return f"<b>{finding['severity']}</b> {escape(finding['message'])} <b>Fix:</b> {_fix(finding['fix'])}"


def _listed(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Columns as text, rows as HTML. On a narrow screen each cell stands below the other, with its column's name."""
    yield f'<table class="list"><thead><tr>{"".join(f"<th>{escape(column)}</th>" for column in columns)}</tr></thead><tbody>'
    labels = [f'data-label="{escape(column)}"' for column in columns]
    for row in rows:
        yield f"<tr>{''.join(f'<td {label} class=wrap>{cell}</td>' for label, cell in zip(labels, row))}</tr>"
    yield "</tbody></table>"


def _with_details(pairs: Sequence[Mapping[str, Any]]) -> list[tuple[int, Mapping[str, Any]]]:
    """Pairs that have a table: those that are not full, and all of them in a fabric of moderate size. The worst first."""
    few = len(pairs) <= MOST_FULL_PAIRS
    kept = [(number, pair) for number, pair in enumerate(pairs) if pair["rails"] and (few or pair["verdict"] != "full")]
    return sorted(kept, key=lambda each: (_WORST_FIRST.index(each[1]["verdict"]), not each[1]["needed"], each[0]))


def _details(pairs: Sequence[Mapping[str, Any]], seen: Mapping[str, Any]) -> Iterator[str]:
    probes = {
        (host, probe["rail"], probe["peer"], probe["peer_rail"]): probe
        for host, told in seen.items()
        for probe in told.get("probes") or []
    }
    names = {(host, rail["index"]): _name(rail) for host, told in seen.items() for rail in told.get("rails") or []}
    yield '<h2 id="details">Rails of each pair</h2>'
    for number, pair in _with_details(pairs):
        good = sum(link["ok"] for link in pair["rails"])
        needed = ", needed by serving" if pair["needed"] else ""
        yield (
            f'<section class="part" id="pair-{number}"><h3>{escape(pair["a"])} – {escape(pair["b"])} '
            f'<span class="chip {pair["verdict"]}">{GLYPHS[pair["verdict"]]} {good} of {len(pair["rails"])} rails</span> '
            f'<span class="soft">{"fit" if pair["fit"] else "not fit"}{needed}</span> <a class="back" href="#pairs">↑ pairs</a></h3>'
        )
        columns = (pair["a"], pair["b"], "state", "round trip, ms", "jumbo", "reason")
        yield from _listed(columns, (_link(pair, link, probes, names) for link in pair["rails"]))
        yield "</section>"


def _link(
    pair: Mapping[str, Any], link: Mapping[str, Any], probes: Mapping[Any, Mapping[str, Any]], names: Mapping[Any, str]
) -> list[str]:
    a, b = (pair["a"], link["a_rail"]), (pair["b"], link["b_rail"])
    ends = (probes.get((*a, *b)), probes.get((*b, *a)))
    wrong = [probe["verdict"].replace("_", " ") for probe in ends if probe and probe["verdict"] != "routable"]
    state = "✓ good" if link["ok"] else f"✕ {' / '.join(dict.fromkeys(wrong)) or 'no partner'}"
    return [
        escape(_end(names, *a)),
        escape(_end(names, *b)),
        f'<span class="chip {"full" if link["ok"] else "none"}">{escape(state)}</span>',
        _times(ends),
        _jumbo(ends),
        escape(link["reason"]),
    ]


def _end(names: Mapping[Any, str], host: str, index: int | None) -> str:
    return "–" if index is None else names.get((host, index), f"rail {index}")


def _times(probes: Iterable[Mapping[str, Any] | None]) -> str:
    """Minimum / average / maximum over both directions."""
    times = [probe["echo"]["rtt_ms"] for probe in probes if probe and (probe.get("echo") or {}).get("received")]
    if not times:
        return "–"
    average = sum(each["avg"] for each in times) / len(times)
    return f"{min(each['min'] for each in times):.2f} / {average:.2f} / {max(each['max'] for each in times):.2f}"


def _jumbo(probes: Iterable[Mapping[str, Any] | None]) -> str:
    tried = [probe["jumbo"] for probe in probes if probe and probe.get("jumbo")]
    if not tried:
        return "–"
    return f"{tried[0]['size']} {'✓' if all(each['received'] for each in tried) else '✕'}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"
