# SPDX-License-Identifier: BSD-3-Clause
"""The Python interface, used in every order and wrong in every way; what is checked stands in ``world.py``.

``OFIPY_FUZZ_SECONDS`` says for how long, five seconds by default; ``OFIPY_SEED`` with which steps it begins, and a
failure says with which it did.
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.stateful import run_state_machine_as_test

sys.path.insert(0, str(Path(__file__).parent))
from machine import draw_machine
from other_side import Side
from targets import targets

SECONDS = float(os.environ.get("OFIPY_FUZZ_SECONDS", "5"))
# Examples between two looks at the clock.
BATCH = 10


@pytest.fixture
def side(pytestconfig: pytest.Config) -> Iterator[Side]:
    made = Side(targets(pytestconfig))
    yield made
    made.kill()


@pytest.mark.timeout(SECONDS + 1200)
def test_any_use_ends_well(pytestconfig: pytest.Config, side: Side) -> None:
    """Never a crash or a hang; only errors that are documented; every message whole and once; nothing left."""
    machine = draw_machine(targets(pytestconfig), side)
    settings = hypothesis.settings(
        max_examples=BATCH,
        stateful_step_count=40,
        suppress_health_check=list(hypothesis.HealthCheck),
        print_blob=True,
    )
    seed = int(os.environ.get("OFIPY_SEED", random.SystemRandom().randrange(2**32)))
    end, batches = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        try:
            run_state_machine_as_test(hypothesis.seed(seed + batches)(machine), settings=settings)
        except (AssertionError, hypothesis.errors.Flaky) as error:
            pytest.fail(
                f"{side.failure}\n{type(error).__name__} with OFIPY_SEED={seed + batches}", pytrace=False
            )
        batches += 1
    print(f"{batches * BATCH} examples")
