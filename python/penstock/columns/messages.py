"""What is said of other libraries: their errors, as a part of a sentence, and that one is missing."""

from __future__ import annotations

from typing import Any

MAX_LENGTH = 300
TRACEBACK = "Traceback (most recent call last)"


def one_line(problem: BaseException) -> str:
    """The first line of an error, without a traceback; control characters are escaped."""
    text = str(problem)
    if TRACEBACK in text:
        before, _, after = text.partition(TRACEBACK)
        said = before.rpartition("Detail:")[0] or before
        text = said if said.strip(" .:\n") else (after.strip().splitlines() or [""])[-1]
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = lines[0].rstrip(" .:") if lines else type(problem).__name__
    line = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)
    return line if len(line) <= MAX_LENGTH else f"{line[: MAX_LENGTH - 3]}..."


def pyarrow_for(what: str) -> Any:
    """pyarrow, by which files of tables are read. ImportError where it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise ImportError(f"{what}: pyarrow is not installed: pip install 'penstock[arrow]'") from None
    return pyarrow
