# SPDX-License-Identifier: BSD-3-Clause
"""Fail when `import ofipy` takes longer than `import numpy`, which it leaves to the first call that needs an array."""

import subprocess
import sys
import time

ROUNDS = 9


def seconds(statement: str) -> float:
    """Return how long a new interpreter takes for a statement."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-c", statement], check=True)
    return time.perf_counter() - started


# In turn, so that a busy moment of the machine meets both; the least of each, since nothing makes an import too quick.
rounds = [(seconds("import numpy"), seconds("import ofipy")) for _ in range(ROUNDS)]
numpy, ofipy = (min(times) for times in zip(*rounds, strict=True))
print(
    f"import ofipy takes {ofipy * 1e3:.0f} ms, import numpy {numpy * 1e3:.0f} ms, each with the interpreter's start"
)
sys.exit(ofipy > numpy)
