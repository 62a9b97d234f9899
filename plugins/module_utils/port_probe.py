# -*- coding: utf-8 -*-
# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Can this port of that host be reached, before anything listens there?

One side listens for a bounded time and answers a nonce with it and with its own name; the other side sends nonces to many
targets at once. The listener keeps no file: it is found, and stopped, through an abstract socket of its network
namespace, which goes with the process however that ends.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import selectors
import signal
import socket
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Set, Tuple

from ansible_collections.infera.baremetal.plugins.module_utils.host import PROBE_NAME

CONTROL = "\0infera-port-probe"
MAGIC = "infera-port-probe"
MAX_MESSAGE = 512
# Connections that a listener serves at once, and how long each may take.
MAX_CLIENTS = 256
CLIENT_SECONDS = 5.0
# How often an unanswered datagram is sent again within the time limit.
DATAGRAM_TRIES = 4


class PortProbeError(Exception):
    """The listener cannot be started, or does not stop; the message says why."""


@dataclass(frozen=True)
class Port:
    number: int
    protocol: str

    def __str__(self) -> str:
        return f"{self.number}/{self.protocol}"


@dataclass(frozen=True)
class Target:
    """C(answers): whether a port_probe is thought to listen there; else a mere connection counts, and UDP is not tested."""

    host: str
    address: str
    port: Port
    answers: bool = True


@dataclass(frozen=True)
class Result:
    """What one probe saw.

    C(state) is open, wrong_host (another host of the play answered, C(detail) names it), refused (the host answers, nothing
    listens or a firewall rejects), timeout, unreachable (the network says so), no_source (this host lacks the address to
    ask from), not_tested, failed (C(detail) says why).
    """

    host: str
    address: str
    port: str
    state: str
    rtt_ms: Optional[float] = None
    detail: str = ""

    def to_dict(self) -> Dict[str, Any]:
        return asdict(self)


def parse_port(text: str) -> Port:
    """C(6443/tcp) -> Port; ValueError with a message for people otherwise."""
    number, _slash, protocol = str(text).strip().partition("/")
    if not number.isdigit() or not 1 <= int(number) <= 65535 or protocol not in ("tcp", "udp"):
        raise ValueError(f"{text!r} is not a port; write it like 6443/tcp or 8472/udp")
    return Port(int(number), protocol)


def parse_targets(given: Iterable[Dict[str, Any]], own_name: str) -> List[Target]:
    """[{host, address, ports, answers}] -> one Target a port, without C(own_name); ValueError as parse_port."""
    targets = []
    for entry in given:
        if entry.get("host") == own_name:
            continue
        for text in entry.get("ports") or []:
            answers = str(entry.get("answers", True)).lower() in ("true", "yes", "1")
            targets.append(Target(str(entry.get("host")), str(entry.get("address")), parse_port(text), answers))
    return targets


# --- the side that listens ------------------------------------------------------------------------------------------


def check_address(address: str) -> str:
    """The address itself; ValueError where it is none, so that no name is ever looked up."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError as error:
        raise ValueError(f"{address!r} is not an IP address") from error


def open_sockets(address: str, ports: Sequence[Port]) -> Tuple[Dict[Port, socket.socket], List[Dict[str, str]]]:
    """Sockets bound to the ports of one address, and the ports that cannot be had with the reason (C(in_use) or a text)."""
    opened: Dict[Port, socket.socket] = {}
    refused = []
    for port in ports:
        kind = socket.SOCK_STREAM if port.protocol == "tcp" else socket.SOCK_DGRAM
        sock = socket.socket(_family(address), kind)
        try:
            if port.protocol == "tcp":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((address, port.number))
            if port.protocol == "tcp":
                sock.listen(MAX_CLIENTS)
            sock.setblocking(False)
        except OSError as error:
            sock.close()
            reason = "in_use" if error.errno == errno.EADDRINUSE else (error.strerror or str(error))
            refused.append({"port": str(port), "reason": reason})
        else:
            opened[port] = sock
    return opened, refused


def start_listener(
    host: str, address: str, ports: Sequence[Port], seconds: float, control: str = CONTROL
) -> Tuple[List[str], List[Dict[str, str]]]:
    """Listen in a process of its own for C(seconds); the ports it listens on, and those it could not have.

    An earlier listener is stopped first, so that a run that was killed does not stand in the way of the next.
    """
    check_address(address)
    stop_listener(control)
    opened, refused = open_sockets(address, ports)
    listening = [str(port) for port in opened]
    if not opened:
        return [], refused
    commands = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        commands.bind(control)
        commands.listen(4)
        deadline = time.monotonic() + seconds
        keep = [commands, *opened.values()]
        _detach(lambda: serve(host, list(opened.values()), commands, deadline), keep)
    except OSError as error:
        raise PortProbeError(f"the listener cannot be started: {error.strerror or error}") from error
    finally:
        for sock in [commands, *opened.values()]:
            sock.close()
    return listening, refused


def stop_listener(control: str = CONTROL, seconds: float = 5.0) -> bool:
    """Stop the listener of this network namespace and wait until it is gone; whether there was one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.settimeout(seconds)
        try:
            sock.connect(control)
            # Its process ends without answering; then the system closes this connection with all its ports.
            while sock.recv(MAX_MESSAGE):
                pass
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except ConnectionResetError:
            return True
        except OSError as error:
            raise PortProbeError(f"an earlier listener does not stop: {error.strerror or error}") from error
    return True


