"""Processes of one machine that keep rows together, and how they hand each other the memory for it."""

from __future__ import annotations

import errno
import json
import os
import selectors
import socket
import struct
import tempfile
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from penstock.arrays.messages import shown
from penstock.checks import checked_number
from penstock.sizes import whole_number

T = TypeVar("T")
_HEADER = struct.Struct("<QB")  # bytes that follow, and how many descriptors come with them
_RETRY_SECONDS = 0.02
_GRACE_SECONDS = 1.0
_MOST_PROCESSES = 64
_MOST_PATH = 107
_MOST_SECONDS = 86_400.5
_MOST_FILES = 240  # in a message: the kernel's limit is 253
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Peers:
    """The processes of a machine, each with a GPU of its own, that keep rows of a table together.

    They meet at a socket in the file system. What they do together, opening a table, all of them do, in the
    same order. A process that ends takes nothing from the others: what they have mapped stays.
    """

    def __init__(self, rank: int, size: int, meeting: str | os.PathLike[str], timeout: float = 600.0) -> None:
        """
        Args:
            rank: Number of this process, from 0 below `size`.
            size: How many processes there are.
            meeting: Path of a socket that they meet at: process 0 makes it and takes it away again.
            timeout: Seconds after which a process that does not answer is given up.

        Returns when all have come.

        Raises:
            ValueError: In all processes, where the ranks or the sizes of those that came cannot be.
            TimeoutError: In all processes, not all came in that time.
            ConnectionError: One of them has ended.
        """
        number, count = whole_number(rank), whole_number(size)
        if number is None or count is None or not 0 <= number < count <= _MOST_PROCESSES:
            raise ValueError(
                f"peers: rank {rank!r} of {size!r}: give whole numbers, the rank below the number of "
                f"processes, and {_MOST_PROCESSES} of these at most"
            )
        self.rank, self.size = int(number), int(count)
        self._timeout = checked_number("timeout", timeout)
        if not 0 < self._timeout < _MOST_SECONDS:
            raise ValueError(f"peers: timeout {shown(timeout)}: give seconds above 0, a day at most")
        self._path = str(Path(meeting).absolute())
        if len(os.fsencode(self._path)) > _MOST_PATH or "\0" in self._path:
            raise ValueError(
                f"peers: {shown(self._path)}: a socket's path has {_MOST_PATH} bytes at most: give a "
                "shorter one"
            )
        self._process = os.getpid()
        self._ended = False
        self._others: dict[int, socket.socket] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        _MEETINGS.add(self)
        try:
            if self.rank == 0:
                self._await_others()
            else:
                self._join()
        except BaseException:
            self.close()
            raise

    @classmethod
    def from_torch(cls, group: Any = None, timeout: float = 600.0) -> Peers:
        """The processes of a torch.distributed group, such as those that torchrun started.

        Args:
            group: The process group; None: all. All its processes call this.
            timeout: As of Peers.

        Raises:
            ValueError: There is no group, or its processes run on several machines.
        """
        from torch import distributed

        if not (distributed.is_available() and distributed.is_initialized()):
            raise ValueError("peers: there is no process group: call torch.distributed.init_process_group")
        rank, size = distributed.get_rank(group), distributed.get_world_size(group)
        folder = tempfile.TemporaryDirectory(prefix="penstock-") if rank == 0 else None
        meeting = str(Path(folder.name) / "peers") if folder is not None else ""
        answers: list[Any] = [None] * size
        distributed.all_gather_object(answers, (_BOOT.read_text().strip(), meeting), group)
        if len({boot for boot, _ in answers}) > 1:
            raise ValueError("peers: the group's processes run on several machines: make a group of each")
        made = cls(rank, size, answers[0][1], timeout)
        made._folder = folder
        return made

    # How they meet

    def _await_others(self) -> None:
        """Every process is answered when all have come, or when it is known that they will not."""
        problem: Exception | None = None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            _take_path(door, self._path)
            try:
                door.listen(self.size)
                self._meet_at(door)
            except (ValueError, OSError) as raised:
                problem = raised
            finally:
                Path(self._path).unlink(missing_ok=True)
        answer = None if problem is None else [isinstance(problem, OSError), str(problem)]
        for rank, other in self._others.items():
            try:
                _send(other, answer)
            except OSError as gone:
                problem = problem or self._lost(rank, gone)
        if problem is not None:
            raise problem

    def _meet_at(self, door: socket.socket) -> None:
        ends = time.monotonic() + self._timeout
        with selectors.DefaultSelector() as ready:
            ready.register(door, selectors.EVENT_READ, 0)
            while len(self._others) < self.size - 1:
                events = ready.select(max(ends - time.monotonic(), _RETRY_SECONDS))
                for ended in (key.data for key, _ in events if key.data != 0):  # they only wait
                    raise self._lost(ended, ConnectionResetError())
                if not events:
                    missing = min({*range(1, self.size)} - {*self._others})
                    raise TimeoutError(
                        f"peers: process {missing} of {self.size} did not come to {self._path} within "
                        f"{self._timeout:g} s: start them all, with one path"
                    )
                other, _ = door.accept()
                other.settimeout(self._timeout)
                if (rank := self._greeted(other)) is not None:
                    ready.register(other, selectors.EVENT_READ, rank)

    def _greeted(self, other: socket.socket) -> int | None:
        """The rank of a process that has come; None of one that is not ours. ValueError for one that cannot
        be: the others would wait for it in vain."""
        try:
            (rank, size), _ = _receive(other)
            known = size == self.size and 0 < rank < size and rank not in self._others
            if not known:
                why = "give each a rank of its own, and all the same size"
                problem = f"peers: rank {rank} of {size} came beside process 0 of {self.size}"
                problem += f" and {sorted(self._others)}: {why}" if self._others else f": {why}"
                _send(other, [False, problem])
        except (OSError, ValueError, TypeError):  # no process of ours
            other.close()
            return None
        if not known:
            other.close()
            raise ValueError(problem)
        self._others[rank] = other
        return int(rank)

    def _join(self) -> None:
        ends = time.monotonic() + self._timeout
        while True:
            door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                door.connect(self._path)
                break
            except OSError as problem:
                door.close()
                if problem.errno not in (errno.ENOENT, errno.ECONNREFUSED) or _is_other(self._path):
                    raise ValueError(
                        f"peers: {self._path}: {problem.strerror or problem}: give another path"
                    ) from None
                if time.monotonic() > ends:
                    raise TimeoutError(
                        f"peers: process 0 did not come to {self._path} within {self._timeout:g} s "
                        f"({problem.strerror or problem}): start them all, with one path"
                    ) from None
                time.sleep(_RETRY_SECONDS)
        self._others[0] = door
        try:
            _send(door, [self.rank, self.size])
            door.settimeout(self._timeout + _GRACE_SECONDS)  # process 0 came first, and says who is missing
            refusal, _ = _receive(door)
            door.settimeout(self._timeout)
        except OSError as problem:
            raise self._lost(0, problem) from None
        if refusal is not None:
            late, sentence = refusal
            raise (TimeoutError if late else ValueError)(sentence)

    # What they do together

    def together(self, action: Callable[[], T]) -> list[T]:
        """Does something that every process does, and waits for the others.

        Args:
            action: Returns what JSON has.

        Returns:
            What it returned in each process, by rank.

        Raises:
            Whatever it raises; ValueError where it failed in another process.
        """
        answers: list[T] = self._exchange(action, lambda value: (value, []))[0]
        return answers

    def share(self, make: Callable[[], list[int]]) -> list[int]:
        """The same for descriptors, as many in each process and 240 in all at most. Returns those of all, by
        rank, which are the caller's to close."""
        return self._exchange(make, lambda files: (None, files))[1]

    def _exchange(
        self, action: Callable[[], T], parts: Callable[[T], tuple[Any, list[int]]]
    ) -> tuple[Any, list[int]]:
        if self._ended or self._process != os.getpid():
            why = "it has ended" if self._ended else "this process was forked from one of them"
            raise ValueError(f"peers: the meeting at {self._path}: {why}: make Peers anew in all processes")
        problem: BaseException | None = None
        value: Any = None
        own_files: list[int] = []
        try:
            value, own_files = parts(action())
        except BaseException as raised:
            problem = raised
        own = {"value": value, "failed": None if problem is None else str(problem) or type(problem).__name__}
        try:
            answers, files = self._answers(own, own_files)
        except BaseException:
            self.close()  # the answers of the others are lost
            if problem is not None:
                raise problem from None
            raise
        failed = [rank for rank, each in enumerate(answers) if each["failed"] is not None]
        if failed:
            for each in files:
                os.close(each)
            if problem is not None:
                raise problem
            raise ValueError(f"peers: process {failed[0]} of {self.size}: {answers[failed[0]]['failed']}")
        return [each["value"] for each in answers], files

    def _answers(self, own: Any, files: list[int]) -> tuple[list[Any], list[int]]:
        """Through process 0: the answer of each, and their descriptors."""
        at = 0
        try:
            if self.rank != 0:
                _send(self._others[0], own, files)
                for each in files:
                    os.close(each)
                files = []
                return _receive(self._others[0])
            answers = {0: own}
            found = {0: files}
            for at in sorted(self._others):
                answers[at], found[at] = _receive(self._others[at])
            files = [each for rank in sorted(found) for each in found[rank]]
            everything = [answers[rank] for rank in sorted(answers)]
            for at in sorted(self._others):
                _send(self._others[at], everything, files)
            return everything, files
        except OSError as problem:
            for each in files:
                os.close(each)
            raise self._lost(at, problem) from None

    def _lost(self, rank: int, problem: OSError) -> OSError:
        gone = "did not answer in time" if isinstance(problem, TimeoutError) else "has ended"
        return ConnectionError(f"peers: process {rank} of {self.size} {gone}: start them all again")

    def close(self) -> None:
        """Ends the meeting; what was opened together stays open."""
        self._ended = True
        for each in self._others.values():
            each.close()
        self._others = {}
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Peers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Peers(rank={self.rank}, size={self.size}, meeting={self._path!r})"


