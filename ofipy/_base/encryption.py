# SPDX-License-Identifier: BSD-3-Clause
"""The setting ``OFIPY_ENCRYPTION``, checked before a domain opens. The provider ``tcp`` encrypts."""

from ofipy._base import config
from ofipy._base.errors import ConfigError
from ofipy._base.flags import Encryption

__all__ = ["check_encryption"]

_VALUES = ("off", "required")


def check_encryption(encryption: Encryption) -> None:
    """Refuse a setting that means nothing, and one that lacks the key.

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
            f"OFIPY_ENCRYPTION={value}: {' or '.join(_VALUES)} is meant", operation="open a domain"
        )
    if value == "required" and encryption is Encryption.TLS and not config.value("AUTH_KEY_FILE"):
        raise ConfigError(
            "OFIPY_ENCRYPTION=required needs a key, and none is set",
            operation="open a domain",
            remedy="make one (ofipy key new job.key), copy it to the peers, and set OFIPY_AUTH_KEY_FILE to it",
        )
