"""Functions of SQL of texts, in DuckDB's meaning."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.columns.expressions import Call, Expr, Value, concat_str, when
from penstock.columns.messages import one_line
from penstock.columns.parts import TEXT, TextFunction
from penstock.columns.statement_casts import as_text
from penstock.columns.statement_nodes import Node, kind_of, refuse
from penstock.columns.types import BOOLEAN, INTEGER, ColumnType

if TYPE_CHECKING:
    from penstock.columns.statement_expressions import Translator

Function = Callable[["Translator", Node], Expr]
LONGEST = 1 << 20
"""Characters of a text that is filled up or repeated."""
MOST_GROUPS = 8
"""Of a pattern, that one group more is written around: Arrow's replacements name nine."""


def constant(translate: Translator, node: Node | None, kind: type, default: Any = None) -> Any:
    """What an argument that is written down says."""
    if node is None:
        return default
    value = translate(node)
    if not isinstance(value, Value) or type(value.value) is not kind:
        what = "a text" if kind is str else "a whole number"
        refuse(node.parent or node, f"here stands {what} that is written down")
    return value.value


def of_text(name: str, of: Expr, apply: Callable[[str], Any], *args: Any, kind: ColumnType = TEXT) -> Expr:
    return Call(name, (of,), TextFunction(f"sql {name}", args, kind, apply))


def lowercase(text: str) -> str:
    """Letter by letter: none becomes several."""
    return "".join(low if len(low := c.lower()) == 1 else low[0] for c in text)


def uppercase(text: str) -> str:
    return text.upper() if text.isascii() else "".join(_upper(c) for c in text)


def _upper(letter: str) -> str:
    above = letter.upper()
    return above if len(above) == 1 else {"ß": "ẞ"}.get(letter, letter)


def substring(text: str, start: int, length: int | None) -> str:
    first = start - 1 if start > 0 else len(text) + start if start < 0 else -1
    if length is None:
        last = len(text)
    else:
        first, last = (first, first + length) if length >= 0 else (first + length, first)
    return text[max(first, 0) : max(last, 0)]


def _substring(translate: Translator, node: Node) -> Expr:
    start = constant(translate, node.args.get("start"), int, 1)
    length = constant(translate, node.args.get("length"), int)
    return of_text(
        "substring", translate(node.this), lambda text: substring(text, start, length), start, length
    )


def _left(translate: Translator, node: Node) -> Expr:
    count = constant(translate, node.expression, int)
    return of_text("left", translate(node.this), lambda text: text[:count], count)


def _right(translate: Translator, node: Node) -> Expr:
    count = constant(translate, node.expression, int)

    def last(text: str) -> str:
        return text[-count:] if count < 0 else text[max(len(text) - count, 0) :]

    return of_text("right", translate(node.this), last, count)


def _trim(translate: Translator, node: Node) -> Expr:
    characters = constant(translate, node.args.get("expression"), str, " ")
    where = node.args.get("position")
    strip = {"LEADING": str.lstrip, "TRAILING": str.rstrip}.get(where, str.strip)
    return of_text("trim", translate(node.this), lambda text: strip(text, characters), where, characters)


def _replace(translate: Translator, node: Node) -> Expr:
    part = constant(translate, node.expression, str)
    by = constant(translate, node.args.get("replacement"), str, "")
    return translate(node.this).str.replace_all(part, by)


def _concat(translate: Translator, node: Node) -> Expr:
    parts = [as_text(translate(each), each) for each in node.expressions]
    if node.args.get("coalesce"):
        parts = [
            each if isinstance(each, Value) and each.value is not None else each.fill_null("")
            for each in parts
        ]
    return concat_str(*parts)


def _position(translate: Translator, node: Node) -> Expr:
    part = constant(translate, node.args["substr"], str)
    return of_text("strpos", translate(node.this), lambda text: text.find(part) + 1, part, kind=INTEGER)


def _test(name: str, test: Callable[[str, str], bool]) -> Function:
    def made(translate: Translator, node: Node) -> Expr:
        other = constant(translate, node.expression, str)
        return of_text(name, translate(node.this), lambda text: test(text, other), other, kind=BOOLEAN)

    return made


