# SPDX-License-Identifier: BSD-3-Clause
"""How fast the processor's clock runs, which the guest's kernel cannot measure on a busy machine.

The kernel counts the ticks of the time stamp counter while an emulated timer runs. An emulator that is interrupted
meanwhile makes the count wrong, and each second of the guest as well: seen were 0.4 s, beside 50 busy processes. So the
kernel is told the rate.
"""

from __future__ import annotations

import ctypes
import mmap
import time

READ_COUNTER = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret
TRIES = 50
SECONDS = 0.1


def get_tsc_khz() -> int | None:
    """The rate of this machine's time stamp counter, which is the guest's too; None if it cannot be read here."""
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        # Some systems forbid memory that is both written and executed.
        return None
    page.write(READ_COUNTER)
    start = ctypes.c_char.from_buffer(page)
    read_counter = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(start))

    def read_both() -> tuple[int, int]:
        """Nanoseconds and ticks of one moment: of the try that was interrupted least."""
        best = None
        for _ in range(TRIES):
            before, ticks, after = time.monotonic_ns(), read_counter(), time.monotonic_ns()
            if best is None or after - before < best[0]:
                best = after - before, before, ticks
        assert best is not None
        return best[1:]

    first = read_both()
    time.sleep(SECONDS)
    last = read_both()
    del start
    page.close()
    return round((last[1] - first[1]) * 1_000_000 / (last[0] - first[0]))
