# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the RDMA exchanges of all rounds say: which pairs of rails are proven, which are slow, and why others failed.

An exchange that succeeded is no proof of its rail: without its rule a rail's packets leave by another one, and arrive. So it is
proven only where both ends' routes hold (fabric says so), and where the rail's own counter rose by what was sent.
"""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

# Below 300 Gb/s at 400 Gb/s the fabric is suspect (reported for ionic: 316 to 377); below this part of the median, the pair is.
FLOOR_OF_RATE, FLOOR_OF_MEDIAN = 0.75, 0.8
MIN_FOR_MEDIAN = 3
# A counter that rose by less than this part of what was sent did not carry it.
CARRIED = 0.5
_NAMED = 8

_FIXES = {
    "queue_pair": "`ip -6 route get PEER from RAIL` on both hosts: a route is missing, or the GID is link-local; run rail_info and rail_probe again",
    "gid": "`rdma link show`, `ip -6 address show`: the GID that rail_info chose is gone or of another kind; run the rails stage again",
    "device": "`ibv_devices`; a device that it leaves out has a kernel ABI that the provider library refuses: run playbooks/libionic.yml",
    "memory": "`ulimit -l` must say unlimited: LimitMEMLOCK=infinity, or /etc/security/limits.d",
    "unacknowledged": "look at the way back from the peer, and at drops and PFC on the switch ports (`ethtool -S`, `nicctl show qos`)",
    "port_in_use": "`ss -ltnp` shows who holds it; set rails_rdma_port to the first of as many free ports as two a rail",
    "connection": "let the hosts reach each other's cluster_address on the ports from rails_rdma_port on (two a rail), which firewalls may drop",
    "hung": "packets get lost between them: look at the routes between the switches, and at the way back from the peer",
}
_FIX = "run both commands by hand (ibv_rc_pingpong, ib_write_bw), and see dmesg on both hosts"
# What a client's words leave open, the server may tell.
_SECOND_HAND = ("peer", "unknown", "hung", "connection")


@dataclass(frozen=True)
class Exchange:
    """Two rails, from the client's C(host) to the server's C(peer), with what the tools told."""

    host: str
    rail: int
    peer: str
    peer_rail: int
    ok: bool
    needed: bool
    routed: bool
    usec: Optional[float] = None
    gbps: Optional[float] = None
    rate: Optional[float] = None
    cause: str = ""
    error: str = ""
    wrong_rail: str = ""
    counted: bool = True  # Whether the rail's own counter could be read.

    @property
    def ends(self) -> Tuple[Tuple[str, int], Tuple[str, int]]:
        return (self.host, self.rail), (self.peer, self.peer_rail)

    @property
    def name(self) -> str:
        return f"{self.host} rail {self.rail} - {self.peer} rail {self.peer_rail}"

    @property
    def proven(self) -> bool:
        return self.ok and self.routed and self.counted and not self.wrong_rail

    def to_dict(self) -> Dict[str, Any]:
        keys = ("host", "rail", "peer", "peer_rail", "ok", "proven", "usec", "gbps", "cause", "error")
        return {key: getattr(self, key) for key in keys}


def judge(
    told: Mapping[str, Mapping[str, Any]],
    rounds: Iterable[Mapping[str, Any]],
    pairs: Iterable[Mapping[str, Any]],
    rails: Mapping[str, Sequence[Mapping[str, Any]]],
    floor: float = 0,
) -> Dict[str, Any]:
    """C({exchanges, median_gbps, findings}).

    C(told): host -> C(results) of its client's calls, C(servers) and C(missing) of its last one. C(rounds) is what was planned,
    C(pairs) and C(rails) are fabric's and rail_info's. C(floor) in Gb/s; 0 takes three quarters of the slower rail's rate.
    """
    links, needed = _links(pairs)
    rates = {(host, rail["index"]): rail.get("rate_gbps") for host, each in rails.items() for rail in each}
    served = _served(told)
    exchanges = [
        _exchange(host, result, served, links, needed, rates)
        for host in sorted(told, key=natural_key)
        for result in told[host].get("results") or []
    ]
    measured = [
        each.gbps for each in exchanges if each.gbps is not None and each.ok and each.routed and not each.wrong_rail
    ]
    median = round(statistics.median(measured), 2) if measured else None
    findings = [
        *_missing(told),
        *_failed(exchanges),
        *_wrong_rail(exchanges),
        *_uncounted(exchanges),
        *_slow(exchanges, floor, median if len(measured) >= MIN_FOR_MEDIAN else None),
        *_untried(exchanges, rounds),
    ]
    return {
        "exchanges": [each.to_dict() for each in exchanges],
        "median_gbps": median,
        "findings": [finding.to_dict() for finding in findings],
    }


End = Tuple[str, int]


def _links(pairs: Iterable[Mapping[str, Any]]) -> Tuple[Dict[Any, bool], Dict[Any, bool]]:
    """Whether fabric calls two rails ok, and whether serving needs two hosts, in either order."""
    links: Dict[Any, bool] = {}
    needed: Dict[Any, bool] = {}
    for pair in pairs:
        needed[frozenset((pair["a"], pair["b"]))] = bool(pair.get("needed"))
        for link in pair["rails"]:
            links[frozenset(((pair["a"], link["a_rail"]), (pair["b"], link["b_rail"])))] = link["ok"]
    return links, needed


def _served(told: Mapping[str, Mapping[str, Any]]) -> Dict[Tuple[End, End, str], Mapping[str, Any]]:
    """Server's end, client's end and kind of test -> what the server said."""
    return {
        ((host, entry["rail"]), (entry["peer"], entry["peer_rail"]), entry["kind"]): entry
        for host, each in told.items()
        for entry in each.get("servers") or []
    }


def _exchange(
    host: str,
    result: Mapping[str, Any],
    served: Mapping[Tuple[End, End, str], Mapping[str, Any]],
    links: Mapping[Any, bool],
    needed: Mapping[Any, bool],
    rates: Mapping[End, Optional[float]],
) -> Exchange:
    own, other = (host, result["rail"]), (result["peer"], result["peer_rail"])
    outcomes = {kind: result[kind] for kind in ("pingpong", "bandwidth") if result.get(kind)}
    bad = next((kind for kind, outcome in outcomes.items() if not outcome["ok"]), None)
    cause, error = _cause(host, outcomes[bad], other[0], served.get((other, own, bad))) if bad else ("", "")
    known = [rate for rate in (rates.get(own), rates.get(other)) if rate]
    return Exchange(
        *own,
        *other,
        ok=bad is None,
        needed=needed.get(frozenset((host, other[0])), False),
        routed=links.get(frozenset((own, other)), False),
        usec=outcomes["pingpong"]["usec"],
        gbps=outcomes["bandwidth"]["gbps"] if "bandwidth" in outcomes else None,
        rate=min(known) if known else None,
        cause=cause,
        error=error,
        wrong_rail=next(filter(None, map(_astray, outcomes.values())), ""),
        counted=any(outcome["sent"] is not None for outcome in outcomes.values()),
    )


def _cause(host: str, outcome: Mapping[str, Any], peer: str, server: Optional[Mapping[str, Any]]) -> Tuple[str, str]:
    if (
        outcome["cause"] in _SECOND_HAND
        and server
        and not server["ok"]
        and server["cause"] not in (*_SECOND_HAND, "waiting")
    ):
        return server["cause"], f"{peer}: {server['error']}"
    return outcome["cause"], f"{host}: {outcome['error']}"


def _astray(outcome: Mapping[str, Any]) -> str:
    if (
        not outcome["ok"]
        or outcome["sent"] is None
        or not outcome["bytes"]
        or outcome["sent"] >= CARRIED * outcome["bytes"]
    ):
        return ""
    return f"{outcome['bytes']} bytes were sent, {outcome['counter']} rose by {outcome['sent']}"


# --- findings ---------------------------------------------------------------------------------------------------------


def _missing(told: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    lacking = {host: each["missing"] for host, each in told.items() if each.get("missing")}
    if lacking:
        tools = sorted({tool for each in lacking.values() for tool in each})
        yield Finding(
            "rdma_tools_missing",
            "info",
            f"{' and '.join(tools)} not found, so RDMA was not measured with: {_some(sorted(lacking, key=natural_key))}",
            "`apt-get install perftest ibverbs-utils`, on the RHEL family `dnf install perftest libibverbs-utils`",
            "fabric",
        )


def _failed(exchanges: Sequence[Exchange]) -> Iterator[Finding]:
    """One finding a cause. What fabric calls bad already is its to report."""
    bad = [each for each in exchanges if not each.ok and each.routed]
    for cause in dict.fromkeys(each.cause for each in bad):
        same = [each for each in bad if each.cause == cause]
        yield Finding(
            "rdma_failed",
            _severity(same),
            f"no RDMA between {_some([each.name for each in same])}: {same[0].error}{_in_common(same)}",
            _FIXES.get(cause, _FIX),
            "fabric",
        )


def _uncounted(exchanges: Sequence[Exchange]) -> Iterator[Finding]:
    blind = [each for each in exchanges if each.ok and not each.counted]
    if blind:
        yield Finding(
            "rdma_uncounted",
            "info",
            f"{len(blind)} exchanges came through and prove no rail, since the sender's counters cannot be read: {_some([each.name for each in blind])}",
            "look whether the driver shows ports/1/hw_counters or ports/1/counters below /sys/class/infiniband",
            "fabric",
        )


def _wrong_rail(exchanges: Sequence[Exchange]) -> Iterator[Finding]:
    unproven = [each for each in exchanges if each.ok and each.wrong_rail]
    if unproven:
        yield Finding(
            "rdma_wrong_rail",
            _severity(unproven),
            f"an exchange succeeded, and not over its rail: {_some([each.name for each in unproven])}: "
            f"{unproven[0].wrong_rail}{_in_common(unproven)}",
            "`ip -6 rule` on both hosts: a rule from the rail's prefix to its own table is missing; see the findings of rail_probe",
            "fabric",
        )


def _slow(exchanges: Sequence[Exchange], floor: float, median: Optional[float]) -> Iterator[Finding]:
    limits = {}
    for each in exchanges:
        least = floor or FLOOR_OF_RATE * (each.rate or 0)
        if each.proven and each.gbps is not None and each.gbps < max(least, FLOOR_OF_MEDIAN * (median or 0)):
            limits[each] = least
    slow = sorted(limits, key=lambda each: each.gbps or 0)
    if slow:
        below_floor = [each for each in slow if floor and (each.gbps or 0) < floor]
        told = _some([f"{each.name} ({each.gbps:g} Gb/s)" for each in slow])
        wanted = f"floor {max(limits.values()):g} Gb/s" + (f", median {median:g} Gb/s" if median else "")
        yield Finding(
            "rdma_slow",
            # A floor that somebody has set is a demand, one that is derived is a hint.
            _severity(below_floor) if below_floor else "warning",
            f"RDMA writes are slow ({wanted}): {told}{_in_common(slow)}",
            "compare PFC, DCQCN and MTU (`nicctl show qos`, `nicctl show dcqcn`), look at PCIe width (`lspci -vv`), NUMA node and iommu=pt",
            "fabric",
        )


def _untried(exchanges: Sequence[Exchange], rounds: Iterable[Mapping[str, Any]]) -> Iterator[Finding]:
    done = {each.ends for each in exchanges}
    lost = [
        f"{host} rail {test['rail']} - {test['peer']} rail {test['peer_rail']}"
        for planned in rounds
        for host, tests in planned["client"].items()
        for test in tests
        if ((host, test["rail"]), (test["peer"], test["peer_rail"])) not in done
    ]
    if lost:
        yield Finding(
            "rdma_untried",
            "warning",
            f"RDMA was planned and not measured: {_some(lost)}",
            "see what the task says on these hosts, and run the rails stage again",
            "fabric",
        )


def _severity(exchanges: Iterable[Exchange]) -> str:
    return "error" if any(each.needed for each in exchanges) else "warning"


def _in_common(exchanges: Sequence[Exchange]) -> str:
    """The rail that most of them share, where there are several."""
    (end, count), *_rest = Counter(end for each in exchanges for end in each.ends).most_common(1)
    return f"; {end[0]} rail {end[1]} is in {count} of {len(exchanges)}" if count > 1 else ""


def _some(names: Sequence[str]) -> str:
    listed: List[str] = list(names[:_NAMED])
    return ", ".join(listed) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
