# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The page: every cell leads to its reason, nothing from outside is markup, and nothing is loaded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.plugin_utils.fabric_page import page

VOID = {"meta", "br"}


def rail(index: int, *findings: dict[str, Any]) -> dict[str, Any]:
    return {
        "index": index,
        "rdma_device": f"ionic_{index}",
        "netdev": f"rail{index}",
        "state": "ACTIVE",
        "rate_gbps": 400.0,
        "mtu": 9000,
        "gid_index": 1,
        "address": f"fd00:a:{index}::2",
        "fw_version": "1.117",
        "findings": list(findings),
    }


def probe(
    own: int, peer: str, verdict: str = "routable", times: tuple[float, float, float] = (0.1, 0.2, 0.3)
) -> dict[str, Any]:
    ok = verdict in ("routable", "mtu_too_small")
    return {
        "rail": own,
        "peer": peer,
        "peer_rail": own,
        "verdict": verdict,
        "echo": {
            "sent": 3,
            "received": 3 * ok,
            "rtt_ms": dict(zip(("min", "avg", "max"), times if ok else [None] * 3)),
        },
        "jumbo": {"size": 8952, "received": int(verdict == "routable")} if ok else None,
    }


def link(index: int, ok: bool = True, reason: str = "") -> dict[str, Any]:
    return {"a_rail": index, "b_rail": index, "ok": ok, "reason": reason}


def pair(a: str, b: str, verdict: str, *links: dict[str, Any], needed: bool = False) -> dict[str, Any]:
    return {"a": a, "b": b, "rails": list(links), "verdict": verdict, "fit": verdict == "full", "needed": needed}


def finding(severity: str, message: str = "m", fix: str = "f") -> dict[str, Any]:
    return {"code": "rail_x", "severity": severity, "message": message, "fix": fix, "where": "a"}


def of(pairs: list[dict[str, Any]], seen: dict[str, Any], findings: list[dict[str, Any]] | None = None) -> str:
    return page({"pairs": pairs, "findings": findings or []}, seen, "east", "2026-12-01 02:10 UTC")


