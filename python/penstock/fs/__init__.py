"""Files of a folder, opened, read and written by the executor's threads.

A folder is mounted for kernels; the host has the same calls, each made by a group of the executor:

    with penstock.fs.mount("data", writable=True) as folder:
        with folder.open("parts/7", "r+") as file:
            head = file.read(4096)
            file.write(b"seen", offset=4096)

and what `penstock grep` does:

    found = penstock.fs.grep("printf", "src")
    for match in found.matches:
        print(f"{match.path}:{match.line}:{match.text}")
"""

from __future__ import annotations

from penstock.fs.folder import Facts, File, Folder, mount
from penstock.fs.search import GrepResult, Match, grep

__all__ = ["Facts", "File", "Folder", "GrepResult", "Match", "grep", "mount"]