def _pattern(whole: bool) -> Function:
    def made(translate: Translator, node: Node) -> Expr:
        import pyarrow as pa

        pattern = constant(translate, node.expression, str)
        try:
            _matching(pattern, [""])
        except pa.ArrowInvalid as problem:
            refuse(node, f"the pattern is none: {one_line(problem)}")
        text = f"\\A(?:{pattern})\\z" if whole else pattern
        function = TextFunction("regexp", (text,), BOOLEAN, partial(_matching, text), True)
        return Call("regexp", (translate(node.this),), function)

    return made


def _matching(pattern: str, texts: list[str]) -> list[bool | None]:
    """By RE2, which DuckDB has, too."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found: list[bool | None] = pc.match_substring_regex(pa.array(texts, pa.string()), pattern).to_pylist()
    return found


def like(translate: Translator, node: Node, escape: str = "") -> Expr:
    """LIKE and ILIKE."""
    pattern, is_exact = constant(translate, node.expression, str), kind_of(node) == "Like"
    if len(escape) > 1:
        refuse(node, "what stands behind ESCAPE is one character")
    escaped = "".join(_escaped(pattern, escape))
    function = TextFunction("like", (escaped, is_exact), BOOLEAN, partial(_alike, escaped, is_exact), True)
    return Call("like", (translate(node.this),), function)


def _escaped(pattern: str, escape: str) -> Iterator[str]:
    """A pattern with a backslash where it escapes, as Arrow has it."""
    given = iter(pattern)
    for c in given:
        if c == escape:
            c = next(given, c)
            yield f"\\{c}" if c in "%_\\" else c
        else:
            yield "\\\\" if c == "\\" else c


def _alike(pattern: str, is_exact: bool, texts: list[str]) -> list[bool | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    found: list[bool | None] = pc.match_like(
        pa.array(texts, pa.string()), pattern, ignore_case=not is_exact
    ).to_pylist()
    return found


def _escape(translate: Translator, node: Node) -> Expr:
    if kind_of(node.this) not in ("Like", "ILike"):
        refuse(node)
    return like(translate, node.this, constant(translate, node.expression, str))


def _regexp_replace(translate: Translator, node: Node) -> Expr:
    pattern = constant(translate, node.expression, str)
    by = constant(translate, node.args.get("replacement"), str, "")
    options = constant(translate, node.args.get("modifiers"), str, "")
    if options not in ("", "g"):
        refuse(node, "REGEXP_REPLACE takes g, or no option")
    return _of_pattern(translate, node, partial(_replaced, pattern, by, options == "g"), pattern, by, options)


def _regexp_extract(translate: Translator, node: Node) -> Expr:
    pattern = constant(translate, node.expression, str)
    group = constant(translate, node.args.get("group"), int, 0)
    if not 0 <= group <= MOST_GROUPS:
        refuse(node, f"REGEXP_EXTRACT takes a group up to {MOST_GROUPS}")
    return _of_pattern(translate, node, partial(_extracted, pattern, group), pattern, group)


def _of_pattern(
    translate: Translator, node: Node, apply: Callable[[list[str]], list[str | None]], *args: Any
) -> Expr:
    import pyarrow as pa

    try:
        apply([""])
    except pa.ArrowInvalid as problem:
        refuse(node, f"the pattern is none: {one_line(problem)}")
    return Call(
        kind_of(node), (translate(node.this),), TextFunction(kind_of(node), args, TEXT, apply, is_of_all=True)
    )


def _replaced(pattern: str, by: str, is_global: bool, texts: list[str]) -> list[str | None]:
    import pyarrow as pa
    import pyarrow.compute as pc

    most = None if is_global else 1
    found: list[str | None] = pc.replace_substring_regex(
        pa.array(texts, pa.string()), pattern, by, max_replacements=most
    ).to_pylist()
    return found


def _extracted(pattern: str, group: int, texts: list[str]) -> list[str | None]:
    """What a group has, the first of which is the whole; nothing where the pattern is not found."""
    whole = f"\\A(?s:.*?)({pattern})(?s:.*)\\z"
    made = _replaced(whole, f"\\{group + 1}", False, texts)
    return [text if there else "" for text, there in zip(made, _matching(pattern, texts), strict=True)]


def _pad(translate: Translator, node: Node) -> Expr:
    length = constant(translate, node.expression, int)
    fill = constant(translate, node.args.get("fill_pattern"), str)
    is_left = bool(node.args.get("is_left"))

    def padded(text: str) -> str:
        more = max(length - len(text), 0)
        made = (fill * (more // max(len(fill), 1) + 1))[:more]
        return (made + text if is_left else text + made)[:length] if len(text) < length else text[:length]

    if not fill or not 0 <= length <= LONGEST:
        refuse(node, f"it takes a length from 0 to {LONGEST}, and a text to fill with")
    return of_text("pad", translate(node.this), padded, length, fill, is_left)


def _repeat(translate: Translator, node: Node) -> Expr:
    times: int = constant(translate, node.args["times"], int)

    def repeated(text: str) -> str:
        if len(text) * times > LONGEST:
            raise ValueError(f"sql: repeat: texts have up to {LONGEST} characters here: repeat it less often")
        return text * times

    return of_text("repeat", translate(node.this), repeated, times)


def _split_part(translate: Translator, node: Node) -> Expr:
    by = constant(translate, node.args["delimiter"], str)
    number = constant(translate, node.args["part_index"], int)
    if not by:
        refuse(node, "it takes a text to split by")

    def part(text: str) -> str:
        parts = text.split(by)
        at = number - 1 if number > 0 else len(parts) + number
        return parts[at] if 0 <= at < len(parts) else ""

    return of_text("split_part", translate(node.this), part, by, number)


def _translate(translate: Translator, node: Node) -> Expr:
    these, by = (constant(translate, node.args[part], str) for part in ("from_", "to"))
    table: dict[int, str | None] = {}
    for k, c in enumerate(these):
        table.setdefault(ord(c), by[k] if k < len(by) else None)
    return of_text("translate", translate(node.this), lambda text: text.translate(table), these, by)


def _concat_ws(translate: Translator, node: Node) -> Expr:
    """Nulls are left out with their separators."""
    by = constant(translate, node.expressions[0], str)
    whole: Expr = Value(None)
    for each in node.expressions[1:]:
        part = as_text(translate(each), each)
        if isinstance(whole, Value) and whole.value is None:
            whole = part
            continue
        both = concat_str(whole, by, part)
        whole = when(part.is_null()).then(whole).otherwise(both.fill_null(part))
    return whole.fill_null("")


def _text(name: str, apply: Callable[[str], Any], kind: ColumnType = TEXT) -> Function:
    return lambda translate, node: of_text(name, translate(node.this), apply, kind=kind)


TEXT_FUNCTIONS: Mapping[str, Function] = {
    "Lower": _text("lower", lowercase),
    "Upper": _text("upper", uppercase),
    "Length": _text("length", len, INTEGER),
    "Reverse": _text("reverse", lambda text: text[::-1]),
    "Substring": _substring,
    "Left": _left,
    "Right": _right,
    "Trim": _trim,
    "Replace": _replace,
    "Concat": _concat,
    "DPipe": lambda translate, node: concat_str(
        *(as_text(translate(each), each) for each in (node.this, node.expression))
    ),
    "StrPosition": _position,
    "Like": like,
    "ILike": like,
    "Escape": _escape,
    "RegexpLike": _pattern(whole=False),
    "RegexpFullMatch": _pattern(whole=True),
    "SimilarTo": _pattern(whole=True),
    "StartsWith": _test("starts_with", str.startswith),
    "EndsWith": _test("ends_with", str.endswith),
    "Contains": _test("contains", str.__contains__),
    "RegexpReplace": _regexp_replace,
    "RegexpExtract": _regexp_extract,
    "Pad": _pad,
    "Repeat": _repeat,
    "SplitPart": _split_part,
    "Translate": _translate,
    "ConcatWs": _concat_ws,
    "Ascii": _text("ascii", lambda text: ord(text[0]) if text else 0, INTEGER),
    "BitLength": _text("bit_length", lambda text: 8 * len(text.encode()), INTEGER),
    "MD5": _text("md5", lambda text: hashlib.md5(text.encode()).hexdigest()),
}
