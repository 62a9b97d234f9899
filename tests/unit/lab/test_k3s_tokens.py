# Copyright (c) 2026 the infera.baremetal authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Join tokens of both forms."""

from __future__ import annotations

import pytest
from ansible_collections.infera.baremetal.tests.lab.k3s.standin import tokens

CA = b"abc"
# FIPS 180-2, appendix B.1: the SHA-256 of "abc".
CA_HASH = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
SECURE = f"K10{CA_HASH}::server:secret"


def test_the_secure_form():
    assert tokens.secure_form("secret", CA) == SECURE


@pytest.mark.parametrize(
    ("text", "token"),
    [
        ("secret\n", tokens.Token("secret")),
        ("K10rates", tokens.Token("K10rates")),
        (SECURE, tokens.Token("secret", CA_HASH, "server")),
    ],
)
def test_parse(text, token):
    assert tokens.parse(text) == token


@pytest.mark.parametrize(
    "text", ["", " ", "two words", "K10abc::server:secret", f"K10{CA_HASH}::secret", f"K10{CA_HASH}::server:"]
)
def test_a_malformed_token_is_refused(text):
    with pytest.raises(tokens.TokenError, match="invalid token"):
        tokens.parse(text)


def test_the_secure_form_checks_the_ca_and_the_short_form_trusts_any():
    tokens.parse(SECURE).check_ca(CA)
    tokens.parse("secret").check_ca(b"another")
    with pytest.raises(
        tokens.TokenError, match="token CA hash does not match the Cluster CA certificate hash: ba7816bf"
    ):
        tokens.parse(SECURE).check_ca(b"another")


def test_a_token_does_not_show_its_password():
    assert "secret" not in repr(tokens.parse(SECURE))


@pytest.mark.parametrize(("given", "stored"), [("", SECURE), ("secret", ""), ("secret", SECURE), (SECURE, SECURE)])
def test_the_servers_password(given, stored):
    assert tokens.server_password(given, stored, CA) == "secret"


def test_a_server_without_a_token_makes_one():
    assert len(tokens.server_password("", "", CA)) == 32


def test_a_server_refuses_another_token_than_its_data_was_made_with():
    with pytest.raises(tokens.TokenError, match="encrypted with different token"):
        tokens.server_password("other", SECURE, CA)
