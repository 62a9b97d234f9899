# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The page in headless Chromium, as a reader has it: light and dark, a desk and a phone, by keyboard, without network.

The page runs no script. The test gives its copy one, which looks at the layout and leaves what it saw in the document.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.infera.baremetal.plugins.module_utils.fabric import merge
from ansible_collections.infera.baremetal.plugins.plugin_utils.fabric_page import POLICY, page

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None and os.environ.get("CI") != "true", reason="no chromium: tests/browser/setup installs it"
)

SCHEMES = {"dark": 0, "light": 1}
AA = 4.5  # WCAG 2.2, 1.4.3: contrast of text of normal size.
LOOK = """
addEventListener("load", () => {
  const shade = (element, key) => {
    for (let each = element; each; each = each.parentElement) {
      const colour = getComputedStyle(each)[key];
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return getComputedStyle(document.documentElement)[key];
  };
  const texts = [...document.querySelectorAll("body *")].filter(
    (each) => [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()));
  const links = [...document.links];
  const visit = (link) => {
    link.focus();
    const focused = document.activeElement === link;
    link.click();
    const target = document.querySelector(":target");
    const box = target && target.getBoundingClientRect();
    return { focused, target: target && target.id, seen: Boolean(box) && box.top < innerHeight && box.bottom > 0 };
  };
  const report = {
    dark: matchMedia("(prefers-color-scheme: dark)").matches,
    width: document.documentElement.scrollWidth, room: document.documentElement.clientWidth,
    loaded: performance.getEntriesByType("resource").map((each) => each.name),
    colours: [...new Set(texts.map((each) => shade(each, "color") + "|" + shade(each, "backgroundColor")))],
    map: document.querySelector(".wide").scrollWidth, frame: document.querySelector(".wide").clientWidth,
    visits: Object.fromEntries(links.filter((each) => each.closest(".map")).map((each) => [each.ariaLabel || each.text, visit(each)])),
  };
  const place = document.createElement("pre");
  place.id = "report";
  place.textContent = JSON.stringify(report);
  document.body.append(place);
});
"""


def seen(count: int) -> dict[str, Any]:
    """Hosts of two rails: rail1 of gpu1 sends by rail0, gpu2 has no route at all, and the last could not be read."""
    names = [f"gpu{number}" for number in range(1, count)]
    hosts: dict[str, Any] = {name: {"rails": [rail(index) for index in range(2)], "findings": []} for name in names}
    for name in names:
        hosts[name]["probes"] = [probe(name, index, peer) for peer in names if peer != name for index in range(2)]
    return {**hosts, "gpu<script>alert(1)</script>": {"error": "no ssh: <b>refused</b>"}}


def rail(index: int) -> dict[str, Any]:
    finding = {
        "code": "rail_slow",
        "severity": "warning",
        "message": "is slow",
        "fix": "`ethtool rail1`",
        "where": "rail1",
    }
    return {
        "index": index,
        "netdev": f"rail{index}",
        "state": "ACTIVE",
        "rate_gbps": 400.0,
        "findings": [finding] * index,
    }


def probe(host: str, index: int, peer: str) -> dict[str, Any]:
    verdict, reason = "routable", ""
    if host == "gpu2":
        verdict, reason = "no_route", f"no way (unreachable): ip -6 route replace default via GATEWAY dev rail{index}"
    elif host == "gpu1" and index == 1:
        verdict, reason = "wrong_device", "packets leave by rail0: ip -6 rule add from fd00:a:1::/64 table 101"
    times = {"min": 0.1, "avg": 0.2, "max": 0.3}
    return {
        "rail": index,
        "peer": peer,
        "peer_rail": index,
        "verdict": verdict,
        "reason": reason,
        "echo": {"sent": 3, "received": 3, "rtt_ms": times},
        "jumbo": {"size": 8952, "received": 1},
    }


