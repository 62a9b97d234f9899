# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Rules that Kubernetes left in iptables, and the script that takes out those and no others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Iterable

# kube-proxy and k3s's network policies, containerd's CNI plugins, flannel.
_OWN_CHAIN = re.compile(r"(?:KUBE|CNI|FLANNEL)-")
# flannel before 0.20 puts its rules into the built-in chains, and names them only in the comment.
_OWN_COMMENT = re.compile(r'--comment "?flanneld ')
_TARGET = re.compile(r"\s(?:-j|-g)\s+(\S+)")
_CHAIN = re.compile(r":(\S+)\s")
_RULE = re.compile(r"-A\s+(\S+)\s")


@dataclass(frozen=True)
class Leftover:
    """What is Kubernetes' own in one table: its chains, and the rules in others' chains that lead there, as iptables-save writes them."""

    table: str
    chains: tuple[str, ...]
    rules: tuple[str, ...]


def leftovers(saved: str) -> list[Leftover]:
    """Kubernetes' own chains and rules in the text of C(iptables-save), table by table; tables without any are left out."""
    found = []
    for table, lines in _tables(saved):
        names = [match.group(1) for match in map(_CHAIN.match, lines) if match]
        chains = tuple(name for name in names if _OWN_CHAIN.match(name))
        rules = tuple(line for line in lines if _leads_to_own(line))
        if chains or rules:
            found.append(Leftover(table, chains, rules))
    return found


def removal_script(found: Iterable[Leftover]) -> str:
    """Input of C(iptables-restore --noflush): only what is Kubernetes' own is named in it, so nothing else is rewritten.

    Rules go first, then the chains are emptied before they are deleted, since they refer to each other.
    """
    lines = []
    for leftover in found:
        lines.append(f"*{leftover.table}")
        lines += ["-D" + rule[2:] for rule in leftover.rules]
        lines += [f"-F {chain}" for chain in leftover.chains]
        lines += [f"-X {chain}" for chain in leftover.chains]
        lines.append("COMMIT")
    return "".join(line + "\n" for line in lines)


def _tables(saved: str) -> list[tuple[str, list[str]]]:
    tables: list[tuple[str, list[str]]] = []
    for line in saved.splitlines():
        if line.startswith("*"):
            tables.append((line[1:].strip(), []))
        elif tables and line and not line.startswith("#"):
            tables[-1][1].append(line)
    return tables


def _leads_to_own(line: str) -> bool:
    """Whether a line is a rule in somebody else's chain that is Kubernetes' own."""
    chain = _RULE.match(line)
    if not chain or _OWN_CHAIN.match(chain.group(1)):
        return False
    # A comment may hold anything, a "-j" too: targets are looked for outside of quotes.
    targets = _TARGET.findall(re.sub(r'"(?:\\.|[^"\\])*"', '""', line))
    return any(_OWN_CHAIN.match(target) for target in targets) or bool(_OWN_COMMENT.search(line))
