# SPDX-License-Identifier: BSD-3-Clause
"""Make a guest one of two hosts that log in to each other by ssh, then run a command there.

``login.py FOLDER here|there COMMAND…``. :func:`prepare` has made the keys in the folder, outside. The guest's files are
its own: nothing of the machine outside changes.
"""

import os
import socket
import subprocess
import sys
from pathlib import Path

PORT = 2222
ADDRESSES = {"here": "203.0.113.1", "there": "203.0.113.2"}

SERVER = """
Port {port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/login.pub
PidFile none
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
UseDNS no
MaxStartups 100
"""

CLIENT = """
User root
Port {port}
IdentityFile {folder}/login
IdentitiesOnly yes
UserKnownHostsFile {folder}/known
GlobalKnownHostsFile none
StrictHostKeyChecking yes
BatchMode yes
ConnectTimeout 60
LogLevel ERROR
"""


def prepare(folder: Path) -> None:
    """Make the keys of the logins, and the configuration of both sides."""
    for name in ("host", "login"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)], check=True
        )
    public = (folder / "host.pub").read_text()
    known = "".join(
        f"[{place}]:{PORT} {public}" for name, address in ADDRESSES.items() for place in (name, address)
    )
    (folder / "known").write_text(known)
    (folder / "server").write_text(SERVER.format(port=PORT, folder=folder))
    (folder / "client").write_text(CLIENT.format(port=PORT, folder=folder))
    # Hydra takes a command without arguments.
    command = folder / "ssh"
    command.write_text(f'#!/bin/sh\nexec ssh -F {folder / "client"} "$@"\n')
    command.chmod(0o755)


def serve(folder: Path, name: str) -> None:
    """Be the host of this name, and let the other one log in."""
    socket.sethostname(name)
    lines = [f"{address} {each}\n" for each, address in ADDRESSES.items()]
    Path("/etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(lines))
    # A root that is locked may not log in; and the file may be one that this user outside may not read.
    shadow = Path("/etc/shadow")
    shadow.unlink(missing_ok=True)
    shadow.write_text("root:*:19000:0:99999:7:::\n")
    # What a shell of the machine outside does when it starts, such as a lock of pyenv, is no part of a login here.
    for each in ".bashrc", ".bash_profile", ".bash_login", ".profile":
        Path("/root", each).unlink(missing_ok=True)
    Path("/run/sshd").mkdir(mode=0o755, parents=True, exist_ok=True)
    subprocess.run(
        ["/usr/sbin/sshd", "-f", str(folder / "server"), "-E", str(folder / f"sshd {name}")], check=True
    )


def main() -> None:
    folder, name, *command = sys.argv[1:]
    serve(Path(folder), name)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
