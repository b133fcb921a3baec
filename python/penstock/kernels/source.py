"""The source of a kernel as compilers take it, and their complaints as sentences."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

_HEADERS = {
    "host": "#include <penstock/kernels/kernel.hpp>\n#include <penstock/kernels/host_entry.hpp>\n",
    "cuda": "#include <penstock/kernels/kernel.hpp>\n",
}
_MOST_LINES = 12


@dataclass(frozen=True)
class Source:
    """`name`: of the kernel. `file`: what its lines are called in messages."""

    text: str
    name: str
    file: str
    checks_bounds: bool = False
    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()

    def text_for(self, target: str) -> str:
        """With Penstock's header in front, and behind that the macros, which so may have any name; lines keep
        their numbers."""
        checks = "#define PENSTOCK_CHECK_BOUNDS 1\n" if self.checks_bounds else ""
        macros = "".join(f"#define {name} {value}\n" for name, value in self.names().items())
        file = self.file.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        return f'{checks}{_HEADERS[target]}{macros}#line 1 "{file}"\n{self.text}\n'

    def digest(self, target: str, *more: str) -> str:
        """Of all that the compiled kernel depends on: the source, the user's headers that it includes,
        macros, and `more`."""
        digest = hashlib.sha256()
        headers = self._headers()
        if headers is None:  # nothing is kept
            headers = [os.urandom(16).hex()]
        for part in (
            *more,
            "headers",
            *headers,
            self.text_for(target),
        ):
            digest.update(part.encode())
            digest.update(b"\0")
        return digest.hexdigest()

    def names(self) -> dict[str, str]:
        """What the macros stand for."""
        return {name: value for name, _, value in (macro.partition("=") for macro in self.defines)}

    def mentions(self, word: str) -> bool:
        """Whether the source, or what it includes from the user's folders, has a word; or may have it."""
        headers = self._headers()
        if headers is None:
            return True
        return any(re.search(rf"\b{word}\b", part) for part in (self.text, *self.defines, *headers))

    def _headers(self) -> list[str] | None:
        """What is in the user's folders of what the source includes, and of what that includes; None: nobody
        knows here."""
        found: dict[Path, str] = {}
        waiting = [(Path.cwd(), self.text)]
        while waiting:
            own_folder, text = waiting.pop()
            for name in re.findall(r"^[ \t]*#[ \t]*include[ \t]*(.*)$", text, re.MULTILINE):
                quoted = re.match(r'[<"]([^>"]+)[>"]', name)
                if quoted is None:  # a macro's
                    return None
                for folder in (str(own_folder), *self.include_dirs):
                    path = Path(folder) / quoted.group(1)
                    if path not in found and path.is_file():
                        found[path] = path.read_text(errors="replace")
                        waiting.append((path.parent, found[path]))
        return [part for path in sorted(found) for part in (str(path), found[path])]

    def refusal(self, log: str, why: str = "") -> str:
        """One sentence, and the compiler's lines below it.

        Args:
            log: The compiler's.
            why: What is known better than by the compiler's first error, and what to do.
        """
        lines = [line.rstrip() for line in log.splitlines() if line.strip()]
        first = next(
            (line for line in lines if re.search(r"\berror\b", line)), lines[0] if lines else "unknown"
        )
        first = re.sub(r"\s+", " ", first).removesuffix(":")
        if re.search(r"no matches converting function|instance of overloaded function", first):
            return f"compile the kernel {self.name}: another function has its name: give it one of its own"
        shown = lines[:_MOST_LINES]
        rest = f"\n  ... and {len(lines) - _MOST_LINES} lines" if len(lines) > _MOST_LINES else ""
        details = "".join(f"\n  {line}" for line in shown) + rest
        return f"compile the kernel {self.name}: {why or first + ': correct its source'}{details}"
