# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Which address a node advertises: every address it holds is judged, and the best of those that are fit is taken.

An address that is merely plausible costs days: a CNI bridge holds a private one, sorts before the NIC, and nobody reaches it. So
structure and routes decide, names never, and nothing is fallen back on: where none is fit, every refusal is told.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils import addresses
from ansible_collections.infera.baremetal.plugins.module_utils.addresses import Address, Network
from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding, FindingError
from ansible_collections.infera.baremetal.plugins.module_utils.interfaces import (
    HeldAddress,
    Interface,
    layers,
    read_interfaces,
)
from ansible_collections.infera.baremetal.plugins.module_utils.routes import Query, Route, lookup
from ansible_collections.infera.baremetal.plugins.module_utils.sysfs import natural_key

Lookup = Callable[[Sequence[Query]], List[Route]]

DEFAULTS: Dict[str, Any] = {
    "family": "ipv4",
    "interface": "",
    "address": "",
    "prefer_cidrs": [],
    "exclude_cidrs": [],
    "allow_public": False,
    "allow_cgnat": False,
    "peers": [],
}
_VERSIONS = {"ipv4": 4, "ipv6": 6}
# A NIC in another form; and what shares a NIC with pods or machines, which may be meant and is taken only when named.
_STACKED = {"bond", "team", "vlan"}
_SHARED = {"bridge", "macvlan", "ipvlan"}
# What an address exposes, least first; kinds that are not here are never advertised.
_EXPOSURE = {"private": 0, "ula": 0, "cgnat": 1, "global": 2}
# The kernel stops using a deprecated address for what is new, and a tentative one may prove to be a duplicate.
_UNSTABLE = {"deprecated", "tentative"}
_MERITS = (
    "the addresses of the others are deprecated or tentative",
    "in a preferred CIDR",
    "exposed least: private before CGNAT before public",
)
_MINOR = {"secondary", "temporary"}

# What to do about a refusal, nearest to success first. What is not here has no cure but another interface.
_CURES = {
    "no_route_to_peer": "Add the route: `ip route get {peer} from {address}` must answer with dev {interface}.",
    "duplicate": "Find the other host with {address} (`ip neigh`) and change one of them.",
    "down": "Bring {interface} up (`ip link set dev {interface} up`; cable, port and switch).",
    "cgnat": "Set allow_cgnat if {address} is meant.",
    "public": "Set allow_public if the internet may reach ports 30000 and 8998 of {address}.",
    "excluded_cidr": "Choose pod and service CIDRs that do not hold {address}.",
    "no_address": "Give {interface} an address.",
    "named_only": "Set cluster_interface to {interface} if it is meant.",
    "enslaved": "Move the address of {interface} to {master}.",
}
_MOST_CURES = 3


