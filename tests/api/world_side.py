# SPDX-License-Identifier: BSD-3-Clause
"""The process that takes the fuzzer's steps: ``world_side.py DESCRIPTOR TARGET…``.

The descriptor is of a connection to the process that sends them.
"""

import asyncio
import faulthandler
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from pair import Leftovers, open_domain
from standard_locks import holds_lock_of_logging
from steps import Ref, Step
from world import World, bare

import ofipy

# Seconds until a call that waits for ever is interrupted, as by Ctrl-C.
LONGEST = 0.2
# And until the next try, when it could not be.
SOON = 0.0001
# An exception that comes up anywhere breaks an event loop, whatever the library does; these wait a moment only.
UNINTERRUPTED = frozenset({"tasks"})
PACKAGE = str(Path(ofipy.__file__).parent)


class Interrupted(KeyboardInterrupt):
    """The alarm rang within a step."""


class Alarm:
    """Raises in this thread after a time, once, while a step is taken."""

    def __init__(self) -> None:
        self._armed = False
        signal.signal(signal.SIGALRM, self._ring)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if not self._armed:
            return
        if holds_lock_of_logging(frame):
            signal.setitimer(signal.ITIMER_REAL, SOON)
            return
        self._armed = False
        raise Interrupted

    def guard(self, call: Callable[[], Any], after: float) -> Any:
        """Call, and interrupt it."""
        try:
            self._armed = True
            signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))
            return call()
        finally:
            self._armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)


class Player:
    """Takes steps."""

    def __init__(self, targets: list[str]) -> None:
        self._world = World()
        self._alarm = Alarm()
        self._ignored: list[str] = []
        sys.unraisablehook = self._unraisable
        for target in targets:
            open_domain(target).fabric.close()  # what is made once and stays
        self._leftovers = Leftovers()

    def _unraisable(self, what: Any) -> None:
        if not isinstance(what.exc_value, KeyboardInterrupt):
            self._ignored.append(f"{what.exc_value!r} in {what.object!r}")

    def take(self, steps: list[Step]) -> list[str]:
        """One step, or several at once. Says of each ``ok``, or how it failed as it may."""
        outcomes = [""] * len(steps)
        failures: list[str] = []

        def one(place: int) -> None:
            try:
                outcomes[place] = self._take(steps[place], alone=len(steps) == 1)
            except BaseException:
                failures.append(f"{steps[place]!r}:\n{traceback.format_exc()}")

        if len(steps) == 1:
            one(0)
        else:
            threads = [
                threading.Thread(target=one, args=(place,), daemon=True) for place in range(len(steps))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self._ignored:
            failures.append(f"ignored in a finaliser: {self._ignored}")
        if failures:
            raise AssertionError("\n".join(failures))
        return outcomes

    def _take(self, step: Step, *, alone: bool) -> str:
        objects = self._world.objects
        if any(isinstance(each, Ref) and each.name not in objects for each in step.arguments):
            return "gone"
        arguments = [objects[each.name] if isinstance(each, Ref) else each for each in step.arguments]
        options = {
            name: bare(objects.get(value.name)) if isinstance(value, Ref) else value
            for name, value in step.options.items()
        }
        try:
            verb = getattr(self._world, step.verb)
            after = LONGEST if step.after is None else step.after
            if alone and step.verb not in UNINTERRUPTED:
                result = self._alarm.guard(lambda: verb(*arguments, **options), after)
            else:
                result = verb(*arguments, **options)
        except (ofipy.FabricError, Interrupted, TimeoutError, asyncio.CancelledError) as error:
            return type(error).__name__
        except Exception as error:
            if not self._is_allowed(error, [*arguments, *options.values()]):
                raise
            return type(error).__name__
        if step.name and result is not None:
            objects[step.name] = result
            return "ok"
        return "nothing"

    @staticmethod
    def _is_allowed(error: Exception, given: list[Any]) -> bool:
        """Whether it says that an argument is of a wrong type, or did not come from the library at all."""
        if isinstance(error, AssertionError):
            return False
        if isinstance(error, TypeError):
            return True
        if isinstance(error, AttributeError) and not type(error.obj).__module__.startswith("ofipy"):
            # Something else than is meant was given, and has not what that has.
            return True
        if isinstance(error, AttributeError) and any(error.obj is bare(each) for each in given):
            return True
        frames = traceback.extract_tb(error.__traceback__)
        return not any(frame.filename.startswith(PACKAGE) for frame in frames)

    def end(self) -> list[str]:
        """End the example: everything closes, and nothing is left."""
        world, self._world = self._world, World()
        try:
            world.end()
            world.objects.clear()
            del world
            self._leftovers.check()
            assert not self._ignored, self._ignored
        finally:
            self._ignored.clear()
        return []


def main() -> None:
    faulthandler.enable()
    connection = Connection(int(sys.argv[1]))
    player = Player(sys.argv[2:])
    while True:
        try:
            steps = connection.recv()
        except EOFError:
            return
        try:
            answer = True, player.take(steps) if steps else player.end()
        except BaseException:
            answer = False, [traceback.format_exc()]
        connection.send(answer)


if __name__ == "__main__":
    main()
