# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What all hosts saw of each other's rails, put together: which rail has which partner, and which pairs of hosts are fit.

A probe is one end's view. An echo that came back proves both directions, and still each end's own route has to leave by its own rail:
so a pair of rails is good only when both ends say routable. Where they do not, the end whose route, source or gateway is wrong is the
cause, and the other end's silence its consequence; only where both ends send as they should is it the fabric between them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

# Verdicts of an end that sends as it should, whatever comes of it.
_SENDING = frozenset({"routable", "no_reply", "mtu_too_small"})
_NAMED = 8  # So many pairs, hosts or commands stand in one finding; the record has them all.

_RUN = ("ip ", "sysctl ")
_COMMANDS = (*_RUN, "on ")

_FIXES = {
    "untried": "give both ends an address of one family",
    "source_missing": "bring the rail up and give it its address (ip address show)",
    "no_reply": "look at the switch ports and routes between them, and at filters on both hosts (nft list ruleset)",
    "mtu_too_small": "set the same MTU on both ends and on every hop",
    "gateway_unresolved": "look at cable, VLAN and the gateway's address",
}

PairOfHosts = Tuple[str, str]


@dataclass(frozen=True)
class Rail:
    """A rail of a host, as far as it matters here. C(broken): rail_info has found an error on it."""

    host: str
    index: int
    name: str
    broken: bool = False


@dataclass(frozen=True)
class Cause:
    """Why a pair of rails is not good: at one end, or (C(peer) set) between two that send as they should."""

    host: str
    rail: int
    verdict: str
    reason: str
    peer: str = ""

    @property
    def text(self) -> str:
        return f"{self.host}: {self.reason}" if self.reason else f"{self.host}: {self.verdict}"


@dataclass
class Link:
    """Two rails that are, or should be, partners; one of them is None where a rail has none."""

    a_rail: Optional[int]
    b_rail: Optional[int]
    ok: bool
    one_way: bool = False
    causes: List[Cause] = field(default_factory=list)
    reason: str = ""

    def to_dict(self) -> Dict[str, Any]:
        return {"a_rail": self.a_rail, "b_rail": self.b_rail, "ok": self.ok, "reason": self.reason}


@dataclass
class Pair:
    """Two hosts. C(verdict): full, partial, one_way, none, or unknown where nothing was tried."""

    a: str
    b: str
    links: List[Link]
    verdict: str
    fit: bool
    needed: bool
    wanted: int

    @property
    def good(self) -> int:
        return sum(link.ok for link in self.links)

    def to_dict(self) -> Dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "rails": [link.to_dict() for link in self.links],
            "verdict": self.verdict,
            "fit": self.fit,
            "needed": self.needed,
        }


class Seen:
    """What the hosts saw, by host and by pair of rails."""

    def __init__(self, seen: Mapping[str, Any], hosts: Iterable[str]) -> None:
        told = {host: each if isinstance(each, Mapping) else {"probes": each} for host, each in seen.items()}
        self.hosts = sorted({*told, *hosts}, key=natural_key)
        self.errors = {host: str(told.get(host, {}).get("error") or "") for host in self.hosts}
        self.findings = {host: list(told.get(host, {}).get("findings") or []) for host in self.hosts}
        self.probes: Dict[Tuple[str, int, str, int], Mapping[str, Any]] = {
            (host, probe["rail"], probe["peer"], probe["peer_rail"]): probe
            for host, each in told.items()
            for probe in each.get("probes") or []
        }
        self.untried = {
            (host, each["rail"], each["peer"]): str(each["reason"])
            for host, told_by in told.items()
            for each in told_by.get("unprobed") or []
        }
        self.tried: Set[PairOfHosts] = {(host, peer) for host, _rail, peer, _other in self.probes}
        self.rail_findings: Dict[str, Dict[int, List[Mapping[str, Any]]]] = {}
        self.rails: Dict[str, Dict[int, Rail]] = {}
        for host in self.hosts:
            given = told.get(host, {}).get("rails")
            listed = self._bare(host) if given is None else given
            self.rail_findings[host] = {rail["index"]: list(rail.get("findings") or []) for rail in listed}
            self.rails[host] = {rail["index"]: self._rail(host, rail) for rail in listed}

    def _bare(self, host: str) -> List[Dict[str, Any]]:
        """The rails of a host of which only probes are known."""
        own = {key[1]: str(probe.get("netdev") or "") for key, probe in self.probes.items() if key[0] == host}
        return [{"index": index, "netdev": own[index]} for index in sorted(own)]

    def _rail(self, host: str, rail: Mapping[str, Any]) -> Rail:
        name = str(rail.get("netdev") or rail.get("rdma_device") or f"rail {rail['index']}")
        broken = any(finding["severity"] == "error" for finding in self.rail_findings[host][rail["index"]])
        return Rail(host, rail["index"], name, broken)


