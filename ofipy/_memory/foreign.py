# SPDX-License-Identifier: BSD-3-Clause
"""Memory of other array libraries, which speak DLPack or the CUDA array interface and not the buffer protocol.

What lies in host memory becomes a numpy array over the same bytes. What lies elsewhere is refused by name: no
provider reaches it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ofipy._base.arrays import np
from ofipy._base.binding import ffi
from ofipy._base.errors import BufferTypeError

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["host_array"]

# Device types of DLPack that the processor reads and writes: plain, and pinned for CUDA or ROCm.
_HOST = frozenset((1, 3, 11))
_DEVICES = {
    2: "CUDA",
    4: "OpenCL",
    7: "Vulkan",
    8: "Metal",
    9: "VPI",
    10: "ROCm",
    12: "extension",
    13: "CUDA managed memory",
    14: "oneAPI",
    15: "WebGPU",
    16: "Hexagon",
    17: "MAIA",
}


def host_array(buffer: Any, *, writable: bool, operation: str) -> npt.NDArray[Any] | None:
    """The memory of a foreign array as a numpy array; None when it is no foreign array.

    Raises
    ------
    BufferTypeError
        When it lies on a device, or is read-only but has to be written.
    """
    if hasattr(buffer, "__dlpack_device__") and hasattr(buffer, "__dlpack__"):
        kind, number = buffer.__dlpack_device__()
        # By name, before anything touches the address, which means nothing to the processor.
        if int(kind) not in _HOST:
            raise _on_device(buffer, _DEVICES.get(int(kind), f"type {int(kind)}"), int(number), operation)
        return _from_dlpack(buffer, writable, operation)
    if hasattr(buffer, "__cuda_array_interface__"):
        raise _on_device(buffer, "CUDA", None, operation)
    return None


def _on_device(buffer: Any, device: str, number: int | None, operation: str) -> BufferTypeError:
    place = device if number is None else f"{device} {number}"
    return BufferTypeError(
        f"the {type(buffer).__name__} is in the memory of a device ({place}), which no provider here reaches",
        operation=operation,
        remedy="copy it to the host first",
    )


class _Exported:
    """One export of a foreign array, for numpy to import."""

    def __init__(self, buffer: Any) -> None:
        self.device = buffer.__dlpack_device__()
        try:
            self.capsule = buffer.__dlpack__(max_version=(1, 0))
        except TypeError:  # older than DLPack 1.0
            self.capsule = buffer.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **_options: Any) -> Any:
        return self.capsule


def _from_dlpack(buffer: Any, writable: bool, operation: str) -> npt.NDArray[Any]:
    try:
        exported = _Exported(buffer)
        # Before version 1.0 nothing says that memory is read-only: such memory is never exported then.
        always_writable = "dltensor_versioned" not in repr(exported.capsule)
        array = np.from_dlpack(exported)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise BufferTypeError(
            f"the {type(buffer).__name__} does not give its memory: {error}", operation=operation
        ) from error
    if array.flags.writeable or not writable:
        return array
    if not always_writable:
        raise BufferTypeError(
            f"the {type(buffer).__name__} is read-only, so nothing can be received into it",
            operation=operation,
            remedy="use a writable array",
        )
    return _writable(array)


def _writable(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory; numpy marks what comes without a version read-only, to be on the safe side."""
    first = int(array.__array_interface__["data"][0])
    # Along each dimension, from the first element to the last one: backwards if the stride is negative.
    steps = [
        stride * (size - 1) for stride, size in zip(array.strides, array.shape, strict=True) if array.size
    ]
    low, high = sum(min(step, 0) for step in steps), sum(max(step, 0) for step in steps) + array.itemsize
    # The new array keeps what it is made from, and so the old one.
    memory = ffi.gc(ffi.cast("char *", first + low), lambda _, keep=array: None)
    return np.ndarray(
        array.shape, array.dtype, ffi.buffer(memory, high - low), offset=-low, strides=array.strides
    )
