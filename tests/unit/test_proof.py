# SPDX-License-Identifier: BSD-3-Clause
"""``native/proof`` against Python's ``hmac``: HMAC, derived keys, transcripts and proofs."""

import hashlib
import hmac
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cffi import FFI
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from proof_model import TcpTranscript, derive, prove

ROOT = Path(__file__).resolve().parents[2]
DECLARATIONS = """
void ofpi_hmac_compute(const uint8_t *key, size_t key_length, const uint8_t *bytes, size_t length, uint8_t *digest);
void ofpi_hkdf_compute(const uint8_t *key, size_t key_length, const char *info, uint8_t *derived);
struct ofpi_transcript { uint8_t bytes[512]; size_t length; };
void ofpi_transcript_add(struct ofpi_transcript *transcript, const uint8_t *bytes, size_t length);
void ofpi_proof_compute(const uint8_t *key, size_t key_length, const struct ofpi_transcript *transcript,
                        uint8_t *proof);
bool ofpi_proof_is_valid(const uint8_t *key, size_t key_length, const struct ofpi_transcript *transcript,
                         const uint8_t *proof);
"""
# What the declarations in Python must agree with.
SIZES = """
#include "proof/proof.h"
_Static_assert(sizeof(struct ofpi_transcript) == 512 + sizeof(size_t), "a transcript");
_Static_assert(OFPI_PROOF_SIZE == 32, "a proof");
"""

KEYS = st.binary(min_size=1, max_size=1024)
FIELDS = st.lists(st.binary(max_size=64), max_size=8)

# Today's bytes: made once, from the provider's page, when both sides knew version 1 only.
KEY = bytes(range(16, 48))
TRANSCRIPT = TcpTranscript(
    nonces=(bytes(range(32)), bytes(range(32, 64))),
    addresses=(("192.0.2.1", 7471), ("2001:db8::1", 65535)),
    identities=(bytes(range(64, 80)), bytes(range(80, 96))),
)
VECTORS = {
    "c": "64c3271e597c714a8b06cdc357d835964ad17daab5c196fcf5139730c10a10ac",
    "a": "bd37b262d9c37e0fe7883b3fbca0027ae8f8f4a1c42ff7c239c73c73eab5bb91",
}


@dataclass(frozen=True, slots=True)
class Library:
    """The C functions, with Python's values."""

    ffi: FFI
    c: Any

    def hmac(self, key: bytes, text: bytes) -> bytes:
        digest = self.ffi.new("uint8_t[32]")
        self.c.ofpi_hmac_compute(key, len(key), text, len(text), digest)
        return bytes(digest)

    def derive(self, key: bytes, info: str) -> bytes:
        derived = self.ffi.new("uint8_t[32]")
        self.c.ofpi_hkdf_compute(key, len(key), info.encode(), derived)
        return bytes(derived)

    def transcript(self, *fields: bytes) -> Any:
        transcript = self.ffi.new("struct ofpi_transcript *")
        for each in fields:
            self.c.ofpi_transcript_add(transcript, each, len(each))
        return transcript

    def prove(self, key: bytes, *fields: bytes) -> bytes:
        proof = self.ffi.new("uint8_t[32]")
        self.c.ofpi_proof_compute(key, len(key), self.transcript(*fields), proof)
        return bytes(proof)

    def is_valid(self, proof: bytes, key: bytes, *fields: bytes) -> bool:
        return bool(self.c.ofpi_proof_is_valid(key, len(key), self.transcript(*fields), proof))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    folder = tmp_path_factory.mktemp("proof")
    (folder / "sizes.c").write_text(SIZES)
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            *("-shared", "-fPIC", "-O1", "-std=c11", "-D_GNU_SOURCE"),
            *(f"-I{ROOT / each}" for each in ("native", "native/include")),
            *(str(each) for each in (folder / "sizes.c", *sorted((ROOT / "native/proof").glob("*.c")))),
            *("-o", str(folder / "proof.so")),
        ],
        check=True,
        timeout=60,
    )
    ffi = FFI()
    ffi.cdef(DECLARATIONS)
    return Library(ffi, ffi.dlopen(str(folder / "proof.so")))


@given(key=st.binary(max_size=200), text=st.binary(max_size=300))
def test_hmac(library: Library, key: bytes, text: bytes) -> None:
    assert library.hmac(key, text) == hmac.digest(key, text, hashlib.sha256)


@given(key=KEYS, info=st.text(st.characters(min_codepoint=1, codec="ascii"), max_size=80))
def test_derived_keys(library: Library, key: bytes, info: str) -> None:
    assert library.derive(key, info) == derive(key, info)


@given(key=KEYS, fields=FIELDS)
def test_proofs(library: Library, key: bytes, fields: list[bytes]) -> None:
    proof = prove(key, *fields)
    assert library.prove(key, *fields) == proof
    assert library.is_valid(proof, key, *fields)


@given(
    key=KEYS,
    fields=st.lists(st.binary(min_size=1, max_size=64), min_size=1, max_size=8),
    place=st.integers(0, 2**16),
    bit=st.integers(0, 7),
)
def test_proofs_of_something_else(
    library: Library, key: bytes, fields: list[bytes], place: int, bit: int
) -> None:
    def changed(text: bytes) -> bytes:
        at = place % len(text)
        return text[:at] + bytes([text[at] ^ 1 << bit]) + text[at + 1 :]

    proof = prove(key, *fields)
    assert not library.is_valid(changed(proof), key, *fields)
    assert not library.is_valid(proof, key, changed(b"".join(fields)))
    assert not library.is_valid(proof, changed(key), *fields)


@given(key=KEYS, fields=FIELDS)
def test_proofs_with_the_key_of_a_provider(library: Library, key: bytes, fields: list[bytes]) -> None:
    """The proof of verbs is one with a key of its own: neither counts for the other provider."""
    info = "ofipy verbs proof 1"
    own = library.derive(key, info)
    proof = library.prove(own, *fields)
    assert proof == prove(derive(key, info), *fields)
    assert library.is_valid(proof, own, *fields)
    assert not library.is_valid(proof, key, *fields)
    assert not library.is_valid(prove(key, *fields), own, *fields)


@pytest.mark.parametrize("role", sorted(VECTORS))
def test_the_vectors_of_tcp(library: Library, role: str) -> None:
    assert TRANSCRIPT.proof(role, KEY).hex() == VECTORS[role]
    assert library.prove(KEY, *TRANSCRIPT.fields(role)).hex() == VECTORS[role]


def test_the_vector_of_a_derived_key(library: Library) -> None:
    assert (
        library.derive(KEY, "ofipy verbs proof 1").hex()
        == "acaeff83092e28074a92087a089d6a7380a23fddb136cc1874a2c1fc53c43e63"
    )
