# SPDX-License-Identifier: BSD-3-Clause
"""The virtual machine: QEMU with the guest's kernel, its output on this side, and its end in any case."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections import deque
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType

from .channel import Channel
from .clock import get_tsc_khz
from .tools import GuestError, program

# Where /dev/kvm works, the guest is up in 2 s; where it only exists, it may also stand still for ever.
KVM_SECONDS = 15
CONSOLE_LINES = 30
# An emulated processor may run what the kernel is just patching for another one, and panic.
BOOTS = 3


def clock_parameters() -> str:
    """What the kernel must know of the processor's clock.

    On a busy machine it would stop to trust that clock, and each look at another costs 15 µs.
    """
    khz = get_tsc_khz()
    return "tsc=reliable" if khz is None else f"tsc=reliable tsc_early_khz={khz}"


class EndedError(GuestError):
    """The machine ended as it booted."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """What the machine consists of."""

    image: Path
    memory: int  # MiB
    cpus: int
    shares: tuple[Path, ...]  # folders in which the guest may write
    wire: tuple[Path, Path] | None = None  # the ends of a cable to another guest: its own, the other's

    def arguments(self, accelerator: str, initramfs: int, ports: dict[str, int]) -> list[str]:
        """QEMU's command line, with the descriptors of the initramfs and of the pipes for its output."""
        exports = [("tree", Path("/"), "on")]
        exports += [(f"share{number}", folder, "off") for number, folder in enumerate(self.shares)]
        command = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        command += ["-accel", accelerator, "-cpu", "max", "-smp", str(self.cpus), "-m", str(self.memory)]
        command += ["-kernel", str(self.image), "-initrd", f"/dev/fd/{initramfs}"]
        command += ["-append", f"console=ttyS0 panic=-1 {clock_parameters()}"]
        for tag, folder, readonly in exports:
            path = str(folder).replace(",", ",,")
            common = f"security_model=none,multidevs=remap,readonly={readonly}"
            command += ["-fsdev", f"local,id={tag},path={path},{common}"]
            command += ["-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]
        for name, descriptor in ports.items():
            command += ["-chardev", f"file,id={name},path=/dev/fd/{descriptor}"]
        command += ["-serial", "chardev:console", "-device", "virtio-serial-pci"]
        for number, name in enumerate(("stdout", "stderr"), start=1):
            command += ["-device", f"virtserialport,nr={number},chardev={name}"]
        return command + self._plug()

    def _plug(self) -> list[str]:
        """The interface at the cable's end. Frames to an end where nobody is are lost, as they would be."""
        if self.wire is None:
            return []
        ends = [str(end).replace(",", ",,") for end in self.wire]
        address = ":".join(["02", *(f"{byte:02x}" for byte in sha256(ends[0].encode()).digest()[:5])])
        paths = ",".join(
            f"{side}.type=unix,{side}.path={end}" for side, end in zip(("local", "remote"), ends, strict=True)
        )
        return ["-netdev", f"dgram,id=wire,{paths}", "-device", f"virtio-net-pci,netdev=wire,mac={address}"]


class Machine:
    """A machine that has been switched on; leaving the context switches it off."""

    def __init__(self, hardware: Hardware, accelerator: str, initramfs: int, token: str) -> None:
        qemu = program("qemu-system-x86_64")
        self._pipes = {name: os.pipe() for name in ("console", "stdout", "stderr", "complaints")}
        self._channels = {name: Channel(token) for name in ("stdout", "stderr")}
        self._console: deque[bytes] = deque(maxlen=CONSOLE_LINES)
        self._line = b""
        self._selector = selectors.DefaultSelector()
        for name, (reader, _) in self._pipes.items():
            self._selector.register(reader, selectors.EVENT_READ, name)
        ports = {name: self._pipes[name][1] for name in ("console", "stdout", "stderr")}
        # It ends with this process, even when that is killed.
        bound = [str(program("setpriv")), "--pdeathsig", "KILL", str(qemu)]
        self._qemu = subprocess.Popen(
            [*bound, *hardware.arguments(accelerator, initramfs, ports)],
            stdin=subprocess.DEVNULL,
            stdout=self._pipes["complaints"][1],
            stderr=self._pipes["complaints"][1],
            pass_fds=[initramfs, *ports.values()],
        )
        for _, writer in self._pipes.values():
            os.close(writer)

    def __enter__(self) -> Machine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._qemu.kill()
        self._qemu.wait()
        self._selector.close()
        for reader, _ in self._pipes.values():
            os.close(reader)

    def _show(self, data: bytes) -> None:
        *lines, self._line = (self._line + data).split(b"\n")
        self._console.extend(lines)

    def _failure(self, what: str, kind: type[GuestError] = GuestError) -> GuestError:
        lines = [line.decode(errors="replace").strip() for line in (*self._console, self._line)]
        return kind("\n  ".join([f"{what}; the console's last lines:", *filter(None, lines)]))

    def _notices(self, seconds: float | None) -> list[tuple[str, str]]:
        """Pass on what comes; the notices in it, each with the stream that it came on."""
        notices = []
        for key, _ in self._selector.select(seconds):
            name, data = key.data, os.read(key.fd, 1 << 16)
            if not data:
                self._selector.unregister(key.fd)
            elif name in self._channels:
                text, found = self._channels[name].feed(data)
                notices += [(name, notice) for notice in found]
                while text:
                    text = text[os.write({"stdout": 1, "stderr": 2}[name], text) :]
            else:
                self._show(data)
        return notices

    def boot(self, seconds: float) -> None:
        """Wait until the command begins."""
        deadline = time.monotonic() + seconds
        while not self._notices(max(0, deadline - time.monotonic())):
            if not self._selector.get_map():
                raise self._failure(f"the guest ended as it booted (QEMU: {self._qemu.wait()})", EndedError)
            if time.monotonic() > deadline:
                raise self._failure(f"the guest has not booted within {seconds:g} s")

    def finish(self) -> int:
        """Pass the command's output on until it ends; its exit status."""
        ended: dict[str, str] = {}
        while len(ended) < len(self._channels):
            ended.update(self._notices(None))
            if not self._selector.get_map():
                raise self._failure("the guest ended before the command")
        return int(ended["stdout"].split()[1])


def accelerators(wanted: str) -> list[tuple[str, float]]:
    """What to try, one after the other, each with the seconds to boot in, at most."""
    emulation = ("tcg,thread=multi", float("inf"))
    if wanted == "tcg":
        return [emulation]
    if wanted == "kvm":
        return [("kvm", float("inf"))]
    return [("kvm", KVM_SECONDS), emulation] if os.access("/dev/kvm", os.R_OK | os.W_OK) else [emulation]


def run(hardware: Hardware, accelerator: str, initramfs: int, token: str, boot_seconds: float) -> int:
    """Boot, with the first accelerator that works, and have the command's exit status."""
    *trials, last = accelerators(accelerator)
    for boot, (name, seconds) in enumerate((*trials, *[last] * BOOTS), start=1):
        with Machine(hardware, name, initramfs, token) as machine:
            try:
                machine.boot(min(seconds, boot_seconds))
            except GuestError as error:
                again = isinstance(error, EndedError) and boot < len(trials) + BOOTS
                if (name, seconds) == last and not again:
                    raise
                continue
            return machine.finish()
    raise AssertionError("the last boot raises, or returns")