@dataclass(frozen=True)
class Wishes:
    """What is asked for. C(interface) and C(address), where set, are the operator's own answer, which is checked all the same."""

    family: str = "ipv4"
    interface: str = ""
    address: Optional[Address] = None
    prefer: Tuple[Network, ...] = ()
    exclude: Tuple[Network, ...] = ()
    allow_public: bool = False
    allow_cgnat: bool = False
    peers: Tuple[Address, ...] = ()

    @classmethod
    def parse(cls, options: Mapping[str, Any]) -> Wishes:
        """The module's options; empty texts in lists are ignored. Raises FindingError, a finding for each that is wrong."""
        problems: List[Finding] = []

        def parsed(option: str, given: Iterable[Any], parse: Callable[[str], Any]) -> Tuple[Any, ...]:
            values = []
            for text in filter(None, (str(text or "").strip() for text in given)):
                try:
                    values.append(parse(text))
                except ValueError as error:
                    problems.append(Finding("advertise_input", "error", str(error), f"Correct {option}.", option))
            return tuple(values)

        def address(text: str) -> Address:
            found = addresses.parse(text)
            if found.version != _VERSIONS[options["family"]]:
                raise ValueError(f"{text} is not of the family {options['family']}")
            return found

        def network(text: str) -> Network:
            return addresses.networks([text])[0]

        wishes = cls(
            family=options["family"],
            interface=(options["interface"] or "").strip(),
            address=next(iter(parsed("address", [options["address"]], address)), None),
            prefer=parsed("prefer_cidrs", options["prefer_cidrs"], network),
            exclude=parsed("exclude_cidrs", options["exclude_cidrs"], network),
            allow_public=options["allow_public"],
            allow_cgnat=options["allow_cgnat"],
            peers=parsed("peers", options["peers"], address),
        )
        if problems:
            raise FindingError(*problems)
        return wishes

    def name(self, interface: Interface, held: Optional[HeldAddress]) -> bool:
        """Whether the operator names it. A fixed address alone names the interface that holds it."""
        if self.interface:
            return self.interface in (interface.name, *interface.altnames)
        return self.address is not None and self._hold(held)

    def ask_for(self, interface: Interface, held: Optional[HeldAddress]) -> bool:
        """Whether the operator leaves the choice, or this is the answer."""
        return (not self.interface or self.name(interface, held)) and (self.address is None or self._hold(held))

    def _hold(self, held: Optional[HeldAddress]) -> bool:
        return held is not None and held.address == self.address


@dataclass(frozen=True)
class Refusal:
    """C(reason) is a code of the module's documentation, C(detail) says it for people, C(cure) is a key of _CURES."""

    reason: str
    detail: str
    cure: str = ""
    peer: str = ""


@dataclass(frozen=True)
class Candidate:
    """An address of an interface, or an interface without one. It is fit while there is no refusal."""

    interface: Interface
    held: Optional[HeldAddress]
    refusal: Optional[Refusal] = None

    @property
    def address(self) -> str:
        return str(self.held.address) if self.held else ""

    @property
    def unstable(self) -> str:
        return " and ".join(mark for mark in self.held.marks if mark in _UNSTABLE) if self.held else ""

    @property
    def minor(self) -> bool:
        """Whether the kernel itself would rather use another address of the interface."""
        return self.held is not None and (self.held.scope != "global" or bool(_MINOR & set(self.held.marks)))

    def __str__(self) -> str:
        return f"{self.interface.name} {self.address}".strip()


@dataclass(frozen=True)
class Decision:
    """C(chosen) is None where nothing is fit; then C(findings) holds the error."""

    chosen: Optional[Candidate] = None
    reason: str = ""
    candidates: Tuple[Candidate, ...] = ()
    findings: Tuple[Finding, ...] = ()

    def to_dict(self) -> Dict[str, Any]:
        return {
            "interface": self.chosen.interface.name if self.chosen else "",
            "address": self.chosen.address if self.chosen else "",
            "prefix_length": self.chosen.held.prefix_length if self.chosen and self.chosen.held else None,
            "reason": self.reason,
            "candidates": [self._row(candidate) for candidate in self.candidates],
            "findings": [finding.to_dict() for finding in self.findings],
        }

    def _row(self, candidate: Candidate) -> Dict[str, Any]:
        refusal = candidate.refusal
        fit = "chosen" if candidate is self.chosen else "lower_preference"
        return {
            "interface": candidate.interface.name,
            "address": candidate.address,
            "accepted": refusal is None,
            "reason": refusal.reason if refusal else fit,
            "detail": refusal.detail if refusal else "",
        }

    def refusals(self) -> List[str]:
        """One line for each candidate that was refused."""
        return [f"{one}: {one.refusal.reason}, {one.refusal.detail}" for one in self.candidates if one.refusal]


def decide(sysfs_root: str, options: Mapping[str, Any]) -> Decision:
    """The decision of this host; never raises, what is wrong is among its findings. C(options): the module's, in part."""
    try:
        return choose(read_interfaces(sysfs_root), Wishes.parse({**DEFAULTS, **options}))
    except FindingError as error:
        return Decision(findings=tuple(error.findings))


