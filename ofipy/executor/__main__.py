# SPDX-License-Identifier: BSD-3-Clause
"""``python -m ofipy.executor script.py``: rank 0 of a job runs the script, the other ranks are its workers."""

import os
import sys

from ofipy.executor.job import run_script

USAGE = "usage: python -m ofipy.executor (script.py | -m module) [argument]..."


def main() -> int:
    """Run the script that the command line names, or serve it.

    Returns
    -------
    int
        The exit status.
    """
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    module = arguments[1] if arguments[:1] == ["-m"] and len(arguments) > 1 else None
    if module is not None:
        sys.argv[:] = arguments[1:]
        return run_script(module=module)
    if not arguments or arguments[0].startswith("-"):
        print(USAGE, file=sys.stderr)
        return 2
    path = os.path.abspath(arguments[0])
    if not os.path.isfile(path):
        print(f"{arguments[0]}: there is no such script\n{USAGE}", file=sys.stderr)
        return 2
    sys.argv[:] = arguments
    if not sys.flags.safe_path:  # as of a script that Python itself runs
        sys.path[0] = os.path.dirname(path)
    return run_script(path=path)


if __name__ == "__main__":
    sys.exit(main())