def serve(host: str, sockets: Sequence[socket.socket], commands: socket.socket, deadline: float) -> None:
    """Answer nonces until the deadline, or until something connects to C(commands)."""
    with selectors.DefaultSelector() as selector:
        commands.setblocking(False)
        selector.register(commands, selectors.EVENT_READ, "commands")
        for sock in sockets:
            selector.register(sock, selectors.EVENT_READ, "tcp" if sock.type == socket.SOCK_STREAM else "udp")
        clients: Dict[socket.socket, float] = {}
        while True:
            now = time.monotonic()
            for client in [client for client, end in clients.items() if end <= now]:
                _drop(selector, clients, client)
            if now >= deadline:
                return
            for key, _events in selector.select(min([deadline] + list(clients.values())) - now):
                if key.data == "commands":
                    # Left open: whoever stops us waits until it closes, which the end of this process does, last of all.
                    commands.accept()[0].detach()
                    for sock in [*sockets, commands]:
                        sock.close()
                    return
                elif key.data == "tcp":
                    client = _accept(key.fileobj)
                    if client is not None and len(clients) >= MAX_CLIENTS:
                        client.close()
                    elif client is not None:
                        clients[client] = time.monotonic() + CLIENT_SECONDS
                        selector.register(client, selectors.EVENT_READ, "client")
                elif key.data == "udp":
                    _answer_datagram(host, key.fileobj)
                elif not _answer_client(host, key.fileobj):
                    _drop(selector, clients, key.fileobj)


def _accept(sock: Any) -> Optional[socket.socket]:
    try:
        client, _address = sock.accept()
    except OSError:
        return None
    client.setblocking(False)
    return client


def _drop(selector: selectors.BaseSelector, clients: Dict[socket.socket, float], client: Any) -> None:
    selector.unregister(client)
    clients.pop(client, None)
    client.close()


def _answer_client(host: str, client: Any) -> bool:
    """Whether the connection stays: the prober closes first, so that no port of ours is left in TIME_WAIT."""
    try:
        reply = answer(host, client.recv(MAX_MESSAGE))
        if reply:
            client.send(reply)
        return reply is not None
    except OSError:
        return False


def _answer_datagram(host: str, sock: Any) -> None:
    try:
        message, sender = sock.recvfrom(MAX_MESSAGE)
        reply = answer(host, message)
        if reply:
            sock.sendto(reply, sender)
    except OSError:
        return


def question(nonce: str) -> bytes:
    return f"{MAGIC} {nonce}\n".encode()


def answer(host: str, message: bytes) -> Optional[bytes]:
    """The reply to a question; None to anything else. Never longer than twice the question: no use as an amplifier."""
    words = message.decode("ascii", "replace").split()
    if len(words) != 2 or words[0] != MAGIC:
        return None
    return f"{MAGIC} {words[1][:64]} {host}\n".encode()


