"""What callers give as folders."""

from __future__ import annotations

import os


def folder_text(folder: str | os.PathLike[str]) -> str:
    """The name of a folder, as the compiled part takes it.

    Raises:
        ValueError, TypeError: For a name that is no UTF-8, or bytes.
    """
    text = os.fspath(folder)
    if not isinstance(text, str):
        raise TypeError(f"folder {text!r}: give a str or a path")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"folder {os.fsencode(text)!r}: its name is no UTF-8: rename it") from None
    return text
