"""As much of C++ as the structure check needs: what is a comment, and where a function begins and ends."""

from __future__ import annotations

import re
from collections.abc import Iterator

TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^(\s]{0,16})\(.*?\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)
CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum|concept)\b|\bextern\s*\"\"")
# A constructor's initializer list has begun, so a brace after a name opens an initializer.
INITIALIZERS = re.compile(r"\)\s*(?:noexcept\s*)?:(?!:)")
CALLABLE = re.compile(r"([~\w:]+|operator\s*\S{1,3})\s*\(")


def without_comments(text: str) -> str:
    """The same lines, comments gone and strings empty."""

    def blank(match: re.Match[str]) -> str:
        token = match.group(0)
        lines = "\n" * token.count("\n")
        if token.startswith(("//", "/*")):
            return lines or " "
        return token[0] + token[-1] + lines if token[0] != "R" else '""' + lines

    def keep_includes(line: str, original: str) -> str:
        return original if original.lstrip().startswith("#include") else line

    stripped = TOKEN.sub(blank, text)
    pairs = zip(stripped.splitlines(), text.splitlines(), strict=True)
    return "\n".join(keep_includes(line, original) for line, original in pairs)


def without_directives(code: str) -> str:
    """The same lines without directives and without what stands between #else and #endif.

    So each brace counts once.
    """
    result = []
    skipping: list[bool] = []
    continued = False
    for line in code.split("\n"):
        text = line.lstrip()
        directive = continued or text.startswith("#")
        if text.startswith("#") and not continued:
            word = text[1:].split()[0] if text[1:].split() else ""
            if word.startswith("if"):
                skipping.append(False)
            elif word in ("else", "elif") and skipping:
                skipping[-1] = True
            elif word == "endif" and skipping:
                skipping.pop()
        continued = directive and line.rstrip().endswith("\\")
        result.append("" if directive or any(skipping) else line)
    return "\n".join(result)


def opens_function(head: str) -> bool:
    """Whether a brace after `head`, the text since the last statement, opens the body of a function."""
    head = head.strip()
    bare = re.sub(r"\b(alignas|__attribute__|requires|decltype|noexcept)\s*\(+[^()]*\)+", "", head)
    bare = re.sub(r"\btemplate\s*<[^{}]*?>(?=\s*[\w\[])", "", bare)
    if "(" not in bare or head.endswith(("=", ",", "(", "return")):
        return False
    if CONTAINER.search(bare) and not re.search(r"\)\s*(const|noexcept|override|final|->|$)", bare):
        return False
    if re.search(r"\bconcept\b", head):
        return False
    return not (INITIALIZERS.search(head) and re.search(r"[\w>]$", head))


def function_name(head: str) -> str:
    found = CALLABLE.search(re.sub(r"\b(alignas|__attribute__|requires|decltype)\s*\(+[^()]*\)+", "", head))
    return found.group(1) if found else "function"


def functions(code: str) -> Iterator[tuple[str, int, int]]:
    """Name, first and last line of every function with a body; what is inside of a function is part of it.

    code: as without_comments gives it.
    """
    head = ""
    head_line = line = 1
    kinds: list[tuple[str, str, int]] = []  # of the open braces: kind, name or head, first line
    inside = 0
    for c in without_directives(code):
        if c == "\n":
            line += 1
        if c == "{":
            kind = "inside" if inside else "function" if opens_function(head) else "other"
            kinds.append((kind, function_name(head) if kind == "function" else head, head_line))
            inside += kind != "other"
            # After an initializer the head goes on; after a class or a namespace it begins anew.
            head = head if kind == "other" and INITIALIZERS.search(head) else ""
        elif c == "}" and kinds:
            kind, name, first = kinds.pop()
            inside -= kind != "other"
            if kind == "function":
                yield name, first, line
            head = name + "{}" if kind == "other" and INITIALIZERS.search(name) else ""
        elif c == ";" and "for (" not in head:
            head = ""
        elif not inside:
            if not head.strip():
                head, head_line = "", line
            head += c
