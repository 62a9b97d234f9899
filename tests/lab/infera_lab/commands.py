# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the lab does at one's command: come up, go down, say how it is, break something."""

from __future__ import annotations

import shutil

from . import build, inventory, k3s, network, nodes, requirements, ssh, state
from .faults import FAULTS
from .plan import RAILS, Lab
from .progress import Progress
from .shell import LabError, run

BIN = {
    "ssh": '#!/bin/sh\nexec /usr/bin/ssh -F "{config}" "$@"\n',
    "scp": '#!/bin/sh\nexec /usr/bin/scp -F "{config}" "$@"\n',
}


def up(lab: Lab, count: int | None, *, fresh: bool, progress: Progress) -> None:
    """From whatever stands to a complete lab of `count` nodes (as many as it has, two at first)."""
    known = state.load(lab)
    if fresh or (known and known.leaving):
        # A `down` that was cut short is finished first: half of an old cluster is no start for a new one.
        down(lab, progress)
    wanted = state.State(count or (known.nodes if known else state.DEFAULT_NODES))
    plan = lab.nodes(wanted.nodes)
    kubernetes, node, images = make(lab, progress)
    state.save(lab, wanted)

    with progress.step("preparing k3s, keys and the inventory"):
        chosen = k3s.up(lab.state / "k3s", lab.cache, images.directory)
        ssh.up(lab)
        _folders(lab, kubernetes, images)
        inventory.write(lab, plan, images.directory, chosen)
        progress.note(f"k3s is {chosen.version}{' (stand-in)' if chosen.stand_in else ''}")
    with progress.step(f"joining {len(plan)} nodes: namespaces, management network, {RAILS} rails each"):
        nodes.down(lab, lab.nodes()[len(plan) :])
        network.remove(other.namespace for other in lab.nodes()[len(plan) :])
        network.up(lab, plan)
    with progress.step(f"booting {len(plan)} nodes"):
        if shortage := nodes.inotify_shortage(plan):
            progress.note(shortage)
        made = nodes.up(lab, plan, build.node_image(node, progress.note), kubernetes.directory)
        for each in plan:
            # What `up` has not put back by making it anew: the file that fills a disk.
            FAULTS["disk-full"].switch(lab, each, 0, False)
        progress.note(
            f"made anew: {', '.join(made) or 'none'}; reused: {', '.join(each.name for each in plan if each.name not in made) or 'none'}"
        )
    for title in known.faults if known else []:
        _switch_off(lab, title)
    state.save(lab, state.State(wanted.nodes, complete=True))
    if known and known.faults:
        progress.say(f"switched off: {', '.join(known.faults)}")
    progress.say(
        f"the lab {lab.id} is up: {', '.join(each.name for each in plan)}. Look around with tests/lab/enter ssh lab1"
    )


def make(lab: Lab, progress: Progress) -> tuple[build.Build, build.Build, build.Build]:
    """Build what the lab is made of, and install what that needs; everything comes from the cache the next time."""
    missing = requirements.missing(lab.checkout, lab.cache)
    if missing:
        raise requirements.Unfit(missing)
    kubernetes, node = build.kubernetes(lab.cache), build.node(lab.cache)
    images = build.images(lab.cache, kubernetes)
    to_build = [each for each in (kubernetes, node) if not each.built]
    packages = requirements.missing_packages(
        [*requirements.PACKAGES, *(name for each in to_build for name in each.packages)]
    )
    with progress.step(
        f"installing {len(packages)} Debian packages (about 1 min)" if packages else "Debian packages are installed"
    ):
        if packages:
            progress.note(" ".join(packages))
            requirements.install(packages)
    what = " and ".join(f"{each.title} (about {each.about})" for each in to_build)
    with progress.step(
        f"building {what}{', side by side' if len(to_build) > 1 else ''}"
        if what
        else "Kubernetes and the node image are cached"
    ):
        build.ensure([kubernetes, node], progress.note)
        build.node_image(node, progress.note)
    with progress.step(
        "the container images are cached" if images.built else f"building {images.title} (about {images.about})"
    ):
        build.ensure([images], progress.note)
    return kubernetes, node, images


def down(lab: Lab, progress: Progress) -> None:
    """Remove everything that `up` made, but not the cache. Nothing there is no error."""
    known = state.load(lab)
    if known:
        state.save(lab, state.State(known.nodes, leaving=True))
    ssh.close_connections(lab)
    nodes.down(lab, lab.nodes())
    network.down(lab)
    inventory.remove(lab)
    # The record and the kubeconfig of a cluster that is gone would be taken for the next one's.
    for directory in (lab.state, lab.runtime, lab.checkout / "artifacts" / "lab"):
        if directory.exists():
            # The disks were unmounted above, or it would have stopped there: nothing of a node is deleted through a mount.
            shutil.rmtree(directory)
    progress.say(f"the lab {lab.id} is down")


def status(lab: Lab) -> tuple[bool, list[str]]:
    """(whether the lab is up, lines for a reader)."""
    known = state.load(lab)
    if known is None:
        return False, [f"lab {lab.id}: down"]
    lines = []
    healthy = known.complete
    for node in lab.nodes(known.nodes):
        container = nodes.inspect(node)
        word = container.status if container else "missing"
        answer = "no answer"
        if word == "running":
            done = run(*ssh.command(lab, node), "systemctl is-system-running", check=False, timeout=30)
            answer = done.stdout.strip() or "no answer"
        healthy = healthy and answer in ("running", "degraded")
        lines.append(f"  {node.name}  {node.management.ip}  container {word}, systemd: {answer}")
    lines.append(f"  faults: {', '.join(known.faults) or 'none'}")
    head = "up" if healthy else "not as it should be; `up` mends it, `down` removes it"
    return healthy, [f"lab {lab.id}: {head}", *lines]


def fault(lab: Lab, name: str, node_name: str, rail: int, *, on: bool) -> str:
    """Switch a fault; returns how the lab calls it."""
    known = state.load(lab)
    if known is None or not known.complete:
        raise LabError("the lab is down: make lab brings it up")
    node = lab.node(node_name)
    if node.number > known.nodes:
        raise LabError(f"{node_name}: this lab has {known.nodes} nodes")
    if not 0 <= rail < RAILS:
        raise LabError(f"rail {rail}: a node has rails 0 to {RAILS - 1}")
    FAULTS[name].switch(lab, node, rail, on)
    title = f"{name} {node.name}" + (f" rail{rail}" if FAULTS[name].of_rail else "")
    known.faults = [other for other in known.faults if other != title] + ([title] if on else [])
    state.save(lab, known)
    return title


def _switch_off(lab: Lab, title: str) -> None:
    """Undo a fault by what `fault` called it: its name, the node, and the rail where it is a rail's."""
    name, node, *rail = title.split()
    FAULTS[name].switch(lab, lab.node(node), int(rail[0].removeprefix("rail")) if rail else 0, False)


def _folders(lab: Lab, kubernetes: build.Build, images: build.Build) -> None:
    """.lab/images, and .lab/bin with what `enter` puts on the PATH."""
    programs = lab.state / "bin"
    programs.mkdir(exist_ok=True)
    for name, text in BIN.items():
        (programs / name).write_text(text.format(config=ssh.config(lab)))
        (programs / name).chmod(0o755)
    for link, target in (
        (programs / "kubectl", kubernetes.directory / "kubectl"),
        (lab.state / "images", images.directory),
    ):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
