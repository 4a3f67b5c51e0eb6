# SPDX-License-Identifier: BSD-3-Clause
"""The vectors of tests/native/test_verbs_prove.c are those of Python's hmac."""

import re
from pathlib import Path

import pytest

from tests.verbs.caller import Facts

SOURCE = Path(__file__).parents[1] / "native" / "test_verbs_prove.c"
FACTS = Facts(
    challenge=bytes([1]) * 8,
    caller_nonce=bytes([2]) * 13,
    acceptor_nonce=bytes([3]) * 16,
    caller_gid=bytes([4]) * 16,
    acceptor_gid=bytes([5]) * 16,
    caller=("203.0.113.1", 7001),
    acceptor=("203.0.113.2", 7002),
    caller_hello=bytes([6]) * 40,
    acceptor_hello=bytes([7]) * 40,
)


def vector(role: str) -> str:
    proof = FACTS.proof(b"a key file's bytes", role, 0x123456)
    return ", ".join(f"{byte:#04x}" for byte in proof)


@pytest.mark.parametrize("role", ["c", "a"])
def test_vectors(role: str) -> None:
    text = re.sub(r"\s+", " ", SOURCE.read_text())
    assert vector(role) in text