def merge(
    seen: Mapping[str, Any],
    hosts: Iterable[str] = (),
    pairs_needed: Iterable[Sequence[str]] = (),
    min_rails: int = 0,
) -> Dict[str, Any]:
    """Pairs and findings, as the filter fabric documents them."""
    known = Seen(seen, hosts)
    needed = {tuple(sorted(pair, key=natural_key)) for pair in pairs_needed if pair[0] != pair[1]}
    pairs = [_pair(known, a, b, (a, b) in needed, min_rails) for a, b in itertools.combinations(known.hosts, 2)]
    return {
        "pairs": [pair.to_dict() for pair in pairs],
        "findings": [finding.to_dict() for finding in _findings(known, pairs, needed)],
    }


# --- one pair of hosts ------------------------------------------------------------------------------------------------


def _pair(known: Seen, a: str, b: str, needed: bool, min_rails: int) -> Pair:
    rails_a, rails_b = known.rails[a], known.rails[b]
    wanted = min_rails or max(1, min(len(rails_a), len(rails_b)))
    if (
        (a, b) not in known.tried
        and (b, a) not in known.tried
        and not (rails_a and rails_b and not known.errors[a] + known.errors[b])
    ):
        return Pair(a, b, [], "unknown", False, needed, wanted)
    partners = _partners(known, a, b)
    links = [_link(known, a, index, b, partners[index]) for index in sorted(partners)]
    taken = set(partners.values())
    alone_a = [index for index in sorted(rails_a) if index not in partners]
    alone_b = [index for index in sorted(rails_b) if index not in taken]
    for index in alone_a:
        if index in alone_b:
            links.append(_link(known, a, index, b, index))
        else:
            links.append(Link(index, None, False, reason=f"no rail of {b} answers {rails_a[index].name} of {a}"))
    links += [
        Link(None, index, False, reason=f"no rail of {a} answers {rails_b[index].name} of {b}")
        for index in alone_b
        if index not in alone_a
    ]
    links.sort(key=lambda link: (link.a_rail is None, link.a_rail or 0, link.b_rail or 0))
    good = sum(link.ok for link in links)
    if good and good == len(links):
        verdict = "full"
    elif good:
        verdict = "partial"
    else:
        verdict = "one_way" if any(link.one_way for link in links) else "none"
    return Pair(a, b, links, verdict, good >= wanted, needed, wanted)


def _good(known: Seen, a: str, rail_a: int, b: str, rail_b: int) -> bool:
    there, back = known.probes.get((a, rail_a, b, rail_b)), known.probes.get((b, rail_b, a, rail_a))
    return bool(there and back and there["verdict"] == back["verdict"] == "routable")


def _partners(known: Seen, a: str, b: str) -> Dict[int, int]:
    """Rail of a -> rail of b: the same index where that is good, and as many of the others as can be matched."""
    rails_a, rails_b = known.rails[a], known.rails[b]
    fixed = {index for index in rails_a if index in rails_b and _good(known, a, index, b, index)}
    free_b = [index for index in rails_b if index not in fixed]
    partner_of_b: Dict[int, int] = {}

    def place(rail: int, visited: Set[int]) -> bool:
        """Find a partner, moving others to theirs where that helps (augmenting paths)."""
        for other in free_b:
            if other not in visited and _good(known, a, rail, b, other):
                visited.add(other)
                if other not in partner_of_b or place(partner_of_b[other], visited):
                    partner_of_b[other] = rail
                    return True
        return False

    for index in rails_a:
        if index not in fixed:
            place(index, set())
    return {**{index: index for index in fixed}, **{rail: other for other, rail in partner_of_b.items()}}


def _link(known: Seen, a: str, rail_a: int, b: str, rail_b: int) -> Link:
    there, back = known.probes.get((a, rail_a, b, rail_b)), known.probes.get((b, rail_b, a, rail_a))
    if there and back and there["verdict"] == back["verdict"] == "routable":
        return Link(rail_a, rail_b, True, reason="; ".join(filter(None, (there["reason"], back["reason"]))))
    ends = ((a, rail_a, there), (b, rail_b, back))
    wrong = [
        Cause(host, rail, probe["verdict"], probe["reason"])
        for host, rail, probe in ends
        if probe and probe["verdict"] not in _SENDING
    ]
    sending = [probe for _host, _rail, probe in ends if probe and probe["verdict"] in _SENDING]
    if not wrong:
        wrong = _between(known, ends)
    return Link(
        rail_a,
        rail_b,
        False,
        one_way=len(sending) == 1,
        causes=wrong,
        reason="; ".join(cause.text for cause in wrong) or "not tried from either end",
    )


