# SPDX-License-Identifier: BSD-3-Clause
"""Random sequences of RMA and atomic operations on one region, held against an array."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from remote import BOTH, TIMEOUT
from test_atomics import expected

import ofipy
from ofipy import AtomicOp

pytestmark = pytest.mark.needs("rma", "atomic")

ELEMENTS = 2048


@dataclass(frozen=True, slots=True)
class Step:
    """One operation on a run of 64-bit elements."""

    kind: str
    first: int
    count: int
    seed: int
    op: AtomicOp


BASE = [
    op for op in AtomicOp if op not in (AtomicOp.READ, AtomicOp.MSWAP) and not op.name.startswith("CSWAP")
]
COMPARE = [op for op in AtomicOp if op is AtomicOp.MSWAP or op.name.startswith("CSWAP")]


@st.composite
def steps(draw: Any) -> Step:
    kind = draw(st.sampled_from(["read", "write", "atomic", "fetch", "compare"]))
    count = draw(st.sampled_from([1, 1, 2, 7, 64, 513, 1500]))
    ops = COMPARE if kind == "compare" else [*BASE, AtomicOp.READ] if kind == "fetch" else BASE
    return Step(
        kind,
        draw(st.integers(0, ELEMENTS - count)),
        count,
        draw(st.integers(0, 2**32 - 1)),
        draw(st.sampled_from(ops)),
    )


def run(step: Step, ep: ofipy.Endpoint, me: int, remote: ofipy.RemoteRegion, model: np.ndarray) -> None:
    part = slice(step.first, step.first + step.count)
    piece = remote[8 * part.start : 8 * part.stop]
    random = np.random.default_rng(step.seed)
    value, compare = random.integers(0, 4, (2, step.count), dtype=np.uint64)
    old = model[part].copy()
    if step.kind not in ("read", "write"):
        kind = "base" if step.kind == "atomic" else step.kind
        if step.count > ep.domain.atomic_valid(step.op, np.uint64, kind=kind):
            return
    if step.kind == "read":
        into = np.zeros(step.count, np.uint64)
        ep.read(into, me, piece).wait(timeout=TIMEOUT)
        assert np.array_equal(into, old)
    elif step.kind == "write":
        ep.write(value, me, piece, complete="delivery").wait(timeout=TIMEOUT)
        model[part] = value
    else:
        model[part] = expected(step.op, old, value, compare)
        if step.kind == "atomic":
            ep.atomic(value, me, piece, op=step.op, complete="delivery").wait(timeout=TIMEOUT)
            return
        request = (
            ep.fetch_atomic(value, me, piece, op=step.op)
            if step.kind == "fetch"
            else ep.compare_atomic(value, compare, me, piece, op=step.op)
        )
        assert np.array_equal(request.wait(timeout=TIMEOUT), old)


@pytest.mark.parametrize("kind", ["registered", "domain"])
def test_against_a_model(open_endpoint: Callable[..., ofipy.Endpoint], kind: str) -> None:
    ep = open_endpoint()
    peer = open_endpoint()
    # The memory is another domain's, reached over the provider.
    memory = (
        peer.empty(ELEMENTS, np.uint64, access=ofipy.Access.LOCAL | BOTH)
        if kind == "domain"
        else np.zeros(ELEMENTS, np.uint64)
    )
    region = peer.domain.region(memory) if kind == "domain" else peer.register(memory, access=BOTH)
    other = ep.insert(peer.address)

    @settings(max_examples=40, suppress_health_check=list(HealthCheck))
    @given(st.lists(steps(), max_size=30))
    def check(sequence: list[Step]) -> None:
        memory[:] = 0
        model = np.zeros(ELEMENTS, np.uint64)
        for step in sequence:
            run(step, ep, other, region.remote, model)
        assert np.array_equal(memory, model)

    check()
