# SPDX-License-Identifier: BSD-3-Clause
"""The settings of encryption and further keys, checked before a domain opens; ``tcp`` encrypts."""

from ofipy._base import config
from ofipy._base.errors import ConfigError
from ofipy._base.flags import Encryption

__all__ = ["CIPHERS", "check_encryption", "encrypted_connections", "is_encrypting"]

CIPHERS = ("TLS_AES_128_GCM_SHA256", "TLS_CHACHA20_POLY1305_SHA256")
"""One of them encrypts a connection: the first that both sides have."""

_VALUES = ("auto", "required", "off")
_FILES = ("TLS_CERT", "TLS_KEY", "TLS_CA")


def encrypted_connections() -> str:
    """Which connections over tcp are to be encrypted: ``all``, ``between hosts`` or ``none``."""
    value = config.value("ENCRYPTION")
    if value == "required":
        return "all"
    return "between hosts" if value == "auto" and config.value("TLS_CERT") else "none"


def is_encrypting() -> bool:
    """Whether connections over tcp between hosts are to be encrypted."""
    return encrypted_connections() != "none"


def check_encryption(encryption: Encryption) -> None:
    """Refuse a setting that means nothing, and one that lacks the key or a file.

    Parameters
    ----------
    encryption : Encryption
        What endpoints of the domain can do.

    Raises
    ------
    ConfigError
        With the remedy.
    """
    value = config.value("ENCRYPTION")
    if value not in _VALUES:
        raise ConfigError(
            f"OFIPY_ENCRYPTION={value}: {', '.join(_VALUES[:-1])} or {_VALUES[-1]} is meant",
            operation="open a domain",
        )
    if encryption is not Encryption.TLS:
        return
    missing = [name for name in _FILES if not config.value(name)]
    if missing and (len(missing) < len(_FILES) or config.value("TLS_NAME")):
        raise ConfigError(
            f"certificates need {', '.join(f'OFIPY_{name}' for name in missing)} too",
            operation="open a domain",
            remedy="set OFIPY_TLS_CERT, OFIPY_TLS_KEY and OFIPY_TLS_CA, or none of the OFIPY_TLS_… variables",
        )
    if config.value("AUTH_KEY_FILE_ACCEPTED") and not config.value("AUTH_KEY_FILE"):
        raise ConfigError(
            "OFIPY_AUTH_KEY_FILE_ACCEPTED names further keys, and OFIPY_AUTH_KEY_FILE, the one to prove, is not set",
            operation="open a domain",
            remedy="set both, or neither",
        )
    if is_encrypting() and not config.value("AUTH_KEY_FILE"):
        setting = "ENCRYPTION=required" if missing else "TLS_CERT"
        raise ConfigError(
            f"OFIPY_{setting} needs a key, and none is set",
            operation="open a domain",
            remedy="make one (ofipy key new job.key), copy it to the peers, and set OFIPY_AUTH_KEY_FILE to it",
        )
