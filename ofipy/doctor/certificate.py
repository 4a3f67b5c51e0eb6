# SPDX-License-Identifier: BSD-3-Clause
"""Whether peers would accept this side's certificate: it is tried in a handshake with itself, in memory.

Peers trust the same authorities and look for the same name, so what this handshake refuses they refuse, too.
"""

import ipaddress
import os
import ssl
import time
from collections.abc import Iterable, Sequence
from typing import Any

from ofipy._base import config
from ofipy.doctor.finding import Finding, State
from ofipy.doctor.private_file import FaultError, check_private
from ofipy.doctor.rules import find

__all__ = ["Address", "check_certificate"]

_SOON = 30 * 86400  # seconds
_ROUNDS = 10  # of a handshake in memory
_REMEDIES = {
    "certificate has expired": "have the authority sign a new certificate",
    "certificate is not yet valid": "set the clock of this host, or wait",
    "certificate purpose": (
        "have it signed for both usages, extendedKeyUsage=serverAuth,clientAuth, or for none in particular"
    ),
    "unable to get local issuer certificate": (
        "put the certificate of the authority that signed it into OFIPY_TLS_CA, and those between behind it "
        "into OFIPY_TLS_CERT"
    ),
}

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _load_files(context: ssl.SSLContext) -> None:
    """Load this side's certificate, its key, and the authorities, each refused by its name."""
    certificate, key, authority = (str(config.value(name)) for name in ("TLS_CERT", "TLS_KEY", "TLS_CA"))
    for variable, path in (("OFIPY_TLS_CERT", certificate), ("OFIPY_TLS_CA", authority)):
        if not os.access(path, os.R_OK):
            reason = "this user may not read it" if os.path.exists(path) else "there is no such file"
            raise FaultError(f"{variable}={path}: {reason}", "name a file (PEM) that this user can read")
    check_private("OFIPY_TLS_KEY", key)

    def refuse_password() -> str:
        raise FaultError(
            f"OFIPY_TLS_KEY={key}: it needs a password", f"remove it: openssl pkey -in {key} -out PLAIN"
        )

    try:
        context.load_cert_chain(certificate, key, password=refuse_password)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise FaultError(
                f"OFIPY_TLS_KEY={key} is not the key of the certificate OFIPY_TLS_CERT={certificate}",
                "name the key that this certificate was made with",
            ) from None
        raise FaultError(
            f"OFIPY_TLS_CERT={certificate} with OFIPY_TLS_KEY={key}: {error.reason or error}",
            "both must be in the format PEM, this side's own certificate first",
        ) from None
    try:
        context.load_verify_locations(cafile=authority)
    except ssl.SSLError as error:
        raise FaultError(
            f"OFIPY_TLS_CA={authority}: {error.reason or error}", "it must be in the format PEM"
        ) from None


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> dict[str, Any]:
    """Connect the two in memory; returns what the client has learned of the server's certificate."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(down, up, server_hostname=name or None),
        server.wrap_bio(up, down, server_side=True),
    ]
    waiting = list(sides)
    for _ in range(_ROUNDS):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                pass
        if not waiting:
            break
    return dict(sides[0].getpeercert() or {})


def _try_certificate(name: str) -> dict[str, Any]:
    """Show the certificate to a peer of the same settings, and return what it has seen."""
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.check_hostname = bool(name)
    client.hostname_checks_common_name = False
    server.verify_mode = ssl.CERT_REQUIRED
    for context in (client, server):
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        _load_files(context)
    certificate = config.value("TLS_CERT")
    try:
        return _shake_hands(client, server, name)
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message.rstrip(".")
        remedy = next((_REMEDIES[known] for known in _REMEDIES if known in why), "")
        if name and "ostname mismatch" in why:
            why, remedy = (
                f"it does not name OFIPY_TLS_NAME={name}",
                f"have it signed with subjectAltName DNS:{name}, or correct OFIPY_TLS_NAME",
            )
        raise FaultError(
            f"OFIPY_TLS_CERT={certificate}: peers refuse it ({why})",
            remedy or "have a certificate signed that they accept",
        ) from None
    except ssl.SSLError as error:
        raise FaultError(
            f"OFIPY_TLS_CERT={certificate}: no handshake by it ({error.reason or error})",
            "have another one signed",
        ) from None


def _read_names(certificate: dict[str, Any]) -> list[str]:
    return [f"{kind}:{value}" for kind, value in certificate.get("subjectAltName", ())]


def _find_unnamed(certificate: dict[str, Any], addresses: Iterable[Address]) -> list[Address]:
    """The addresses that the certificate does not name."""
    named = {
        ipaddress.ip_address(value.strip())
        for kind, value in certificate.get("subjectAltName", ())
        if kind == "IP Address"
    }
    return [address for address in addresses if address not in named]


def check_certificate(addresses: Sequence[Address]) -> Finding:
    """Examine the certificate of the settings.

    Parameters
    ----------
    addresses : sequence of IPv4Address or IPv6Address
        By which other hosts may reach this one.

    Raises
    ------
    FaultError
        When it cannot be used, or peers refuse it.
    """
    rule = "process.encryption"
    name, path = str(config.value("TLS_NAME") or ""), config.value("TLS_CERT")
    certificate = _try_certificate(name)
    unnamed = [] if name else _find_unnamed(certificate, addresses)
    end = str(certificate.get("notAfter", ""))
    finding = f"{path}, valid until {end}, for {', '.join(_read_names(certificate)) or 'no name'}"
    if unnamed and len(unnamed) == len(addresses):
        raise FaultError(
            f"{finding}: none of this host's addresses ({', '.join(map(str, unnamed))}), so peers refuse it",
            "have it signed with subjectAltName IP:… of the address by which peers reach this host, or set "
            "OFIPY_TLS_NAME to a name that all certificates have",
        )
    if end and ssl.cert_time_to_seconds(end) - time.time() < _SOON:
        remedy = "have the authority sign a new certificate"
        return find(rule, State.WARNING, f"{finding}: it ends soon", remedy=remedy)
    if unnamed:
        return find(
            rule,
            State.WARNING,
            f"{finding}: peers that reach this host at {', '.join(map(str, unnamed))} refuse it",
            remedy="have all addresses signed, or set OFIPY_TLS_NAME to a name that all certificates have",
        )
    return find(rule, State.OK, finding)