def _between(known: Seen, ends: Sequence[Tuple[str, int, Optional[Mapping[str, Any]]]]) -> List[Cause]:
    """Both ends send as they should, or one was not tried since the other has no address."""
    causes = []
    for (host, rail, probe), (peer, _other, _answer) in (ends, ends[::-1]):
        if probe and probe["verdict"] != "routable":
            causes.append(Cause(host, rail, probe["verdict"], probe["reason"], peer))
        elif probe is None and known.rails[host].get(rail) and known.rails[host][rail].broken:
            texts = [
                finding["message"] for finding in known.rail_findings[host][rail] if finding["severity"] == "error"
            ]
            causes.append(Cause(host, rail, "source_missing", texts[0], peer))
    if not causes:
        # Not tried from either end: no common family of addresses, as a rule.
        causes = [
            Cause(host, rail, "untried", known.untried[host, rail, peer], peer)
            for (host, rail, _probe), (peer, _other, _answer) in (ends, ends[::-1])
            if (host, rail, peer) in known.untried
        ]
    # What says most first: an error that a hop reported, or a limit, before silence.
    return sorted(causes, key=lambda cause: cause.verdict == "no_reply" and "does not answer" in cause.reason)[:1]


# --- findings ---------------------------------------------------------------------------------------------------------


def _findings(known: Seen, pairs: Sequence[Pair], needed: Set[Any]) -> List[Finding]:
    unfit = {host for pair in pairs if pair.needed and not pair.fit for host in (pair.a, pair.b)}
    return [
        *_unread(known),
        *_of_hosts(known, unfit),
        *_of_causes(known, pairs),
        *_cabling(known, pairs),
        *_uneven(known),
        *_of_pairs(pairs),
        *_left_out(known, needed),
    ]


def _unread(known: Seen) -> Iterator[Finding]:
    for host in known.hosts:
        if known.errors[host]:
            yield Finding(
                "rails_unread",
                "error",
                f"its rails are not known: {known.errors[host]}",
                "Make the host reachable as root, or leave it out with --limit; nothing is proven with it.",
                host,
            )


def _of_hosts(known: Seen, unfit: Set[str]) -> Iterator[Finding]:
    """rail_info's own. A rail's error stops nobody whose pairs are fit without it."""
    for host in known.hosts:
        for found in known.findings[host]:
            yield _placed(found, host, found["severity"])
        for own in known.rail_findings[host].values():
            for found in own:
                spared = found["severity"] == "error" and host not in unfit
                yield _placed(found, host, "warning" if spared else found["severity"])


def _placed(found: Mapping[str, Any], host: str, severity: str) -> Finding:
    where = f"{host}:{found['where']}" if found.get("where") else host
    return Finding(found["code"], severity, found["message"], found["fix"], where, found.get("why") or "")


def _of_causes(known: Seen, pairs: Sequence[Pair]) -> Iterator[Finding]:
    """One finding for each host and kind of trouble, over all its rails and peers; one for each two rails where it is between them."""
    groups: Dict[Tuple[str, str, str], Dict[int, Cause]] = {}
    peers: Dict[Tuple[str, str, str], Set[str]] = {}
    stopping: Set[Tuple[str, str, str]] = set()
    for pair in pairs:
        for link in pair.links:
            for cause in link.causes:
                if cause.verdict == "source_missing" and known.rails[cause.host][cause.rail].broken:
                    continue  # Its own finding says so.
                key = (cause.host, cause.verdict, cause.peer)
                groups.setdefault(key, {}).setdefault(cause.rail, cause)
                peers.setdefault(key, set()).add(pair.b if cause.host == pair.a else pair.a)
                if pair.needed and not pair.fit:
                    stopping.add(key)
    for key, causes in groups.items():
        host, verdict, peer = key
        first = causes[min(causes)]
        message = _split(first)[0]
        names = ", ".join(known.rails[host][index].name for index in sorted(causes)[:_NAMED])
        more = f" (and {len(causes) - 1} more of its rails: {names})" if len(causes) > 1 else ""
        fixes = dict.fromkeys(_split(causes[index])[1] for index in sorted(causes)[:_NAMED])
        to = f" to {peer}" if peer else f" to {_some(sorted(peers[key], key=natural_key))}"
        yield Finding(
            f"rail_{verdict}",
            "error" if key in stopping else "warning",
            f"{known.rails[host][min(causes)].name}{to}: {message}{more}",
            _joined(fixes, host),
            host,
        )


