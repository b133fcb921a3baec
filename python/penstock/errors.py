"""The one exception of Penstock's own. What the caller got wrong is a ValueError or a TypeError."""

from __future__ import annotations

import errno


class Error(OSError):
    """The machine refused: a device's status, a full disk, a missing permission.

    str() is one sentence with the operation, the object and the remedy; `errno` is set where the system gave
    one. What is missing is a FileNotFoundError, too, and what is forbidden a PermissionError.
    """

    def __new__(cls, sentence: str, code: int = 0) -> Error:
        kind = {errno.ENOENT: MissingError, errno.EACCES: ForbiddenError, errno.EPERM: ForbiddenError}.get(
            code
        )
        return super().__new__(cls if kind is None or cls is not Error else kind, sentence)

    def __init__(self, sentence: str, code: int = 0) -> None:
        super().__init__(sentence)
        self.errno = code or None

    def __reduce__(self) -> tuple[type[Error], tuple[str, int]]:
        return type(self), (str(self), self.errno or 0)


class MissingError(Error, FileNotFoundError):
    """An Error with the errno ENOENT."""


class ForbiddenError(Error, PermissionError):
    """An Error with the errno EACCES or EPERM."""