_MEETINGS: weakref.WeakSet[Peers] = weakref.WeakSet()


def _leave_after_fork() -> None:
    """A forked process is no peer, and an end of a connection that it had would outlive its parent's."""
    for each in list(_MEETINGS):
        for other in each._others.values():
            other.close()
        each._others = {}


os.register_at_fork(after_in_child=_leave_after_fork)


def _take_path(door: socket.socket, path: str) -> None:
    """Binds to a path; what a process that has ended left there is taken away."""
    try:
        door.bind(path)
        return
    except OSError as problem:
        if problem.errno != errno.EADDRINUSE or _is_other(path):
            raise ValueError(f"peers: {path}: {problem.strerror or problem}: give another path") from None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as other:
        if other.connect_ex(path) == 0:
            raise ValueError(f"peers: {path}: other processes meet there: give another path")
    Path(path).unlink(missing_ok=True)
    door.bind(path)


def _is_other(path: str) -> bool:
    """Whether something else than a socket lies there."""
    return Path(path).exists() and not Path(path).is_socket()


def _send(to: socket.socket, answers: Any, files: list[int] | None = None) -> None:
    text = json.dumps(answers).encode()
    files = files or []
    head = _HEADER.pack(len(text), len(files))
    if files:
        sent = socket.send_fds(to, [head], files)
        head = head[sent:]
    to.sendall(head + text)


def _receive(of: socket.socket) -> tuple[Any, list[int]]:
    head, files, _, _ = socket.recv_fds(of, _HEADER.size, _MOST_FILES)
    try:
        if not head:
            raise ConnectionResetError
        head += _exactly(of, _HEADER.size - len(head))
        size, count = _HEADER.unpack(head)
        answers = json.loads(_exactly(of, size))
        if count != len(files):
            raise ConnectionResetError
        return answers, files
    except BaseException:
        for each in files:
            os.close(each)
        raise


def _exactly(of: socket.socket, count: int) -> bytes:
    found = b""
    while len(found) < count:
        more = of.recv(count - len(found))
        if not more:
            raise ConnectionResetError
        found += more
    return found
