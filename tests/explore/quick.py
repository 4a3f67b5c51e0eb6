# SPDX-License-Identifier: BSD-3-Clause
"""What each change is explored by: ``python -m tests.explore.quick``.

A fixed number of runs with a fixed seed, so that the same tree has the same result on a slow machine too; and all
recorded traces. Fresh seeds are for ``python -m tests.explore``.
"""

import sys

from .__main__ import print_tallies
from .build import Build
from .recorded import replay_traces
from .report import print_failure
from .scenario import CannotRun
from .scenarios import list_scenarios
from .search import Search

SEED = 0x0F1B28
RUNS = 50
"""Of each scenario; the last one is repeated, to see that it is deterministic."""


def main() -> int:
    """Exit status 0: nothing was found; 1: something; 2: it cannot run."""
    chosen = [scenario for scenario in list_scenarios(Build()) if scenario.kind == "schedules"]
    try:
        for scenario in chosen:
            scenario.prepare()
        failures = replay_traces(chosen)
        search = Search(chosen, SEED)
        search.run_fixed(RUNS)
        failures += search.failures
    except CannotRun as error:
        print(f"tests.explore cannot run: {error}", file=sys.stderr)
        return 2
    finally:
        for scenario in chosen:
            scenario.close()
    for failure in failures:
        print_failure(failure)
    print_tallies(list(search.tallies.values()))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