def choose(interfaces: Dict[str, Interface], wishes: Wishes, routes: Lookup = lookup) -> Decision:
    """Judge every address of the host and take the best. Raises FindingError where the routes cannot be asked."""
    candidates = [
        Candidate(interface, held, _refusal(interface, held, interfaces, wishes))
        for interface in interfaces.values()
        for held in _of_family(interface, wishes.family) or [None]
    ]
    candidates = _with_routes(candidates, _peers(interfaces, wishes), routes)
    candidates = [_with_request(candidate, wishes) for candidate in candidates]
    fit = _ordered([one for one in candidates if one.refusal is None], wishes)
    if not fit:
        return Decision(candidates=tuple(candidates), findings=(_failure(candidates, wishes),))
    reason, findings = _explain(fit, candidates, wishes)
    return Decision(fit[0], reason, tuple(candidates), tuple(findings))


# --- one address, by itself -----------------------------------------------------------------------------------------


def _of_family(interface: Interface, family: str) -> List[Optional[HeldAddress]]:
    return [held for held in interface.addresses if held.address.version == _VERSIONS[family]]


def _refusal(
    interface: Interface, held: Optional[HeldAddress], interfaces: Dict[str, Interface], wishes: Wishes
) -> Optional[Refusal]:
    """The first thing that speaks against it: what it is, then what its address is, then the state it is in."""
    if interface.loopback:
        return Refusal("loopback", "reaches this host alone")
    named = wishes.name(interface, held)
    refusal = _structural(interface, interfaces, named)
    if refusal:
        return refusal
    if interface.master and interface.master_kind != "vrf":
        return Refusal("enslaved", f"a port of {interface.master}, which carries its traffic", "enslaved")
    if held is not None:
        refusal = _of_address(held, wishes)
    if refusal:
        return refusal
    if not named and any(leaf is not None and leaf.bus == "usb" for leaf in layers(interface.name, interfaces)[1]):
        return Refusal("usb", "on USB, as the NIC of a BMC is; taken only when named", "named_only")
    if interface.down:
        return Refusal("down", interface.down, "down")
    return None if held else Refusal("no_address", f"no {wishes.family} address", "no_address")


def _structural(interface: Interface, interfaces: Dict[str, Interface], named: bool) -> Optional[Refusal]:
    if not interface.known:
        return Refusal("virtual", "sysfs does not show it, or shows another network namespace")
    stacked, leaves = layers(interface.name, interfaces)
    nics = [leaf for leaf in leaves if leaf is not None and leaf.device]
    kinds = {layer.kind for layer in stacked}
    if not nics:
        return Refusal("virtual", f"{interface.kind or 'virtual'}, no NIC below it")
    if not kinds <= _STACKED | _SHARED:
        return Refusal("virtual", f"{interface.kind or 'virtual'}, never advertised")
    if named:
        return None
    if kinds & _SHARED or len(nics) < len(leaves):
        over = ", ".join(nic.name for nic in nics)
        return Refusal("virtual", f"{interface.kind} over {over}, taken only when named", "named_only")
    if any(nic.virtual_function for nic in nics):
        return Refusal("virtual", "SR-IOV virtual function, taken only when named", "named_only")
    return None


def _of_address(held: HeldAddress, wishes: Wishes) -> Optional[Refusal]:
    kind = addresses.scope(held.address)
    if kind not in _EXPOSURE:
        return Refusal(kind.replace("-", "_"), f"a {kind} address")
    for network in wishes.exclude:
        if held.address in network:
            return Refusal("excluded_cidr", f"in {network}, which pods or services use", "excluded_cidr")
    if kind == "global" and not wishes.allow_public:
        return Refusal("public", "may be reachable from the internet", "public")
    if kind == "cgnat" and not wishes.allow_cgnat:
        return Refusal("cgnat", "in 100.64.0.0/10, used by carriers and overlay VPNs", "cgnat")
    if "dadfailed" in held.marks:
        return Refusal("duplicate", "another host holds it too: duplicate address detection failed", "duplicate")
    return None


