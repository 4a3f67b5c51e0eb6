# SPDX-License-Identifier: BSD-3-Clause
"""The modes of ofipy, one class each."""

from fabtests.compare.ways.messages import Awaited, Blocking, Native, Prepared
from fabtests.compare.ways.streams import Array, Batch, Domain
from fabtests.compare.ways.way import Way
from fabtests.compare.ways.writes import (
    TargetIdle,
    TargetReads,
    WriteBlocking,
    WriteNative,
    WritePrepared,
)

__all__ = ["WAYS", "Way"]

WAYS: dict[str, type[Way]] = {
    "native": Native,
    "blocking": Blocking,
    "prepared": Prepared,
    "await": Awaited,
    "array": Array,
    "domain": Domain,
    "batch": Batch,
    "target-idle": TargetIdle,
    "target-reads": TargetReads,
    "write-native": WriteNative,
    "write-blocking": WriteBlocking,
    "write-prepared": WritePrepared,
}