class Read(HTMLParser):
    """Tags that are open, ids and where links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"] or "")
        if "href" in given:
            self.links.append(given["href"] or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def section(text: str, name: str) -> str:
    """The text of a section, without markup."""
    found = re.search(rf'<section class="part" id="{name}">(.*?)</section>', text, re.S)
    assert found, name
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())


TWO = {
    "a": {"rails": [rail(0), rail(1)], "findings": [], "probes": [probe(0, "b"), probe(1, "b", "no_route")]},
    "b": {
        "rails": [rail(0), rail(1)],
        "findings": [],
        "probes": [probe(0, "a", times=(0.3, 0.4, 0.9)), probe(1, "a", "no_reply")],
    },
}
PARTIAL = pair("a", "b", "partial", link(0), link(1, False, "a: no way: ip -6 route replace"), needed=True)


def test_the_head_says_whose_fabric_it_is_and_when_it_was_measured():
    text = of([PARTIAL], TWO)

    assert "<title>Fabric of east</title>" in text
    assert "Measured 2026-12-01 02:10 UTC. 2 hosts, 1 pair of hosts" in text
    assert "<b>1 pair</b> that serving needs: not fit" in text


def test_a_fabric_that_serving_can_use_says_so():
    assert "<b>Fit</b>: every pair that serving needs" in of([pair("a", "b", "full", link(0), needed=True)], TWO)


def test_a_cell_gives_its_figure_and_leads_to_its_rails():
    text = of([PARTIAL], TWO)

    cell = 'class="partial needed"><a href="#pair-0" aria-label="a and b: 1 of 2 rails, some rails" title="a and b: 1 of 2 rails, some rails">◐ 1/2</a>'
    assert text.count(cell) == 2


def test_a_pair_shows_both_directions_and_the_reason_of_each_bad_rail():
    shown = section(of([PARTIAL], TWO), "pair-0")

    # The least of both ends, the mean of their means, and the most.
    assert "rail0 rail0 ✓ good 0.10 / 0.30 / 0.90 8952 ✓" in shown
    assert "rail1 rail1 ✕ no route / no reply – – a: no way: ip -6 route replace" in shown


def test_a_packet_of_full_size_that_is_lost_one_way_is_seen():
    seen = {
        "a": {"rails": [rail(0)], "probes": [probe(0, "b", "mtu_too_small")]},
        "b": {"rails": [rail(0)], "probes": [probe(0, "a")]},
    }

    assert "✕ mtu too small 0.10 / 0.20 / 0.30 8952 ✕" in section(
        of([pair("a", "b", "one_way", link(0, False))], seen), "pair-0"
    )


def test_a_rail_without_partner_is_named_and_its_other_end_is_empty():
    seven = {"a": TWO["a"], "b": {"rails": [rail(0)], "probes": []}}
    alone = {"a_rail": 1, "b_rail": None, "ok": False, "reason": "no rail of b answers rail1 of a"}

    assert "rail1 – ✕ no partner – – no rail of b answers" in section(
        of([pair("a", "b", "partial", link(0), alone)], seven), "pair-0"
    )


def test_a_host_has_its_rails_with_address_and_firmware_as_text():
    shown = section(of([PARTIAL], TWO), "host-0")

    assert "a ↑ rails" in shown and "rail0 ionic_0 ✓ ACTIVE 400 9000 1 fd00:a:0::2 1.117" in shown


@pytest.mark.parametrize(
    ("severity", "cell"), [("error", 'class="none"'), ("warning", 'class="partial"'), ("info", 'class="full"')]
)
def test_a_rail_is_as_bad_as_its_worst_finding(severity, cell):
    text = of([], {"a": {"rails": [rail(0, finding("info"), finding(severity, "is DOWN", "`ip link set` up"))]}})

    assert re.search(rf'<td {cell}><a href="#host-0"', text)
    assert f"{severity} is DOWN Fix: ip link set up" in section(text, "host-0")


def test_a_host_that_could_not_be_read_keeps_the_reason_and_its_cells_lead_there():
    seen = {"a": TWO["a"], "b": {"rails": [], "findings": [], "probes": [], "error": "no ssh"}}
    text = of([pair("a", "b", "unknown")], seen)

    assert text.count('<td class="unknown"><a href="#host-1"') == 2
    assert section(text, "host-1") == "b ↑ rails ? not measured no ssh"


def test_a_rail_of_which_nothing_is_known_is_shown_by_its_number():
    shown = section(of([], {"a": {"rails": [{"index": 0}]}}), "host-0")

    assert shown == "a ↑ rails rail device state Gb/s MTU GID address firmware findings rail 0 – ✓ unknown – – – – –"


def test_no_rails_at_all_is_a_page():
    text = of([pair("a", "b", "unknown")], {"a": {"rails": []}, "b": {"rails": []}})

    assert section(text, "host-0") == "a ↑ rails no rails"
    assert 'id="rails"' in text


def test_nothing_at_all_is_a_page():
    assert "0 hosts, 0 pairs of hosts" in of([], {})


def test_findings_come_the_worst_first_with_commands_set_off():
    text = of(
        [PARTIAL],
        TWO,
        [finding("warning", "second"), {**finding("error", "first", "on a: `ip <x>`; `ip y`"), "why": "measured"}],
    )

    assert text.index("first") < text.index("second")
    assert "<b>Fix:</b> on a: <code>ip &lt;x&gt;</code><br><code>ip y</code>" in text
    assert "(measured)" in text


EVIL = "<script>alert(1)</script>\"'&`x`"


def test_nothing_from_outside_becomes_markup():
    texts = ("rdma_device", "netdev", "state", "address", "fw_version", "mtu", "gid_index", "rate_gbps")
    bad = dict.fromkeys(texts, EVIL)
    seen = {
        EVIL: {
            "rails": [{**rail(0, finding("error", EVIL, EVIL)), **bad}],
            "findings": [finding("info", EVIL, EVIL)],
            "probes": [],
            "error": EVIL,
        },
        "b": {"rails": [], "error": EVIL},
    }
    found = {**finding("error", EVIL, EVIL), "where": EVIL, "code": EVIL, "why": EVIL}
    text = page(
        {"pairs": [pair(EVIL, "b", "none", link(0, False, EVIL)), pair("b", "c", "unknown")], "findings": [found]},
        seen,
        EVIL,
        EVIL,
    )

    read = Read(text)
    assert "script" not in read.tags and read.open == []
    assert "<script" not in text


def hosts(count: int) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    names = [f"gpu{number}" for number in range(1, count + 1)]
    pairs = [
        pair(a, b, "partial", link(0), link(1, False, "r"))
        if (a, b) == ("gpu1", "gpu2")
        else pair(a, b, "full", link(0), link(1))
        for place, a in enumerate(names)
        for b in names[place + 1 :]
    ]
    return pairs, {name: {"rails": [rail(0), rail(1)], "probes": []} for name in names}


@pytest.mark.parametrize("count", [1, 2, 13, 26])
def test_every_link_leads_somewhere_and_every_tag_is_closed(count):
    read = Read(of(*hosts(count)))

    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    assert {target.removeprefix("#") for target in read.links} <= set(read.ids)


def test_hosts_stand_in_natural_order():
    text = of(*hosts(11))

    assert re.findall(r'<th scope="row"[^>]*>(gpu\d+)</th>', text)[:11] == [f"gpu{number}" for number in range(1, 12)]


def test_many_hosts_have_cells_of_one_character():
    text = of(*hosts(13))

    assert set(re.findall(r'<td class="(?:full|partial)"><a href="#pair-[^>]*>([^<]*)<', text)) == {"✓", "1"}


def test_of_very_many_pairs_only_those_that_are_not_full_have_a_table():
    # 25 hosts are 300 pairs, 26 are 325.
    assert len(re.findall(r'id="pair-\d+"', of(*hosts(25)))) == 300
    assert re.findall(r'id="pair-\d+"', of(*hosts(26))) == ['id="pair-0"']


def test_the_page_loads_nothing():
    text = of([PARTIAL], TWO)

    assert "default-src 'none'" in text
    assert not re.search(r"https?:|url\(|@import|<script|<link|<img| src=", text)
