"""The text of a source that its signature is read from: without comments, and without what is never compiled.

>>> active_text("#if 0\\na\\n#else\\nb\\n#endif", {}).splitlines()
['#if 0', '', '#else', 'b', '#endif']
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_DIRECTIVE = re.compile(r"[ \t]*#[ \t]*(if|ifdef|ifndef|elif|else|endif|define|undef)\b(.*)")


def plain_text(source: str, names: Mapping[str, str]) -> str:
    """With blanks in place of comments, of the text of literals and of branches that are not taken, and
    continued lines as one. names: of macros that are given."""
    return active_text(_without_comments(re.sub(r"\\\r?\n", "", source)), names)


def _without_comments(source: str) -> str:
    def blank(match: re.Match[str]) -> str:
        text = match.group()
        return text if text == '"C"' else re.sub(r"[^\n]", " ", text)

    return re.sub(
        r"""//[^\n]*|/\*.*?\*/|\bR"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<!\w)(?:u8|[uUL])?'(?:\\.|[^'\\\n])+'""",
        blank,
        source,
        flags=re.DOTALL,
    )


def active_text(plain: str, names: Mapping[str, str]) -> str:
    """Lines of branches that conditions are known not to take are blank. A condition is known if it is a
    number, or asks for one macro that the source or `names` defines, or that no header of a compiler's does
    (it begins with no underscore); of any other, all branches stay."""
    known = dict(names)
    lines = []
    branches: list[tuple[bool, bool]] = []  # of each condition around: taken now; none after it can be
    for line in plain.split("\n"):
        found = _DIRECTIVE.match(line)
        active = all(taken for taken, _ in branches)
        word, rest = (found.group(1), found.group(2).strip()) if found is not None else ("", "")
        if word in ("if", "ifdef", "ifndef"):
            holds = _holds(word, rest, known)
            branches.append((holds is not False, holds is True))
        elif word in ("elif", "else") and branches:
            _, over = branches.pop()
            holds = True if word == "else" else _holds("if", rest, known)
            branches.append((not over and holds is not False, over or (word == "elif" and holds is True)))
        elif word == "endif" and branches:
            branches.pop()
        elif word == "define" and active and (named := re.match(r"(\w+)(?!\()\s*(.*)", rest)) is not None:
            known[named.group(1)] = named.group(2)
        elif word == "undef" and active:
            known.pop(rest, None)
        lines.append(line if active or found is not None else "")
    return "\n".join(lines)


def _holds(word: str, rest: str, known: Mapping[str, str]) -> bool | None:
    """None: it is not known here."""
    if word == "if":
        if (asked := re.fullmatch(r"(!?)\s*defined\s*(?:\(\s*(\w+)\s*\)|(\w+))", rest)) is not None:
            word, rest = "ifndef" if asked.group(1) else "ifdef", asked.group(2) or asked.group(3)
        else:
            value = known.get(rest, "0" if re.fullmatch(r"[A-Za-z]\w*", rest) else rest)
            return int(value) != 0 if re.fullmatch(r"\d+", value) else None
    if rest in known:
        return word == "ifdef"
    return word == "ifndef" if re.fullmatch(r"[A-Za-z]\w*", rest) else None


def namespace_at(plain: str, position: int) -> str:
    """Of what stands there, with `::` behind it; empty: the global one."""
    around: list[str] = []
    for match in re.finditer(r"\bnamespace\s+([\w:]+)\s*\{|\{|\}", plain[:position]):
        if match.group() != "}":
            around.append(match.group(1) or "")
        elif around:
            around.pop()
    return "".join(f"{name}::" for name in around if name)
