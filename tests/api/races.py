# SPDX-License-Identifier: BSD-3-Clause
"""Run one race again and again: ``races.py TARGET SCENARIO TURNS SEED``. It ends with 0 when all were right."""

import faulthandler
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import race_tasks
import race_threads
from pair import PATIENCE, Leftovers, open_domain
from race_stage import SCENARIOS, Stage

__all__ = ["race_tasks", "race_threads"]


def main() -> None:
    target, name, turns, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    faulthandler.enable()
    scenario = SCENARIOS[name]
    open_domain(target).fabric.close()  # what is made once and stays
    leftovers = Leftovers()
    ignored: list[str] = []
    sys.unraisablehook = lambda what: ignored.append(f"{what.exc_value!r} in {what.object!r}")
    domain = open_domain(target)
    endpoint = domain.endpoint().enable()
    stage = Stage(target, endpoint, endpoint.insert(endpoint.address), random.Random(seed))
    for _ in range(turns):
        # A turn that hangs says where.
        faulthandler.dump_traceback_later(4 * PATIENCE, exit=True)
        scenario.turn(stage)
        assert endpoint.stats().posted_receives == 0 or endpoint.info.offloads_matching
    faulthandler.cancel_dump_traceback_later()  # and its thread
    del stage, endpoint
    domain.fabric.close()
    leftovers.check()
    assert not ignored, ignored
    print(f"{turns} turns")


if __name__ == "__main__":
    main()