# --- against the others ---------------------------------------------------------------------------------------------


def _peers(interfaces: Dict[str, Interface], wishes: Wishes) -> List[Address]:
    """The peers without this host itself: a run passes the addresses of all its hosts."""
    own = {held.address for interface in interfaces.values() for held in interface.addresses}
    return [peer for peer in dict.fromkeys(wishes.peers) if peer not in own]


def _with_routes(candidates: List[Candidate], peers: Sequence[Address], routes: Lookup) -> List[Candidate]:
    """The candidates, with a refusal for what does not reach every peer: from its own address, by its own interface."""
    asked = [(one, peer) for one in candidates if one.refusal is None for peer in peers]
    if not asked:
        return candidates
    try:
        answers = routes([Query(str(peer), one.address) for one, peer in asked])
    except OSError as error:
        raise FindingError(
            Finding(
                "routes_unreadable",
                "error",
                f"the kernel cannot be asked for routes: {error.strerror or error}",
                "Run as root on the host itself, where AF_NETLINK is allowed.",
                "rtnetlink",
            )
        ) from error
    failed: Dict[Candidate, List[Tuple[Address, str]]] = {}
    for (one, peer), route in zip(asked, answers):
        problem = _astray(one, route)
        if problem:
            failed.setdefault(one, []).append((peer, problem))
    return [replace(one, refusal=_unrouted(failed[one], len(peers))) if one in failed else one for one in candidates]


def _astray(candidate: Candidate, route: Route) -> str:
    """How the packet would go another way, empty where it would not: naming a source does not bind the kernel to its device."""
    if not route.usable:
        return route.kind if route.kind != "none" else route.error or "no route"
    if route.device != candidate.interface.name:
        return f"would leave by {route.device or 'another interface'}"
    if not route.prefsrc or addresses.parse(route.prefsrc) != addresses.parse(candidate.address):
        return f"would leave with the source {route.prefsrc or 'unknown'}"
    return ""


def _unrouted(failed: List[Tuple[Address, str]], peers: int) -> Refusal:
    peer, problem = failed[0]
    return Refusal(
        "no_route_to_peer", f"{len(failed)} of {peers} peers: {peer}, {problem}", "no_route_to_peer", str(peer)
    )


def _with_request(candidate: Candidate, wishes: Wishes) -> Candidate:
    """What is unfit keeps its own reason, so that a failure shows what could be named instead."""
    if candidate.refusal or wishes.ask_for(candidate.interface, candidate.held):
        return candidate
    return replace(candidate, refusal=Refusal("not_requested", "fit, but another one is named"))


# --- the best -------------------------------------------------------------------------------------------------------


def _merit(candidate: Candidate, wishes: Wishes) -> Tuple[bool, bool, int]:
    """What makes one interface better than another, the lowest first."""
    address = addresses.parse(candidate.address)
    return (
        bool(candidate.unstable),
        not any(address in network for network in wishes.prefer),
        _EXPOSURE[addresses.scope(address)],
    )


def _ordered(fit: List[Candidate], wishes: Wishes) -> List[Candidate]:
    """By merit, then in natural order of interfaces; of one interface, primary addresses as the kernel lists them."""
    return sorted(
        fit,
        key=lambda one: (_merit(one, wishes), natural_key(one.interface.name), one.minor),
    )


def _explain(fit: List[Candidate], candidates: List[Candidate], wishes: Wishes) -> Tuple[str, List[Finding]]:
    """What decided, and what the operator should know about it. C(fit) is in order, not empty."""
    best, findings = fit[0], []
    if best.unstable:
        findings.append(
            Finding(
                "advertise_unstable",
                "warning",
                f"{best.address} is {best.unstable}, and no better address is fit",
                f"Give {best.interface.name} a permanent address (`ip address show dev {best.interface.name}`).",
                best.interface.name,
            )
        )
    rivals: Dict[str, Candidate] = {}
    for one in fit:
        if one.interface is not best.interface:
            rivals.setdefault(one.interface.name, one)
    if not rivals:
        return _alone(candidates, wishes), findings
    equal = [one for one in rivals.values() if _merit(one, wishes) == _merit(best, wishes)]
    if not equal:
        merits = zip(_merit(best, wishes), _merit(next(iter(rivals.values())), wishes), _MERITS)
        return next(text for mine, theirs, text in merits if mine != theirs), findings
    findings.append(
        Finding(
            "advertise_ambiguous",
            "warning",
            f"{best} was taken by its name alone; as good are: {', '.join(str(one) for one in equal)}",
            "Set cluster_interface to the interface that the other hosts reach.",
            best.interface.name,
        )
    )
    return f"first of {len(equal) + 1} interfaces that are equally good", findings