def _split(cause: Cause) -> Tuple[str, str]:
    """What the probe says, and the command at its end where there is one."""
    message, _colon, command = cause.reason.rpartition(": ")
    if message and command.startswith(_COMMANDS):
        return message, command
    return cause.reason, _FIXES.get(
        cause.verdict, "look at the routes of this rail (ip -6 rule; ip -6 route show table all)"
    )


def _joined(fixes: Iterable[str], host: str) -> str:
    commands = [fix for fix in fixes if fix.startswith(_RUN)]
    words = [fix for fix in fixes if not fix.startswith(_RUN)]
    run = [f"on {host}: " + "; ".join(f"`{command}`" for command in commands)] if commands else []
    return "; ".join([*run, *words])


def _cabling(known: Seen, pairs: Sequence[Pair]) -> Iterator[Finding]:
    """Rails that are good with another index than their own, on hosts with as many rails: cables or names are exchanged."""
    crossed: Dict[str, Dict[str, List[Tuple[int, int]]]] = {}
    for pair in pairs:
        if len(known.rails[pair.a]) != len(known.rails[pair.b]):
            continue
        for link in pair.links:
            if link.ok and link.a_rail != link.b_rail and link.a_rail is not None and link.b_rail is not None:
                crossed.setdefault(pair.a, {}).setdefault(pair.b, []).append((link.a_rail, link.b_rail))
                crossed.setdefault(pair.b, {}).setdefault(pair.a, []).append((link.b_rail, link.a_rail))
    told: Set[str] = set()
    # The host that is crossed with most others is the one to look at; with two hosts it is either.
    for host in sorted(crossed, key=lambda each: (-len(crossed[each]), natural_key(each))):
        others = [other for other in crossed[host] if other not in told]
        if not others:
            continue
        told.add(host)
        rails = ", ".join(
            f"{known.rails[host][own].name} reaches {known.rails[others[0]][other].name}"
            for own, other in crossed[host][others[0]][:_NAMED]
        )
        yield Finding(
            "rails_cabling",
            "warning",
            f"its rails are not those of {_some(others)}: {rails} there",
            "exchange the cables or the names on one of the two; until then the pair map holds, and nothing may assume rail i to rail i",
            host,
        )


def _uneven(known: Seen) -> Iterator[Finding]:
    counts = {host: len(rails) for host, rails in known.rails.items() if rails}
    if len(set(counts.values())) > 1:
        most = max(counts.values())
        fewer = [f"{host} ({count})" for host, count in counts.items() if count < most]
        yield Finding(
            "rails_uneven",
            "warning",
            f"hosts have different numbers of rails: {_some(fewer)}, the others {most}",
            "bring the missing rails back (rdma link show, lspci -nn -d 1dd8:); indexes count the devices that are there",
            "fabric",
        )


def _of_pairs(pairs: Sequence[Pair]) -> Iterator[Finding]:
    known = [pair for pair in pairs if pair.verdict != "unknown" and not pair.fit]
    for severity, unfit in (
        ("error", [pair for pair in known if pair.needed]),
        ("warning", [pair for pair in known if not pair.needed]),
    ):
        if unfit:
            told = [
                f"{pair.a} and {pair.b} ({pair.good} of {max(len(pair.links), 1)} rails, {pair.verdict})"
                for pair in unfit
            ]
            yield Finding(
                "rails_pair_unfit",
                severity,
                f"not fit for prefill and decode: {_some(told)}; {unfit[0].wanted} rails both ways are needed",
                "mend what is listed above, or set rails_min to the rails that are enough",
                "fabric",
            )


def _left_out(known: Seen, needed: Set[Any]) -> Iterator[Finding]:
    outside = sorted({host for pair in needed for host in pair if host not in known.hosts}, key=natural_key)
    if outside:
        yield Finding(
            "rails_hosts_left_out",
            "info",
            f"not part of this run, so nothing is proven with them: {_some(outside)}",
            "run the rails stage without --limit",
            "fabric",
        )


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(names[:_NAMED])
    return f"{listed} and {len(names) - _NAMED} more" if len(names) > _NAMED else listed
