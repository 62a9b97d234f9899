# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lab's command line: tests/lab/lab --help"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import commands, requirements
from .faults import FAULTS
from .plan import MAX_NODES, Lab
from .progress import Progress
from .shell import LabError

CHECKOUT = Path(__file__).resolve().parents[3]
UP_STEPS, BUILD_STEPS = 6, 3
EXIT_ERROR, EXIT_UNFIT, EXIT_DOWN = 1, 3, 4


def parser() -> argparse.ArgumentParser:
    """The command line."""
    main_parser = argparse.ArgumentParser(
        prog="tests/lab/lab",
        description="Simulated GPU nodes on this machine, in network namespaces of their own.",
        epilog=f"Exit status: 0 done; {EXIT_ERROR} failed; {EXIT_UNFIT} this machine cannot host the lab; {EXIT_DOWN} `status`: the lab is not up.",
    )
    actions = main_parser.add_subparsers(dest="action", required=True)
    up = actions.add_parser("up", help="bring the lab up, reusing what stands")
    up.add_argument(
        "--nodes",
        type=int,
        choices=range(1, MAX_NODES + 1),
        help="how many (default: as many as there are; 2 at first)",
    )
    up.add_argument("--fresh", action="store_true", help="take it down first, so that every node is new")
    actions.add_parser("down", help="remove all that `up` made, but not the cache")
    actions.add_parser("status", help="say what stands")
    actions.add_parser("check", help="say what this machine lacks to host the lab")
    actions.add_parser("build", help="fill the cache and stop there")
    fault = actions.add_parser(
        "fault",
        help="switch a trouble on or off",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{name:18}{fault.description}" for name, fault in FAULTS.items()),
    )
    fault.add_argument("name", choices=FAULTS)
    fault.add_argument("switch", choices=["on", "off"])
    fault.add_argument("--node", default="lab2")
    fault.add_argument("--rail", type=int, default=0)
    return main_parser


def main(arguments: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    options = parser().parse_args(arguments)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "infera-lab"
    lab = Lab(CHECKOUT, cache)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup
            signal.signal(number, _interrupted)
    try:
        return _act(options, lab)
    except requirements.Unfit as unfit:
        print(
            "This machine cannot host the lab. It lacks:",
            *(f"  - {item}" for item in unfit.missing),
            sep="\n",
            file=sys.stderr,
        )
        return EXIT_UNFIT
    except (LabError, ValueError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("lab: interrupted; the same command continues from here, `down` removes what was made", file=sys.stderr)
        return 130


def _act(options: argparse.Namespace, lab: Lab) -> int:
    if options.action == "check":
        missing = requirements.missing(lab.checkout, lab.cache)
        if missing:
            raise requirements.Unfit(missing)
        print("this machine can host the lab")
        return 0
    if os.geteuid() != 0:
        raise requirements.Unfit(requirements.missing(lab.checkout, lab.cache))
    if options.action == "status":
        healthy, lines = commands.status(lab)
        print("\n".join(lines))
        return 0 if healthy else EXIT_DOWN
    with _alone(lab):
        if options.action == "up":
            progress = Progress(UP_STEPS)
            commands.up(lab, options.nodes, fresh=options.fresh, progress=progress)
            progress.say(f"{progress.seconds:.0f} s")
        elif options.action == "down":
            commands.down(lab, Progress(1))
        elif options.action == "build":
            commands.make(lab, Progress(BUILD_STEPS))
        else:
            title = commands.fault(lab, options.name, options.node, options.rail, on=options.switch == "on")
            print(f"{title}: {options.switch}")
    return 0


@contextmanager
def _alone(lab: Lab) -> Iterator[None]:
    """One command at a time per checkout. The lock is on the checkout's folder: it needs no file, and ends with the process."""
    handle = os.open(lab.checkout, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("another lab command runs in this checkout: waiting for it", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _interrupted(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
