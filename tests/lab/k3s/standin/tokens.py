# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""k3s's join tokens: the short form is a password, the secure form `K10<sha256 of the CA's PEM>::<user>:<password>`."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass

PREFIX = "K10"


class TokenError(Exception):
    """The token is malformed or does not belong to this cluster; the message is k3s's and holds no secret."""


@dataclass(frozen=True)
class Token:
    """A join token; `ca_hash` is empty in the short form."""

    password: str
    ca_hash: str = ""
    user: str = ""

    def __repr__(self) -> str:
        return f"Token(ca_hash={self.ca_hash!r})"

    def check_ca(self, ca_pem: bytes) -> None:
        """Raises TokenError unless the CA is the one that the token names; the short form trusts any."""
        actual = ca_hash(ca_pem)
        if self.ca_hash and not hmac.compare_digest(self.ca_hash, actual):
            raise TokenError(
                f"token CA hash does not match the Cluster CA certificate hash: {self.ca_hash} != {actual}"
            )


def ca_hash(ca_pem: bytes) -> str:
    """The sha256 of the CA file as it is on disk, in hex."""
    return hashlib.sha256(ca_pem).hexdigest()


def parse(text: str) -> Token:
    """A token of either form. Raises TokenError."""
    text = text.strip()
    if not text or any(character.isspace() for character in text):
        raise TokenError("invalid token: empty, or white space in it")
    if not text.startswith(PREFIX) or "::" not in text:
        return Token(password=text)
    named, credentials = text.removeprefix(PREFIX).split("::", 1)
    user, separator, password = credentials.partition(":")
    if len(named) != 64 or not separator or not password:
        raise TokenError("invalid token CA hash length or missing credentials")
    return Token(password=password, ca_hash=named, user=user)


def secure_form(password: str, ca_pem: bytes) -> str:
    """The token that the server writes and that joins agents."""
    return f"{PREFIX}{ca_hash(ca_pem)}::server:{password}"


def server_password(given: str, stored: str, ca_pem: bytes) -> str:
    """The cluster's password: the given token's, which must agree with an earlier start's; the stored one; a new one.

    `given` and `stored` are token texts or empty. Raises TokenError where k3s refuses to start.
    """
    known = parse(stored).password if stored else ""
    if not given:
        return known or secrets.token_hex(16)
    token = parse(given)
    token.check_ca(ca_pem)
    if known and known != token.password:
        raise TokenError(
            "failed to bootstrap cluster data: bootstrap data already found and encrypted with different token"
        )
    return token.password
