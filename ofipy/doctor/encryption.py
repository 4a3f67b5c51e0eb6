# SPDX-License-Identifier: BSD-3-Clause
"""Whether the settings of encryption and of keys can work on this host, found out without a connection."""

import ctypes
import fcntl
import ipaddress
import socket
import struct
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ofipy._base import config
from ofipy._base import encryption as settings
from ofipy._base.encryption import encrypted_connections
from ofipy._base.errors import ConfigError
from ofipy._base.flags import Encryption
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.private_file import FaultError, check_private
from ofipy.doctor.rules import find

try:
    from ofipy.doctor import certificate
except ImportError:  # of the module ssl: an interpreter that was built without OpenSSL
    certificate = None  # type: ignore[assignment]

__all__ = ["check_accepted_keys", "check_encryption", "list_addresses"]

_LIBSSL = "libssl.so.3"
_KEY_SIZES = range(16, 1025)
_SIOCGIFADDR = 0x8915
_INSTALL = "install libssl3 (Debian, Ubuntu) or openssl-libs (Fedora, RHEL), or set OFIPY_ENCRYPTION=off"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _fail(rule: str, error: ConfigError | FaultError) -> Finding:
    """What makes a setting unusable."""
    if isinstance(error, FaultError):
        return find(rule, State.FAILED, error.finding, remedy=error.remedy)
    return find(rule, State.FAILED, error.message, remedy=error.remedy)


def check_accepted_keys() -> Finding:
    """The further keys that peers may prove while processes change to another one."""
    rule = "process.accepted_keys"
    paths = [path for path in (config.value("AUTH_KEY_FILE_ACCEPTED") or "").split(":") if path]
    if not paths:
        return find(rule, State.OK, "none beside the key")
    try:
        settings.check_encryption(Encryption.TLS)
        for path in paths:
            size = check_private("OFIPY_AUTH_KEY_FILE_ACCEPTED", path).st_size
            if size not in _KEY_SIZES:
                raise FaultError(
                    f"{path}: a key of 16 to 1024 bytes is meant, and it has {size}",
                    "copy the key file again",
                )
    except (ConfigError, FaultError) as error:
        return _fail(rule, error)
    return find(rule, State.OK, f"{', '.join(paths)}; remove them when no process proves them any more")


def _read_version() -> str:
    """The version of the library that connections are encrypted by."""
    try:
        library = ctypes.CDLL(_LIBSSL)
    except OSError as error:
        raise FaultError(f"{_LIBSSL} of OpenSSL 3 cannot be loaded: {error}", _INSTALL) from None
    library.OpenSSL_version.restype = ctypes.c_char_p
    return str(library.OpenSSL_version(0).decode())


def check_encryption(addresses: Sequence[Address] = ()) -> Finding:
    """Which connections over tcp are encrypted, by what, and whether that can work.

    Parameters
    ----------
    addresses : sequence of IPv4Address or IPv6Address
        By which other hosts may reach this one.
    """
    rule = "process.encryption"
    try:
        settings.check_encryption(Encryption.TLS)
        which = encrypted_connections()
        certified = None
        # Files are read when OFIPY_ENCRYPTION is not off, and a fault in them is not to wait for that.
        if config.value("TLS_CERT") and certificate is not None:
            certified = certificate.check_certificate(addresses)
        if which == "none":
            unused = (
                "; OFIPY_TLS_CERT is set, and OFIPY_ENCRYPTION is off" if config.value("TLS_CERT") else ""
            )
            return find(rule, State.OK, f"no connections over tcp{unused}")
        version = _read_version()
    except (ConfigError, FaultError) as error:
        return _fail(rule, error)
    text = f"connections over tcp: {which}, by TLS 1.3 ({version})"
    if not config.value("TLS_CERT"):
        return find(rule, State.OK, f"{text} with the key")
    if certified is None:
        return find(
            rule,
            State.WARNING,
            f"{text} with certificates, which this Python, without the module ssl, cannot examine",
            remedy="run ofipy doctor by a Python that has ssl",
        )
    return replace(certified, text=f"{text} with the certificate {certified.text}")


def list_addresses(interfaces: Iterable[str]) -> list[Address]:
    """The first IPv4 address of each of these interfaces, but for loopback."""
    found: list[Address] = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for interface in dict.fromkeys(interfaces):
            request = struct.pack("256s", interface.encode()[:15])
            try:
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, request)
            except OSError:
                continue  # it has no such address
            address = ipaddress.IPv4Address(answer[20:24])
            if not address.is_loopback:
                found.append(address)
    return found
