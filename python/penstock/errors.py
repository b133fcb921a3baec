"""The one exception of Penstock's own. What the caller got wrong is a ValueError or a TypeError."""

from __future__ import annotations


class Error(OSError):
    """The machine refused: a device's status, a full disk, a missing permission.

    str() is one sentence with the operation, the object and the remedy; `errno` is set where the system gave
    one.
    """

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.errno = code or None

    def __reduce__(self) -> tuple[type[Error], tuple[str, int]]:
        return type(self), (str(self), self.errno or 0)
