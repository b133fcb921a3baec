"""Search of a tree of files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, SupportsIndex, TypedDict

from penstock.arrays.layout import path_text
from penstock.callbacks import Progress
from penstock.graph.options import Executor
from penstock.native import load_native
from penstock.options import Choice, Count, Size, Switch, checked, show_options

if TYPE_CHECKING:
    from typing_extensions import Unpack


CHANGED = "it was changed while it was searched"


class GrepOptions(TypedDict, total=False):
    """What `grep` takes."""

    ignore_case: Annotated[bool, Switch()]
    executor: Annotated[Executor, Choice("auto")]
    cache: Annotated[SupportsIndex | str | None, Size(least=1)]
    line: Annotated[SupportsIndex | str | None, Size(unless="64KiB", least=1)]
    threads: Annotated[SupportsIndex, Count(most=1024)]


@dataclass(frozen=True)
class Match:
    """A line that has the pattern."""

    path: str
    """Below the folder."""
    line: int
    """From 1."""
    text: str
    """Without its end; bytes that are no UTF-8 as surrogates. Of a line of more than a MiB a part around the
    pattern."""


@dataclass(frozen=True)
class GrepResult:
    """Lines that were found, and what it took."""

    matches: list[Match]
    """In the order of their paths and lines."""
    errors: list[OSError]
    """One for each file or folder that could not be read, or changed meanwhile (ESTALE), with its path."""
    files: int
    """That were opened."""
    binary: int
    """Files with a zero byte, of which no line counts."""
    folders: int
    bytes: int
    """That were looked at."""
    seconds: float
    executor: str
    device: str
    hits: int
    """Accesses whose line was in the cache."""
    misses: int
    bytes_moved: int
    """To the cache."""
    host_calls: int
    """Opens, closes and lists of names that the host answered."""


@show_options(GrepOptions)
def grep(
    pattern: str | bytes,
    folder: str | os.PathLike[str],
    *,
    progress: Progress | None = None,
    found: Callable[[list[Match]], object] | None = None,
    **options: Unpack[GrepOptions],
) -> GrepResult:
    """Find the lines below a folder that contain a text (GPUfs, section 6; `grep -rIF`).

    Names are listed, files opened and read by the threads of the executor, a warp to a file or to 8 MiB of a
    large one, through one cache. Symbolic links below the folder are not followed.

    Args:
        pattern: The text, as it is; of 1 to 255 bytes, without a line end.
        folder: Where to begin.
        ignore_case: Whether "a" to "z" stand for their capitals, too.
        executor: "cpu", "cuda", or "auto".
        cache: Bytes for lines of files; None takes 64 MiB, on a GPU 1 GiB.
        line: How much of a file comes at once.
        threads: Of the CPU executor; 0: one for each core.
        progress: Called with what is done, how far it is, and of how much.
        found: Called with the matches of some files as they are found, in the order of `matches`.

    Returns:
        Matches, what could not be read, and the cost.

    Raises:
        ValueError, TypeError: For a bad argument.
        penstock.Error: Where the folder cannot be opened, or the machine refuses.
    """
    given = checked(GrepOptions, options)
    if not isinstance(pattern, str | bytes):
        raise TypeError(f"pattern {pattern!r}: give text or bytes")
    root = path_text(folder, "search")
    answer = load_native().files_search(
        root,
        pattern.encode(errors="surrogateescape") if isinstance(pattern, str) else pattern,
        given["ignore_case"],
        given["executor"],
        given["cache"] or 0,
        given["line"],
        given["threads"],
        progress,
        None if found is None else lambda files: found(_matches_in(files)),
    )
    errors = [
        OSError(number, CHANGED if number == errno.ESTALE else os.strerror(number), str(Path(root) / path))
        for path, _, _, number, _ in answer["files"]
        if number != 0
    ]
    opened = [binary for _, _, binary, number, _ in answer["files"] if number == 0]
    return GrepResult(
        matches=_matches_in(answer["files"]),
        errors=errors,
        files=len(opened),
        binary=sum(opened),
        **{name: value for name, value in answer.items() if name != "files"},
    )


def _matches_in(files: list[Any]) -> list[Match]:
    return [
        Match(path, line, text.decode(errors="surrogateescape"))
        for path, _, _, _, lines in files
        for line, text in lines
    ]


def is_gone(problem: OSError) -> bool:
    """Whether a file was removed while its tree was searched."""
    return problem.errno == errno.ENOENT
