"""Kernels of queries, compiled when the program runs: what a table's executor asks for."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass

from penstock.errors import Error
from penstock.kernels.locations import cached, query_include_dirs, query_sources_digest, store
from penstock.kernels.nvrtc import compile_query
from penstock.kernels.toolkit import core

LEAST_SECONDS = 0.02
"""From a pass of this length on, a query that runs again soon has back what its compilation takes."""
MOST_KEPT = 256


@dataclass(frozen=True)
class Compiled:
    """A source's outcome."""

    image: bytes | None
    why: str = ""
    """There is none: one sentence."""
    seconds: float = 0.0
    """0: it was in the cache on disk."""


@functools.cache
def _may_be_there() -> bool:
    """Whether NVIDIA's packages are: importing them takes longer than many a query."""
    return importlib.util.find_spec("cuda") is not None


class _Compilations:
    """Of this process, by key. A thread compiles what tables have asked for, and ends when there is no more.

    It is no daemon: one that is killed within NVRTC takes the process with it. So the interpreter's exit
    waits for one compilation at most, of about a second.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Compiled] = OrderedDict()
        self._waiting: OrderedDict[str, tuple[str, bool, int]] = OrderedDict()
        self._thread: threading.Thread | None = None
        self._missing: str | None = None
        self._not_on_disk: set[str] = set()

    def known(self, key: str) -> Compiled | None:
        with self._lock:
            return self._known.get(key)

    def compile_now(self, key: str, source: str, resident: bool, architecture: int) -> bytes:
        begun = time.perf_counter()
        image = compile_query(source, resident, architecture)
        self._keep(key, Compiled(image, seconds=time.perf_counter() - begun))
        store(cached(key, ".cubin"), image)
        return image

    def load(self, key: str) -> Compiled | None:
        """From the cache on disk, which is asked once for a key."""
        if key in self._not_on_disk:
            return None
        try:
            found = Compiled(cached(key, ".cubin").read_bytes())
        except OSError:
            self._not_on_disk.add(key)
            return None
        self._keep(key, found)
        return found

    def refuse(self, key: str, why: str) -> None:
        with contextlib.suppress(OSError):
            cached(key, ".cubin").unlink()
        self._keep(key, Compiled(None, why))

    def ask(self, key: str, source: str, resident: bool, architecture: int) -> None:
        """In the background."""
        with self._lock:
            if key in self._known or key in self._waiting or self._missing is not None:
                return
            self._waiting[key] = (source, resident, architecture)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._work, name="penstock-compile")
                try:
                    self._thread.start()
                except RuntimeError:  # the interpreter exits
                    self._waiting.clear()

    def missing(self) -> str | None:
        """What compilation lacks here, as a sentence."""
        if self._missing is None and not _may_be_there():
            try:
                core()
                query_include_dirs()
            except Error as problem:
                self._missing = str(problem)
        return self._missing

    def wait(self) -> None:
        """Until all that was asked for is compiled."""
        while True:
            with self._lock:
                thread = self._thread
            if thread is None or not thread.is_alive():
                return
            thread.join()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting or not threading.main_thread().is_alive():
                    self._waiting.clear()
                    self._thread = None
                    return
                key, (source, resident, architecture) = next(iter(self._waiting.items()))
            try:
                self.compile_now(key, source, resident, architecture)
            except Error as problem:  # a library is missing, for all of them
                self._missing = str(problem)
            except Exception as problem:  # the query goes on without
                self._keep(key, Compiled(None, f"{type(problem).__name__}: {str(problem).splitlines()[0]}"))
            with self._lock:
                self._waiting.pop(key, None)

    def _keep(self, key: str, found: Compiled) -> None:
        with self._lock:
            self._known[key] = found
            while len(self._known) > MOST_KEPT:
                self._known.popitem(last=False)


compilations = _Compilations()


class QueryCompiler:
    """Of one table on a GPU. The native table calls it in a query's turn, with the GIL."""

    def __init__(self, architecture: int, always: bool) -> None:
        self._architecture = architecture
        self._always = always
        self._outcomes: dict[str, Compiled] = {}

    def described(self) -> str:
        """How passes of the table's queries run, in one line."""
        missing = compilations.missing()
        if missing is not None:
            return f"interpreted: {missing}"
        when = "before a first run" if self._always else f"behind a pass of {1000 * LEAST_SECONDS:.0f} ms"
        return f"compiled {when}, else interpreted"

    def account(self) -> list[str]:
        """Of the table's kernels so far: how many were compiled, in what time, and what failed."""
        made = [each for each in self._outcomes.values() if each.image is not None]
        seconds = sum(each.seconds for each in made)
        kept = sum(each.seconds == 0 for each in made)
        lines = [f"compiled kernels: {len(made)}, in {seconds:.2f} s, {kept} of them from the cache on disk"]
        failed = {each.why for each in self._outcomes.values() if each.image is None}
        return lines + [f"no kernel: {why}" for why in sorted(failed)]

    def compiled(self, source: str, resident: bool) -> bytes | None:
        """The image of a source, if there is one.

        Raises:
            penstock.Error: compiled="always", and what compiles is missing.
            ValueError: compiled="always", and the source does not compile.
        """
        if compilations.missing() is not None and not self._always:
            return None
        key = self._key(source, resident)
        found = compilations.known(key) or compilations.load(key)
        if found is None and self._always:
            compilations.compile_now(key, source, resident, self._architecture)
            found = compilations.known(key)
        if found is None:
            return None
        self._outcomes[key] = found
        return found.image

    def interpreted(self, source: str, resident: bool, seconds: float) -> None:
        """A pass took LEAST_SECONDS or more; the next of its query may be faster."""
        if not self._always and compilations.missing() is None:
            compilations.ask(self._key(source, resident), source, resident, self._architecture)

    def refused(self, source: str, why: str) -> None:
        """An image that the driver does not take: damaged, or another version's."""
        for resident in (False, True):
            key = self._key(source, resident)
            if key in self._outcomes:
                compilations.refuse(key, why)
                self._outcomes[key] = Compiled(None, why)

    def _key(self, source: str, resident: bool) -> str:
        digest = hashlib.sha256(source.encode())
        digest.update(f"\0query sm_{self._architecture} {query_sources_digest(resident)}".encode())
        return digest.hexdigest()
