# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The fabric as one HTML file: a heat map of pairs and rails, and behind every cell what was measured and what to do.

It needs no network and no script, says with glyphs what it says with colours, and prints. Every text from outside is escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any, Iterable, Iterator, Mapping, Sequence

from ansible_collections.infera.baremetal.plugins.module_utils.findings import SEVERITIES
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

# More pairs than this: those that are full are counted in the map, and have no table of their own.
MOST_FULL_PAIRS = 300
GLYPHS = {"full": "✓", "partial": "◐", "one_way": "◁", "none": "✕", "unknown": "?"}
WORDS = {
    "full": "all rails, both ways",
    "partial": "some rails",
    "one_way": "one end only",
    "none": "no rail",
    "unknown": "not measured",
}
_WORST_FIRST = ("none", "one_way", "unknown", "partial", "full")

STYLE = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b2026; --soft: #59636e; --line: #d5dbe1; --card: #f6f8fa;
  --full: #d9f2e1; --full-ink: #0a4a27; --partial: #fdedc9; --partial-ink: #5e3c00; --one_way: #fddfcc; --one_way-ink: #6e2a00;
  --none: #f9d2d2; --none-ink: #751010; --unknown: #e7eaed; --unknown-ink: #363d45; --link: #0550ae; }
@media (prefers-color-scheme: dark) { :root { --page: #101418; --ink: #e6ebf0; --soft: #9fabb7; --line: #2f3842; --card: #181e24;
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
.many td { min-width: 1.7rem; font-size: .8rem; } .many td a, .many td span { padding: .2rem; } .self { background: none; }
.needed { box-shadow: inset 0 0 0 2px currentColor; }
.list td, .list th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid var(--line); border-radius: 0; vertical-align: top; }
  .list { border-spacing: 0; width: 100%; }
.list .state { white-space: nowrap; } .number { text-align: right !important; white-space: nowrap; }
.full { background: var(--full); color: var(--full-ink); } .partial, .warning { background: var(--partial); color: var(--partial-ink); }
.one_way { background: var(--one_way); color: var(--one_way-ink); } .none, .error { background: var(--none); color: var(--none-ink); }
.unknown, .info { background: var(--unknown); color: var(--unknown-ink); }
.finding { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: .6rem .8rem; margin: .5rem 0; }
.chip { border-radius: .3rem; padding: .05rem .45rem; font-size: .82rem; font-weight: 600; }
.pair { border: 1px solid var(--line); border-radius: .5rem; padding: .7rem .8rem; margin: .7rem 0; } .pair:target { outline: 3px solid var(--link); }
summary { cursor: pointer; } .wrap { overflow-wrap: anywhere; }
@media (max-width: 40rem) { body { padding: 1rem .7rem 3rem; } .list thead { display: none; }
  .list td { display: block; border: 0; padding: .1rem .4rem; } .list tr { display: block; border-bottom: 1px solid var(--line); padding: .3rem 0; }
  .number { text-align: left !important; } }
@media print { :root { color-scheme: light; } body { max-width: none; font-size: 11px; } .pair, .finding, tr { break-inside: avoid; }
  a { color: inherit; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; } details > * { display: block; } }
"""


def page(fabric: Mapping[str, Any], seen: Mapping[str, Any], cluster: str, at: str) -> str:
    """The page. C(fabric) and C(seen) as the filters of these names return them; C(at): when it was measured, for people."""
    hosts = sorted({*seen, *(pair[end] for pair in fabric["pairs"] for end in "ab")}, key=natural_key)
    parts = [
        *_head(fabric, hosts, cluster, at),
        *_findings(fabric["findings"]),
        *_map(fabric["pairs"], hosts),
        *_rails(seen, hosts),
        *_details(fabric["pairs"], seen),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _head(fabric: Mapping[str, Any], hosts: Sequence[str], cluster: str, at: str) -> Iterator[str]:
    pairs = fabric["pairs"]
    counts = {verdict: sum(pair["verdict"] == verdict for pair in pairs) for verdict in WORDS}
    unfit = sum(pair["needed"] and not pair["fit"] for pair in pairs)
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
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
            f'<p class="wrap">{escape(finding["message"])}{why}</p><p class="wrap"><b>Fix:</b> <code>{escape(finding["fix"])}</code></p></div>'
        )


def _map(pairs: Sequence[Mapping[str, Any]], hosts: Sequence[str]) -> Iterator[str]:
    by_hosts = {frozenset((pair["a"], pair["b"])): (number, pair) for number, pair in enumerate(pairs)}
    shown = {number for number, _pair in _with_details(pairs)}
    many = " many" if len(hosts) > 12 else ""
    yield '<h2 id="pairs">Pairs of hosts</h2><p class="soft">Good rails of all; a frame marks pairs of prefill and decode. A cell leads to its rails.</p>'
    yield '<ul class="key">'
    yield from (f'<li class="{verdict}">{GLYPHS[verdict]} {words}</li>' for verdict, words in WORDS.items())
    yield f'</ul><div class="wide"><table class="map{many}"><thead><tr><td></td>'
    yield from (f'<th scope="col"><span>{escape(host)}</span></th>' for host in hosts)
    yield "</tr></thead><tbody>"
    for row in hosts:
        cells = [f'<th scope="row">{escape(row)}</th>']
        for column in hosts:
            if row == column:
                cells.append('<td class="self" aria-hidden="true"></td>')
                continue
            number, pair = by_hosts.get(frozenset((row, column)), (-1, None))
            cells.append(_cell(number, pair, number in shown, bool(many)))
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _cell(number: int, pair: Mapping[str, Any] | None, linked: bool, short: bool) -> str:
    if pair is None:
        return '<td class="unknown"><span>?</span></td>'
    verdict = pair["verdict"]
    good, total = sum(link["ok"] for link in pair["rails"]), len(pair["rails"])
    figure = "" if verdict == "unknown" or (short and verdict == "full") else f" {good}/{total}"
    label = escape(f"{pair['a']} and {pair['b']}: {good} of {total} rails, {WORDS[verdict]}", quote=True)
    text = f"{GLYPHS[verdict]}{figure}"
    needed = " needed" if pair["needed"] else ""
    inner = (
        f'<a href="#pair-{number}" aria-label="{label}" title="{label}">{text}</a>'
        if linked
        else f'<span title="{label}">{text}</span>'
    )
    return f'<td class="{verdict}{needed}">{inner}</td>'


def _rails(seen: Mapping[str, Any], hosts: Sequence[str]) -> Iterator[str]:
    width = max((len(each.get("rails") or []) for each in seen.values()), default=0)
    if not width:
        return
    yield '<h2 id="rails">Rails of each host</h2><p class="soft">State, rate in Gb/s, index of the GID that is used. Hover for address and firmware.</p>'
    yield '<div class="wide"><table class="map"><thead><tr><td></td>'
    yield from (f'<th scope="col"><span>rail {index}</span></th>' for index in range(width))
    yield "</tr></thead><tbody>"
    for host in hosts:
        told = seen.get(host, {})
        rails = {rail["index"]: rail for rail in told.get("rails") or []}
        cells = [f'<th scope="row">{escape(host)}</th>']
        if told.get("error"):
            cells.append(
                f'<td class="unknown" colspan="{width}"><span class="wrap">? {escape(str(told["error"]))}</span></td>'
            )
        else:
            cells += [_rail(rails.get(index)) for index in range(width)]
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table></div>"


def _rail(rail: Mapping[str, Any] | None) -> str:
    if rail is None:
        return '<td class="unknown"><span title="no such rail">–</span></td>'
    findings = rail.get("findings") or []
    worst = min((SEVERITIES.index(each["severity"]) for each in findings), default=len(SEVERITIES))
    kind, glyph = (("none", "✕"), ("partial", "◐"))[worst] if worst < 2 else ("full", "✓")
    rate, gid = rail.get("rate_gbps"), rail.get("gid_index")
    text = f"{glyph} {f'{rate:g}' if rate else '?'} · {'–' if gid is None else gid}"
    facts = [
        f"{rail.get('rdma_device', '')} {rail.get('netdev', '')}",
        f"{rail.get('state', '')}, MTU {rail.get('mtu')}",
        str(rail.get("address") or "no address"),
        f"firmware {rail.get('fw_version') or 'unknown'}",
        *(each["message"] for each in findings),
    ]
    return f'<td class="{kind}"><span title="{escape(chr(10).join(facts), quote=True)}">{text}</span></td>'


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
    names = {
        (host, rail["index"]): str(rail.get("netdev") or rail.get("rdma_device") or f"rail {rail['index']}")
        for host, told in seen.items()
        for rail in told.get("rails") or []
    }
    yield '<h2 id="details">Rails of each pair</h2>'
    for number, pair in _with_details(pairs):
        good = sum(link["ok"] for link in pair["rails"])
        needed = ", needed by serving" if pair["needed"] else ""
        yield (
            f'<section class="pair" id="pair-{number}"><h3>{escape(pair["a"])} – {escape(pair["b"])} '
            f'<span class="chip {pair["verdict"]}">{GLYPHS[pair["verdict"]]} {good} of {len(pair["rails"])} rails</span> '
            f'<span class="soft">{"fit" if pair["fit"] else "not fit"}{needed}</span></h3>'
        )
        yield from _table(pair, probes, names)
        yield "</section>"


def _table(pair: Mapping[str, Any], probes: Mapping[Any, Mapping[str, Any]], names: Mapping[Any, str]) -> Iterator[str]:
    a, b = pair["a"], pair["b"]
    yield (
        f'<table class="list"><thead><tr><th>{escape(a)}</th><th>{escape(b)}</th><th>state</th><th class="number">round trip, ms</th>'
        '<th class="number">jumbo</th><th>reason</th></tr></thead><tbody>'
    )
    for link in pair["rails"]:
        there = probes.get((a, link["a_rail"], b, link["b_rail"]))
        back = probes.get((b, link["b_rail"], a, link["a_rail"]))
        verdicts = [
            probe["verdict"].replace("_", " ") for probe in (there, back) if probe and probe["verdict"] != "routable"
        ]
        state = "✓ good" if link["ok"] else f"✕ {' / '.join(verdicts) or 'no partner'}"
        yield (
            f"<tr><td>{escape(names.get((a, link['a_rail']), '–'))}</td><td>{escape(names.get((b, link['b_rail']), '–'))}</td>"
            f'<td class="state"><span class="chip {"full" if link["ok"] else "none"}">{escape(state)}</span></td>'
            f'<td class="number">{_times((there, back))}</td><td class="number">{_jumbo((there, back))}</td><td class="wrap">{escape(link["reason"])}</td></tr>'
        )
    yield "</tbody></table>"


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
