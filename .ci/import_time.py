# SPDX-License-Identifier: BSD-3-Clause
"""Fail when `import ofipy` takes more than 100 ms longer than `import numpy`, which it needs."""

import subprocess
import sys
import time

LIMIT = 0.1
ROUNDS = 9


def seconds(statement: str) -> float:
    """Return how long a new interpreter takes for a statement."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", statement], check=True)
    return time.perf_counter() - started


# In turn, so that a busy moment of the machine meets both; the least of each, since nothing makes an import too quick.
rounds = [(seconds("import numpy"), seconds("import ofipy")) for _ in range(ROUNDS)]
numpy, ofipy = (min(times) for times in zip(*rounds, strict=True))
print(f"import ofipy takes {(ofipy - numpy) * 1e3:.0f} ms more than import numpy ({numpy * 1e3:.0f} ms)")
sys.exit(ofipy - numpy > LIMIT)
