# SPDX-License-Identifier: BSD-3-Clause
"""The modes of ofipy, one class each."""

from fabtests.compare.ways.atomics import AddBlocking, AddNative, AddPrepared, WriteDelivered
from fabtests.compare.ways.connected import NativeRead, NativeSend, NativeWrite
from fabtests.compare.ways.messages import (
    Awaited,
    AwaitedByMany,
    Blocking,
    Looped,
    LoopedByMany,
    Native,
    Prepared,
)
from fabtests.compare.ways.streams import (
    Array,
    Batch,
    Block,
    CopiedBlock,
    CopiedStrided,
    Distinct,
    Domain,
    Strided,
)
from fabtests.compare.ways.way import StreamsInC, Way
from fabtests.compare.ways.writes import (
    TargetIdle,
    TargetReads,
    WriteBatch,
    WriteBlocking,
    WriteNative,
    WritePrepared,
)

__all__ = ["WAYS", "StreamsInC", "Way"]

WAYS: dict[str, type[Way]] = {
    "native": Native,
    "blocking": Blocking,
    "prepared": Prepared,
    "await": Awaited,
    "await-100": AwaitedByMany,
    "loop": Looped,
    "loop-100": LoopedByMany,
    "request": Array,
    "array": Array,
    "array-distinct": Distinct,
    "domain": Domain,
    "batch": Batch,
    "column": Strided,
    "block": Block,
    "copied-column": CopiedStrided,
    "copied-block": CopiedBlock,
    "target-idle": TargetIdle,
    "target-reads": TargetReads,
    "native-send": NativeSend,
    "native-write": NativeWrite,
    "native-read": NativeRead,
    "write-native": WriteNative,
    "write-blocking": WriteBlocking,
    "write-prepared": WritePrepared,
    "write-batch": WriteBatch,
    "write-delivered": WriteDelivered,
    "fetch-add-native": AddNative,
    "fetch-add-prepared": AddPrepared,
    "fetch-add-blocking": AddBlocking,
}
