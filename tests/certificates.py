# SPDX-License-Identifier: BSD-3-Clause
"""Certificates for tests, made by the command ``openssl`` when they are needed."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

__all__ = ["Authority", "Certificate", "is_openssl_there"]

# `openssl ca` needs a list of what it has signed, and is the one command whose dates may lie in the past everywhere.
_CONFIGURATION = """\
[ca]
default_ca = all
[all]
database = {folder}/signed.txt
new_certs_dir = {folder}
certificate = {folder}/authority.pem
private_key = {folder}/authority.key
rand_serial = yes
default_md = sha256
unique_subject = no
policy = any
[any]
commonName = supplied
"""
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def is_openssl_there() -> bool:
    """Whether the command is installed."""
    return shutil.which("openssl") is not None


def _run(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)


@dataclass(frozen=True)
class Certificate:
    """A certificate, its key, and the authority that its owner trusts."""

    file: Path
    key: Path
    authority: Path

    def environment(self, name: str = "") -> dict[str, str]:
        """The variables that name them."""
        return {
            "OFIPY_TLS_CERT": str(self.file),
            "OFIPY_TLS_KEY": str(self.key),
            "OFIPY_TLS_CA": str(self.authority),
            "OFIPY_TLS_NAME": name,
        }


class Authority:
    """An authority that signs certificates.

    Parameters
    ----------
    folder : Path
        Where its files are; it is made.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        self.file, key = folder / "authority.pem", folder / "authority.key"
        subject = ("-subj", f"/CN={folder.name}", "-days", "2")
        _run("req", "-x509", *_KEY, "-keyout", str(key), "-out", str(self.file), *subject)
        (folder / "signed.txt").touch()
        (folder / "ca.cnf").write_text(_CONFIGURATION.format(folder=folder))

    def sign(
        self, name: str, *, names: str = "IP:127.0.0.1", days: int = 2, usage: str = "serverAuth,clientAuth"
    ) -> Certificate:
        """Make a certificate.

        Parameters
        ----------
        name : str
            Of its files.
        names : str
            Whom it names, as ``subjectAltName`` has it.
        days : int
            How long it is valid from now on; negative: no more.
        usage : str
            What it may be used for.
        """
        request, key, file = (self._folder / f"{name}{suffix}" for suffix in (".csr", ".key", ".pem"))
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage={usage}\n")
        _run("req", *_KEY, "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}")
        end = datetime.now(UTC) + timedelta(days=days)
        dates = (f"{date:%Y%m%d%H%M%SZ}" for date in (end - timedelta(days=abs(days) + 1), end))
        valid = ("-startdate", next(dates), "-enddate", next(dates))
        files = ("-in", str(request), "-extfile", str(extensions), "-out", str(file))
        _run("ca", "-batch", "-notext", "-config", str(self._folder / "ca.cnf"), *valid, *files)
        os.chmod(key, 0o600)
        return Certificate(file, key, self.file)
