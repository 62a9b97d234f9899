# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The two services, from the command line to the exit code."""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from . import VERSION, agent, network, server, tokens
from .children import ChildDied, Children, Stopped
from .log import log
from .settings import Settings, UsageError, load


def main(role: str, arguments: list[str]) -> int:
    """Run `k3s server` or `k3s agent`; systemd restarts what ends with 1."""
    if {"--help", "-h"} & set(arguments):
        print(f"usage: k3s {role} [--flag value]... (the flags of k3s)")
        return 0
    os.umask(0o077)
    try:
        settings = with_addresses(load(role, arguments, dict(os.environ)))
    except UsageError as error:
        print(f"Incorrect Usage: {error}", file=sys.stderr)
        log("fatal", str(error))
        return 1
    log("info", f"Starting k3s {VERSION} {role} (stand-in for tests)")
    children = Children()
    try:
        (server if role == "server" else agent).run(children, settings)
    except Stopped:
        log("info", "Shutting down; pods keep running")
        return 0
    except (ChildDied, tokens.TokenError, RuntimeError, OSError) as error:
        log("fatal", str(error))
        return 1
    finally:
        children.stop()


def with_addresses(settings: Settings) -> Settings:
    """Fill in the node's address and interface: those of the default route when none is given. Raises UsageError."""
    if settings.interface and not network.interface_exists(settings.interface):
        # stand-in: k3s says the same, and keeps trying.
        raise UsageError(f"unable to find interface {settings.interface}: route ip+net: no such network interface")
    interface = settings.interface or ("" if settings.node_ip else network.default_route_interface())
    node_ip = settings.node_ip or (network.first_address(interface) if interface else "")
    if not node_ip:
        raise UsageError("failed to get node name and addresses: no default route and no node-ip")
    return replace(settings, node_ip=node_ip, interface=interface)