def _detach(work: Callable[[], None], keep: Sequence[socket.socket]) -> None:
    """Run C(work) in a process that nothing waits for: two forks, a session of its own, no open files but its sockets."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        _leave_everything({sock.fileno() for sock in keep})
        work()
    finally:
        os._exit(0)


def _leave_everything(keep: Set[int]) -> None:
    """No folder, terminal, signal or open file of whoever started us, but C(keep); and a name of our own in C(ps) and C(ss)."""
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) not in keep:
            try:
                os.close(int(name))
            except OSError:
                continue
    for name in ("SIGHUP", "SIGPIPE"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        with open("/proc/self/comm", "w", encoding="ascii") as handle:
            handle.write(PROBE_NAME)
    except OSError:
        return


# --- the side that asks ----------------------------------------------------------------------------------------------


def probe(targets: Sequence[Target], source: str = "", timeout: float = 3.0, concurrency: int = 128) -> List[Result]:
    """Ask all targets, at most C(concurrency) at once, each for at most C(timeout) seconds; results in the targets' order.

    With C(source) the questions leave from that address, as the node's own traffic will.
    """
    results: Dict[int, Result] = {}
    waiting = list(enumerate(targets))
    open_probes: Dict[int, _Probe] = {}
    with selectors.DefaultSelector() as selector:
        while waiting or open_probes:
            while waiting and len(open_probes) < concurrency:
                number, target = waiting.pop(0)
                started = _Probe(target, source, timeout)
                if started.result is None and started.sock is not None:
                    open_probes[number] = started
                    selector.register(started.sock, started.events, number)
                else:
                    results[number] = started.finish()
            now = time.monotonic()
            pause = min([entry.wake for entry in open_probes.values()], default=now) - now
            for key, events in selector.select(max(0.0, pause)) if open_probes else ():
                entry = open_probes[key.data]
                entry.advance(events)
                if entry.result is None:
                    selector.modify(entry.sock, entry.events, key.data)
            now = time.monotonic()
            for number, entry in list(open_probes.items()):
                if entry.result is None and entry.wake <= now:
                    entry.tick(now)
                if entry.result is not None:
                    selector.unregister(entry.sock)
                    results[number] = entry.finish()
                    del open_probes[number]
    return [results[number] for number in range(len(targets))]


class _Probe:
    """One question under way. C(wake) is when it needs attention without an event; C(result) is set once it is over."""

    def __init__(self, target: Target, source: str, timeout: float) -> None:
        self.target = target
        self.nonce = os.urandom(8).hex()
        self.started = time.monotonic()
        self.deadline = self.started + timeout
        self.again = timeout / DATAGRAM_TRIES
        self.wake = self.deadline
        self.result: Optional[Result] = None
        self.sock: Optional[socket.socket] = None
        self.events = selectors.EVENT_WRITE
        self.connected = False
        self.received = b""
        if target.port.protocol == "udp" and not target.answers:
            self._end("not_tested", "nothing that would answer listens there")
            return
        try:
            self._open(source)
        except (OSError, ValueError) as error:
            self._fail(error)

    def _open(self, source: str) -> None:
        kind = socket.SOCK_STREAM if self.target.port.protocol == "tcp" else socket.SOCK_DGRAM
        self.sock = socket.socket(_family(check_address(self.target.address)), kind)
        self.sock.setblocking(False)
        if source:
            try:
                self.sock.bind((source, 0))
            except OSError as error:
                self._end("no_source", f"{source}: {error.strerror or error}")
                return
        code = self.sock.connect_ex((self.target.address, self.target.port.number))
        if code not in (0, errno.EINPROGRESS):
            raise OSError(code, os.strerror(code))
        if kind == socket.SOCK_DGRAM:
            self._ask_datagram(time.monotonic())

    def advance(self, events: int) -> None:
        """Something happened on the socket."""
        sock = self.sock
        if sock is None:
            return
        try:
            if self.target.port.protocol == "tcp" and not self.connected:
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code:
                    raise OSError(code, os.strerror(code))
                self.connected = True
                if not self.target.answers:
                    self._end("open")
                    return
                sock.send(question(self.nonce))
                self.events = selectors.EVENT_READ
                # k3s does not know the question: a connection is enough, it need not take the whole time.
                self.wake = min(self.deadline, time.monotonic() + 1.0)
            elif events & selectors.EVENT_READ:
                self._take(sock.recv(MAX_MESSAGE))
        except BlockingIOError:
            return
        except OSError as error:
            if self.connected:
                self._end("open", "something else than port_probe answers")
            else:
                self._fail(error)

    def tick(self, now: float) -> None:
        """Time has passed without an event."""
        if self.connected:
            self._end("open", "something else than port_probe answers")
        elif now >= self.deadline:
            self._end("timeout")
        else:
            try:
                self._ask_datagram(now)
            except OSError as error:
                self._fail(error)

    def _ask_datagram(self, now: float) -> None:
        self.events = selectors.EVENT_READ
        self.wake = min(self.deadline, now + self.again)
        if self.sock is not None:
            self.sock.send(question(self.nonce))

    def _take(self, piece: bytes) -> None:
        self.received += piece
        if (
            self.target.port.protocol == "tcp"
            and piece
            and b"\n" not in self.received
            and len(self.received) < MAX_MESSAGE
        ):
            return
        words = self.received.decode("utf-8", "replace").split()
        if words[:2] == [MAGIC, self.nonce]:
            name = " ".join(words[2:])
            if name == self.target.host:
                self._end("open")
            else:
                self._end("wrong_host", name)
        elif self.target.port.protocol == "tcp":
            self._end("open", "something else than port_probe answers")
        else:
            self.received = b""

    def _fail(self, error: Exception) -> None:
        code = getattr(error, "errno", None)
        text = getattr(error, "strerror", None) or str(error)
        if code == errno.ECONNREFUSED:
            self._end("refused", text)
        elif code in (
            errno.EHOSTUNREACH,
            errno.ENETUNREACH,
            errno.EACCES,
            errno.EPERM,
            errno.ENETDOWN,
            errno.EHOSTDOWN,
        ):
            self._end("unreachable", text)
        elif code == errno.ETIMEDOUT:
            self._end("timeout", text)
        else:
            self._end("failed", text)

    def _end(self, state: str, detail: str = "") -> None:
        rtt = round((time.monotonic() - self.started) * 1000, 2) if state in ("open", "wrong_host") else None
        self.result = Result(self.target.host, self.target.address, str(self.target.port), state, rtt, detail)

    def finish(self) -> Result:
        if self.sock is not None:
            self.sock.close()
        if self.result is None:
            self._end("failed", "was not asked")
        return self.result


def _family(address: str) -> int:
    return socket.AF_INET6 if ":" in address else socket.AF_INET
