# SPDX-License-Identifier: BSD-3-Clause
"""Hosts for tests: network namespaces joined by a switch, and what can go wrong between them.

A namespace has no name. It lives as long as a process of its own that ends with this one, even when this one is
killed, and takes its interfaces and rules with it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from ipaddress import ip_interface

COMMANDS = ("ip", "iptables-legacy", "ip6tables-legacy", "nsenter", "ss", "tc", "unshare")
# For what hangs, within a test's own limit. Each command ends by itself, but needed more than 20 s in an emulated host
# while the machine ran two more of them and the conformance suite.
COMMAND_SECONDS = 100


def obstacle() -> str | None:
    """Why this machine cannot have such hosts, None if it can."""
    missing = [command for command in COMMANDS if shutil.which(command) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    attempt = subprocess.run(
        ["unshare", "--net", "iptables-legacy", "-w", "-L"],
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
    )
    return None if attempt.returncode == 0 else f"no privileges: {attempt.stderr.strip()}"


class Host:
    """One host: a network namespace with its loopback interface up."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo here; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=tempfile.gettempdir(),
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"here\n"
        self.pid = self._holder.pid
        self.ip("link set lo up")

    def inside(self, *command: str) -> list[str]:
        """The command that runs `command` on this host."""
        return ["nsenter", f"--net=/proc/{self.pid}/ns/net", *command]

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run it here, whatever comes of it."""
        return subprocess.run(
            self.inside(*command.split()), capture_output=True, text=True, timeout=COMMAND_SECONDS
        )

    def must(self, command: str) -> None:
        result = self.run(command)
        assert result.returncode == 0, f"{command}: {result.stderr}"

    def ip(self, arguments: str) -> None:
        self.must(f"ip {arguments}")

    def counters(self) -> dict[str, int]:
        """The kernel's counters of TCP on this host, by their names in /proc/net/snmp and netstat."""
        lines = self.run("cat /proc/net/snmp /proc/net/netstat").stdout.splitlines()
        found: dict[str, int] = {}
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            if names.startswith(("Tcp:", "TcpExt:")):
                found.update(zip(names.split()[1:], map(int, values.split()[1:]), strict=True))
        return found

    def round_trip(self) -> float:
        """The shortest time to a peer and back that any of its TCP connections has seen, in seconds."""
        listing = self.run("ss -t -i -H -n").stdout
        return min(float(found) for found in re.findall(r" minrtt:([\d.]+)", listing)) / 1000

    def filter(self, rule: str) -> None:
        """Change the rules for what comes in or goes out, of both families."""
        for program in ("iptables-legacy", "ip6tables-legacy"):
            self.must(f"{program} -w {rule}")

    def close(self) -> None:
        assert self._holder.stdin is not None
        assert self._holder.stdout is not None
        self._holder.stdin.close()
        self._holder.stdout.close()
        self._holder.wait(timeout=COMMAND_SECONDS)


class Wire:
    """One interface of a host, its addresses, and the faults of the cable to it."""

    def __init__(self, host: Host, name: str, v4: str, v6: str) -> None:
        self.host = host
        self.name = name
        self.v4 = v4
        self.v6 = v6

    def up(self) -> None:
        """Bring it up with its addresses, those that it has lost meanwhile too."""
        self.host.ip(f"link set dev {self.name} up")
        self.add_addresses()

    def down(self) -> None:
        """Take it down; its IPv6 addresses go with that."""
        self.host.ip(f"link set dev {self.name} down")

    def add_addresses(self) -> None:
        self.host.ip(f"addr replace {self.v4}/24 dev {self.name}")
        # Without looking for duplicates, so that it can be used at once.
        self.host.ip(f"addr replace {self.v6}/64 dev {self.name} nodad")

    def remove_addresses(self) -> None:
        self.host.ip(f"addr del {self.v4}/24 dev {self.name}")
        self.host.ip(f"addr del {self.v6}/64 dev {self.name}")

    def send_frames(self) -> None:
        """Send packets of the size of a frame: else a fault of one would be that of 64 KiB."""
        self.host.ip(f"link set dev {self.name} gso_max_segs 1")

    def lose(self, share: float) -> None:
        """Lose this share of the packets that come in, at random."""
        self.send_frames()
        # TCP repeats after 200 ms at the earliest, unless the route says that answers come soon.
        for address, bits in ((self.v4, 24), (self.v6, 64)):
            network = ip_interface(f"{address}/{bits}").network
            self.host.ip(f"route replace {network} dev {self.name} rto_min 5ms")
        self.host.filter(
            f"-A INPUT -i {self.name} -m statistic --mode random --probability {share} -j DROP",
        )

    def disturb(self, fault: str) -> None:
        """Delay, lose, repeat or mix the packets that leave, in the words of ``tc netem``, and no longer otherwise."""
        self.host.must(f"tc qdisc replace dev {self.name} root netem {fault}")

    def backlog(self) -> int:
        """Bytes that wait to leave."""
        return int(json.loads(self.host.run(f"tc -s -j qdisc show dev {self.name}").stdout)[0]["backlog"])

    def cut(self) -> None:
        """Lose everything, in both directions."""
        self.host.filter(f"-I INPUT -i {self.name} -j DROP")
        self.host.filter(f"-I OUTPUT -o {self.name} -j DROP")

    def heal(self) -> None:
        """End what :meth:`cut` began."""
        self.host.filter(f"-D INPUT -i {self.name} -j DROP")
        self.host.filter(f"-D OUTPUT -o {self.name} -j DROP")

    def dropped(self) -> int:
        """Packets that rules for incoming ones have dropped."""
        total = 0
        for program in ("iptables-legacy", "ip6tables-legacy"):
            listing = self.host.run(f"{program} -w -L INPUT -v -n -x").stdout.splitlines()
            total += sum(int(line.split()[0]) for line in listing if " DROP " in line)
        return total


class Network:
    """Hosts on switches; everything goes with :meth:`close`."""

    def __init__(self) -> None:
        self._hosts: list[Host] = []
        self._switch = self.host()
        self._cables = 0

    def host(self) -> Host:
        host = Host()
        self._hosts.append(host)
        return host

    def wire(self, host: Host, name: str = "eth0", *, switch: int = 0) -> Wire:
        """Join the host to the switch of this number, with addresses in its networks."""
        self._cables += 1
        cable, bridge = f"port{self._cables}", f"switch{switch}"
        if self._switch.run(f"ip link show {bridge}").returncode != 0:
            self._switch.ip(f"link add {bridge} type bridge")
            self._switch.ip(f"link set dev {bridge} up")
        self._switch.ip(f"link add {cable} type veth peer name {name} netns {host.pid}")
        self._switch.ip(f"link set dev {cable} master {bridge} up")
        number = self._cables
        wire = Wire(host, name, f"10.77.{switch}.{number}", f"fd77:{switch:x}::{number:x}")
        wire.up()
        return wire

    def close(self) -> None:
        for host in self._hosts:
            host.close()
