# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What can only be seen by looking at all hosts together: groups, names, addresses, clocks, the images' archives."""

from __future__ import annotations

import difflib
from collections import defaultdict
from typing import Callable, Iterator, Mapping

from ansible_collections.infera.baremetal.plugins.module_utils.findings import Finding
from ansible_collections.infera.baremetal.plugins.plugin_utils.preflight.settings import (
    CODES,
    GROUPS,
    SERVING_GROUPS,
    WORKER_GROUPS,
    Facts,
    Settings,
    some,
)


def _groups(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    servers, agents = settings.members("k3s_server"), settings.members("k3s_agent")
    if not servers:
        yield Finding(
            "no_server", "error", "the group k3s_server has no host", "Put one host into k3s_server.", "inventory"
        )
    if len(servers) > 1:
        yield Finding(
            "several_servers",
            "error",
            f"the group k3s_server has {len(servers)} hosts ({', '.join(servers)}); one server is supported",
            "Keep one host in k3s_server and move the others to k3s_agent.",
            "inventory",
        )
    cluster = settings.members("k3s_cluster")
    for host in cluster:
        if host not in servers and host not in agents:
            yield Finding(
                "host_without_role",
                "error",
                "is in k3s_cluster, but neither in k3s_server nor in k3s_agent",
                "Put it into k3s_agent.",
                host,
            )
    for group in SERVING_GROUPS:
        for host in settings.members(group):
            if host not in cluster:
                yield Finding(
                    "host_outside_cluster",
                    "error",
                    f"is in the group {group}, but not in k3s_cluster",
                    f"Put it into k3s_agent, or take it out of {group}.",
                    host,
                )
    for host in dict.fromkeys(host for group in WORKER_GROUPS for host in settings.members(group)):
        roles = [group for group in WORKER_GROUPS if host in settings.members(group)]
        if len(roles) > 1:
            yield Finding(
                "worker_roles_overlap",
                "error",
                f"is in the groups {' and '.join(roles)}; both take the same ports of the host ({', '.join(settings.worker_ports)})",
                "Keep it in one of them.",
                host,
            )


def _misspelt_groups(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for group in settings.groups:
        near = [] if group in GROUPS else difflib.get_close_matches(group, GROUPS, 1, 0.85)
        if near and not settings.members(near[0]):
            yield Finding(
                "group_misspelt",
                "error",
                f"the group {group} is not one that the collection knows, and {near[0]} is empty",
                f"Rename it to {near[0]}, or waive this code if it is a group of your own.",
                "inventory",
            )


def _left_out(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    cluster = settings.members("k3s_cluster")
    for host in settings.hosts:
        if host not in hosts:
            yield Finding(
                "host_unreachable",
                "error",
                f"could not be read: {str(settings.unread.get(host) or 'an earlier task failed on it').strip()}",
                f"`ansible -i <inventory> -m ansible.builtin.ping {host}` tries it alone; or leave the host out with --limit.",
                host,
            )
    outside = [host for host in cluster if host not in settings.hosts]
    if outside and settings.hosts:
        yield Finding(
            "hosts_left_out",
            "info",
            f"{some(outside)} not examined: the run is limited to {some(list(settings.hosts))}",
            "Run without --limit to compare names, addresses and clocks of all hosts.",
            "inventory",
        )


def _waived_codes(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    """A waived code that is nearly one of the preflight's; other stages' codes may be waived here too."""
    for code in settings.waive:
        near = [] if code in CODES else difflib.get_close_matches(code, CODES, 1, 0.8)
        if near:
            yield Finding(
                "waive_unknown",
                "warning",
                f"{code!r} is no code of the preflight; the nearest is {near[0]}",
                "Correct it, or take it out.",
                "preflight_waive",
            )


def _duplicates(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    same = _sharing(hosts, lambda facts: str(facts["declared"].get("node_name") or "").lower())
    for value, names in same.items():
        yield Finding(
            "duplicate_node_name",
            "error",
            f"all of them would be the node {value!r}",
            "Give each host a k3s_node_name of its own.",
            ", ".join(names),
            why="a second node of one name is refused with 'Node password rejected'",
        )
    for value, names in _sharing(hosts, lambda facts: facts["hostname"].lower()).items():
        yield Finding(
            "duplicate_hostname",
            "error",
            f"all of them have the hostname {value!r}",
            "`hostnamectl set-hostname NAME` on each; if they are one machine, keep one of them in the inventory.",
            ", ".join(names),
        )
    for value, names in _sharing(hosts, lambda facts: facts["machine_id"]).items():
        yield Finding(
            "duplicate_machine_id",
            "error",
            f"all of them have the machine-id {value}: one was cloned from another, or they are one machine",
            "On each clone: `rm -f /etc/machine-id && systemd-machine-id-setup`, then reboot.",
            ", ".join(names),
            why="DHCP leases and MAC addresses of virtual interfaces derive from it",
        )
    for value, names in _sharing(hosts, lambda facts: facts["product_uuid"]).items():
        yield Finding(
            "duplicate_product_uuid",
            "info",
            f"their boards report one UUID, {value}",
            "Nothing here depends on it; ask the vendor if your asset management does.",
            ", ".join(names),
        )
    for value, names in _sharing(hosts, lambda facts: str(facts["declared"].get("address") or "")).items():
        yield Finding(
            "duplicate_cluster_address",
            "error",
            f"all of them have cluster_address {value}",
            "Set cluster_address per host to an address of that host.",
            ", ".join(names),
        )


def _sharing(hosts: Mapping[str, Facts], value_of: Callable[[Facts], str]) -> dict[str, list[str]]:
    """Values that more than one host has, with those hosts; empty values do not count."""
    owners: dict[str, list[str]] = defaultdict(list)
    for host, facts in hosts.items():
        value = value_of(facts)
        if value:
            owners[value].append(host)
    return {value: names for value, names in owners.items() if len(names) > 1}


def _clocks(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    """Compare with the middle one of all clocks (with one host: the controller's). A clock is known within bounds only, so
    what is reported is the least difference that they allow: a slow connection cannot cause a false finding."""
    bounds = {
        host: (facts["clock"]["ahead_min"], facts["clock"]["ahead_max"])
        for host, facts in hosts.items()
        if "ahead_min" in facts["clock"]
    }
    if not bounds:
        return
    reference, name = (0.0, 0.0), "the controller"
    if len(bounds) > 1:
        name = sorted(bounds, key=lambda host: sum(bounds[host]))[(len(bounds) - 1) // 2]
        reference = bounds[name]
    for host, (low, high) in bounds.items():
        ahead, behind = low - reference[1], reference[0] - high
        if host != name and max(ahead, behind) > settings.max_skew:
            direction = "ahead of" if ahead > 0 else "behind"
            yield Finding(
                "clock_skew",
                "error",
                f"its clock is at least {max(ahead, behind):.1f} s {direction} that of {name} (at most {settings.max_skew:g} s are allowed)",
                "Start a time service (chrony, systemd-timesyncd) on every host with the same servers; preflight_max_skew is the limit.",
                host,
                why="a certificate that is not valid yet is refused, and leases expire early",
            )


def _archives(hosts: Mapping[str, Facts], settings: Settings) -> Iterator[Finding]:
    for image in settings.images:
        lacking = [
            host
            for host, facts in hosts.items()
            if image in settings.images_of(host) and image.digest not in facts["stored_digests"]
        ]
        if image.archive and image.size is None and lacking:
            yield Finding(
                "image_archive_missing",
                "error",
                f"the archive {image.archive} of {image.name} is not on the controller, and {some(lacking)} do not have the image",
                "Build or copy the archive, or correct its path in images_list.",
                "images_list",
            )


CLUSTER_CHECKS: tuple[Callable[[Mapping[str, Facts], Settings], Iterator[Finding]], ...] = (
    _groups,
    _misspelt_groups,
    _left_out,
    _waived_codes,
    _duplicates,
    _clocks,
    _archives,
)