def _alone(candidates: List[Candidate], wishes: Wishes) -> str:
    if wishes.interface or wishes.address:
        return "named, and fit"
    if any(one.refusal and one.refusal.reason == "no_route_to_peer" for one in candidates):
        return "the only interface that reaches every peer"
    return "the only interface that is fit"


# --- none -----------------------------------------------------------------------------------------------------------


def _failure(candidates: List[Candidate], wishes: Wishes) -> Finding:
    """The error where nothing is fit, or what the operator named is not."""
    wanted = [one for one in candidates if wishes.ask_for(one.interface, one.held)]
    instead = ", ".join(str(one) for one in candidates if one.refusal and one.refusal.reason == "not_requested")
    named = " ".join(filter(None, (wishes.interface, str(wishes.address or ""))))
    if not wanted:
        return _missing(candidates, wishes, instead)
    cures = _cures(wanted)
    if not named:
        fix = cures or "Give a NIC an address, or set cluster_interface."
        return Finding("advertise_none", "error", f"no {wishes.family} address of this host can be advertised", fix)
    because = "; ".join(f"{one}: {one.refusal.detail}" for one in wanted if one.refusal)
    other = f"Or set cluster_interface to what is fit: {instead}." if instead else ""
    fix = " ".join(filter(None, (cures, other))) or "Set cluster_interface to a NIC."
    return Finding("advertise_refused", "error", f"cannot be advertised ({because})", fix, named)


def _missing(candidates: List[Candidate], wishes: Wishes, instead: str) -> Finding:
    """The named interface does not exist, or the fixed address is not where it should be."""
    fit = f" Fit would be: {instead}." if instead else ""
    names = list(dict.fromkeys(one.interface.name for one in candidates))
    of_name = [one for one in candidates if wishes.interface in (one.interface.name, *one.interface.altnames)]
    if wishes.interface and not of_name:
        message = f"there is no such interface; there are: {', '.join(names)}"
        return Finding(
            "advertise_interface_missing", "error", message, f"Correct cluster_interface.{fit}", wishes.interface
        )
    holders = [one.interface.name for one in candidates if one.held and one.held.address == wishes.address]
    on = f"is not on {wishes.interface}, but on {holders[0]}" if holders else "is on no interface of this host"
    held = ", ".join(one.address for one in of_name if one.held)
    also = f" {wishes.interface} has {held or 'none'}." if wishes.interface else ""
    fix = f"Correct cluster_address{' or cluster_interface' if holders else ''}.{also}{fit}"
    return Finding("advertise_address_missing", "error", on, fix, str(wishes.address))


def _cures(refused: List[Candidate]) -> str:
    """One sentence a cause, those first that are nearest to success; empty where nothing cures."""
    first: Dict[str, str] = {}
    for one in sorted(refused, key=lambda one: one.held is None):
        # Only a NIC is worth a word that has no address yet.
        if one.refusal and (one.held or one.refusal.cure in ("down", "no_address")):
            place = {"interface": one.interface.name, "master": one.interface.master, "address": one.address}
            sentence = _CURES.get(one.refusal.cure, "").format(peer=one.refusal.peer, **place)
            first.setdefault(one.refusal.cure, sentence)
    return " ".join([first[cure] for cure in _CURES if cure in first][:_MOST_CURES])
