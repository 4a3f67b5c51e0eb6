# SPDX-License-Identifier: BSD-3-Clause
"""Run one case in a storm: ``interrupts.py TARGET CASE SECONDS SEED``. It ends with 0 when all was right."""

import faulthandler
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import storm_connections
import storm_raw
import storm_receives
import storm_remote
import storm_sends
import storm_waits
from pair import Leftovers, Pair
from storm import Storm
from storm_cases import CASES, Scene

__all__ = ["storm_connections", "storm_raw", "storm_receives", "storm_remote", "storm_sends", "storm_waits"]

# Interrupts that a run has to have had, and how many times as long it may take for that; seconds at least, since a busy
# machine may let the sender of the signals wait.
LEAST, LONGEST, PATIENCE = 10, 20, 30.0


def main() -> None:
    target, name, seconds, seed = sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
    faulthandler.enable()
    longest = max(LONGEST * seconds, PATIENCE)
    faulthandler.dump_traceback_later(longest + 60, exit=True)
    case = CASES[name]
    ignored: list[str] = []
    sys.unraisablehook = lambda what: ignored.append(f"{what.exc_value!r} in {what.object!r}")
    Pair(target).close()  # what is made once and stays
    leftovers = Leftovers()
    begin, rounds = time.monotonic(), 0
    with Storm() as storm:
        scene = Scene(storm, target, Pair(target, case.options), random.Random(seed))
        for _ in case.rounds(scene):
            rounds += 1
            past = time.monotonic() - begin
            if (past > seconds and storm.interrupts >= LEAST) or past > longest:
                break
    scene.close()
    del scene
    leftovers.check()
    print(
        f"{rounds} rounds, {storm.attempts} calls, {storm.interrupts} of them interrupted by {storm.signals} signals"
    )
    # An interrupt that Python delivers within a finaliser is lost, whatever a library does.
    ignored = [what for what in ignored if not what.startswith("KeyboardInterrupt")]
    assert not ignored, ignored
    assert storm.interrupts >= LEAST, "too few were interrupted"


if __name__ == "__main__":
    main()