@pytest.fixture(
    params=[(4, 1280, "light"), (4, 1280, "dark"), (4, 500, "light"), (65, 1280, "light")], ids=str, scope="module"
)
def looked(request, tmp_path_factory) -> dict[str, Any]:
    """What Chromium made of the page of so many hosts, on a window of this width, for a reader of this scheme."""
    count, width, scheme = request.param
    folder = tmp_path_factory.mktemp("page")
    hosts = seen(count)
    text = page(merge(hosts, pairs_needed=[["gpu1", "gpu3"]]), hosts, "east", "2026-12-01 02:10 UTC")
    report, console = look(text, folder, width, SCHEMES[scheme])
    return {**report, "text": text, "console": console, "count": count, "scheme": scheme}


def look(text: str, folder: Path, width: int, scheme: int) -> tuple[dict[str, Any], list[str]]:
    assert CHROMIUM, "CI has no chromium: tests/browser/setup installs it"
    text = text.replace(POLICY, f"{POLICY}; script-src 'unsafe-inline'").replace(
        "</head>", f"<script>{LOOK}</script></head>"
    )
    path = folder / "fabric.html"
    path.write_text(text, encoding="utf-8")
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    options += [f"--user-data-dir={folder}/profile", f"--window-size={width},900", "--enable-logging=stderr"]
    options += [f"--blink-settings=preferredColorScheme={scheme}", "--virtual-time-budget=2000", "--dump-dom"]
    options += ["--disable-ipc-flooding-protection"]  # So that all cells can be visited at once.
    done = subprocess.run([CHROMIUM, *options, path.as_uri()], capture_output=True, text=True, timeout=60, check=True)
    found = re.search(r'<pre id="report">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr
    report = found[1].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(report), [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def contrast(colours: str) -> float:
    """WCAG 2.2: the ratio of the relative luminances of two opaque colours."""
    light, dark = sorted((luminance(colour) for colour in colours.split("|")), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def luminance(colour: str) -> float:
    shares = [int(each) / 255 for each in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_is_measured_as_the_standard_says():
    assert contrast("rgb(0, 0, 0)|rgb(255, 255, 255)") == pytest.approx(21)
    # The well-known grey that just passes on white.
    assert contrast("rgb(118, 118, 118)|rgb(255, 255, 255)") == pytest.approx(4.54, abs=0.01)


def test_the_browser_has_nothing_to_complain_of_and_nothing_to_load(looked):
    assert (looked["console"], looked["loaded"]) == ([], [])


def test_the_scheme_of_the_reader_is_followed_and_every_text_can_be_read(looked):
    assert looked["dark"] == (looked["scheme"] == "dark")
    assert len(looked["colours"]) >= 6
    assert {colours: round(contrast(colours), 2) for colours in looked["colours"] if contrast(colours) < AA} == {}


def test_the_page_is_no_wider_than_the_window(looked):
    assert looked["width"] <= looked["room"]


def test_the_map_of_up_to_65_hosts_is_seen_whole_on_a_desk(looked):
    assert looked["map"] <= looked["frame"] or looked["room"] < 1000


def test_every_cell_that_is_not_good_is_reached_by_keyboard_and_leads_to_its_reason(looked):
    visits = looked["visits"]

    assert all(visit["focused"] and visit["target"] and visit["seen"] for visit in visits.values())
    for label, reason in (
        ("gpu1 and gpu2: 0 of 2 rails, one end only", "gpu2: no way (unreachable): ip -6 route replace"),
        ("gpu1 and gpu3: 1 of 2 rails, some rails", "gpu1: packets leave by rail0: ip -6 rule add"),
        ("gpu1 and gpu<script>alert(1)</script>: 0 of 0 rails, not measured", "no ssh: &lt;b&gt;refused&lt;/b&gt;"),
    ):
        target = looked["text"].partition(f'id="{visits[label]["target"]}"')[2].partition("</section>")[0]
        assert reason in target


def test_it_prints(tmp_path):
    hosts = seen(4)
    source, sheet = tmp_path / "fabric.html", tmp_path / "fabric.pdf"
    source.write_text(page(merge(hosts), hosts, "east", "now"), encoding="utf-8")
    assert CHROMIUM, "CI has no chromium: tests/browser/setup installs it"
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path}/profile",
        f"--print-to-pdf={sheet}",
    ]

    subprocess.run([CHROMIUM, *options, source.as_uri()], capture_output=True, timeout=60, check=True)

    assert sheet.read_bytes().startswith(b"%PDF")
