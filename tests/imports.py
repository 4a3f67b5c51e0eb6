# SPDX-License-Identifier: BSD-3-Clause
"""List what ``import ofipy`` takes, beside ``import numpy``: ``python -m tests.imports``.

Many processes import both, and each value is the least of them, since nothing makes an import too quick. Half of the
processes have a stopwatch in each part of the import, which takes some time itself; the other half show how much.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SIDE = Path(__file__).with_name("imports_side.py")


def start(python: str, *arguments: str) -> Any:
    """What one new process prints."""
    command = [python, "-P", str(SIDE), *arguments]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.imports", description=__doc__)
    parser.add_argument(
        "--starts", type=int, default=21, help="processes of each kind (default: %(default)s)"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter that has ofipy (default: this one)"
    )
    options = parser.parse_args()
    start(options.python)  # reads the files
    plain, hooked = [], []
    for _ in range(options.starts):
        plain.append(start(options.python, "plain"))
        hooked.append(start(options.python))
    ofipy, numpy = (min(values) / 1e6 for values in zip(*plain, strict=True))
    print(f"ofipy {ofipy:.2f} ms, numpy after that {numpy:.2f} ms")
    total = min(sum(each["spent"].values()) for each in hooked) / 1e6
    print(f"the parts of the former, with stopwatches {total:.2f} ms:")
    for part in sorted(hooked[0]["spent"], key=lambda part: -hooked[0]["spent"][part]):
        spent = min(each["spent"].get(part, 0) for each in hooked) / 1e6
        print(f"{part:17} {spent:6.2f} ms  {hooked[0]['count'][part]:4} times")


if __name__ == "__main__":
    main()
