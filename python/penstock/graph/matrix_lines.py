"""Lines of Matrix Market files, checked before SciPy reads them.

SciPy ends a number at the first character that is none and drops what follows it (1,5 becomes 1),
and ends the
process where a file ends in a carriage return.
"""

from __future__ import annotations

import io
import re
from typing import IO, Any

PIECE = 1 << 20
_NUMBER = rb"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|nan|inf(?:inity)?)"
_BAD_LINE = re.compile(
    rb"^(?![ \t]*(?:%[^\n]*|\d+[ \t]+\d+(?:[ \t]+" + _NUMBER + rb")?[ \t]*)?$)[^\n]*$", re.I | re.M
)


class MatrixLines(io.RawIOBase):
    """What is in `file`, with plain ends of lines. check: that each is a comment, or numbers of an entry.

    Reading raises ValueError with the first line that is neither.
    """

    def __init__(self, file: IO[bytes], *, check: bool) -> None:
        self.file = file
        self.check = check
        self.lines = 0
        self.left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, to: Any) -> int:
        if not self.left:
            self.left = self._more()
        size = min(len(to), len(self.left))
        to[:size], self.left = self.left[:size], self.left[size:]
        return size

    def _more(self) -> bytes:
        text = b"".join(self.file.readlines(PIECE)).replace(b"\r", b" ")
        if text and not text.endswith(b"\n"):
            text += b"\n"
        if self.check and (bad := _BAD_LINE.search(text)) and bad.end() < len(text):
            line = self.lines + text.count(b"\n", 0, bad.start()) + 1
            shown = bad.group()[:40].decode(errors="backslashreplace")
            raise ValueError(f"line {line}: {shown!r} is no entry of a matrix")
        self.lines += text.count(b"\n")
        return text
