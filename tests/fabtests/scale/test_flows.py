# SPDX-License-Identifier: BSD-3-Clause
"""What a process of a scale program counts, and how that of all adds up."""

import numpy as np
import pytest

from fabtests.base.fairness import jain
from fabtests.scale.flows import Flows, Turns
from ofipy.pingpong.plan import Span


def test_what_ends_outside_the_time_does_not_count() -> None:
    span = Span(begin=10.0, margin=0.25, seconds=2.0)
    assert [span.counts(now) for now in (10.2, 10.25, 12.2, 12.25)] == [False, True, True, False]
    assert span.end == 12.5


def test_percentiles_of_buckets_are_those_of_the_times() -> None:
    times = np.random.default_rng(1).lognormal(-9, 1, 20000)
    turns = Turns()
    for seconds in times:
        turns.add(seconds)
    for percent in (50, 99, 99.9):
        assert turns.percentile(percent) == pytest.approx(np.percentile(times, percent) * 1e6, rel=0.02)


def test_too_few_turns_have_no_tail() -> None:
    turns = Turns()
    assert turns.percentile(50) is None
    for _ in range(100):
        turns.add(1e-3)
    assert turns.percentile(99) == pytest.approx(1000, rel=0.01)
    assert turns.percentile(99.9) is None


def test_the_flows_of_all_processes_add_up() -> None:
    one, none, other = (Flows(np.array(counts, np.int64)) for counts in ([64], [], [0, 128]))
    one.turns.add(1e-3)
    other.turns.add(1e-3)
    found = Flows.add_up([each.encode() for each in (one, none, other)])
    assert found.counts.tolist() == [64, 0, 128]
    assert found.turns.percentile(50) == pytest.approx(1000, rel=0.01)


def test_fairness_is_the_share_of_those_who_get_anything() -> None:
    assert jain(np.array([5, 5, 5])) == pytest.approx(1)
    assert jain(np.array([9, 0, 0])) == pytest.approx(1 / 3)
    assert jain(np.array([0, 0, 0])) == 0
