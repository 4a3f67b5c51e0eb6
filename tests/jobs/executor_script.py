# SPDX-License-Identifier: BSD-3-Clause
"""A script for ``python -m ofipy.executor``: two executors at once, functions of its own, its arguments."""

import os
import sys

import ofipy


def work(number: int) -> tuple[int, int]:
    assert __name__ == "__worker__"
    return number * number, os.getpid()


if __name__ == "__main__":
    workers, *arguments = sys.argv[1:]
    with ofipy.Executor() as one, ofipy.Executor(initializer=print, initargs=("begun", "here")) as other:
        assert one.bootup(timeout=60).num_workers == int(workers)
        results = list(one.map(work, range(50)))
        assert [square for square, _ in results] == [number**2 for number in range(50)]
        assert os.getpid() not in {pid for _, pid in results}
        assert other.submit(work, 3).result()[0] == 9
    with ofipy.Executor() as third:
        assert third.submit(work, 4).result()[0] == 16
    print("all done", *arguments)
