"""Functions of SQL of texts, numbers and times, in DuckDB's meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from penstock.columns.expressions import Call, Expr, Value, as_expr, concat_str, when
from penstock.columns.messages import one_line
from penstock.columns.parts import TEXT, TextFunction
from penstock.columns.statement_nodes import Node, kind_of, refuse
from penstock.columns.types import BOOLEAN, INTEGER, ColumnType

if TYPE_CHECKING:
    from penstock.columns.statement_expressions import Translator

Function = Callable[["Translator", Node], Expr]

MORE_ARGUMENTS: Mapping[str, set[str]] = {
    "Substring": {"start", "length"}, "Trim": {"position"}, "Replace": {"replacement"},
    "Concat": {"coalesce"}, "StrPosition": {"substr"}, "Round": {"decimals"},
    "DateDiff": {"date_part_boundary"}, "Greatest": {"ignore_nulls"}, "Least": {"ignore_nulls"},
}  # fmt: skip
"""Arguments that only these look at."""


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


# Texts.


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
    parts = [translate(each) for each in node.expressions]
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


# Numbers.


def _round(translate: Translator, node: Node) -> Expr:
    return translate(node.this).round(constant(translate, node.args.get("decimals"), int, 0))


def _sign(translate: Translator, node: Node) -> Expr:
    of = translate(node.this)
    is_above = (of > 0) & ~of.is_nan()
    return is_above.cast(int) - as_expr(of < 0).cast(int)


def _extreme(is_better: Callable[[Expr, Expr], Expr]) -> Function:
    def made(translate: Translator, node: Node) -> Expr:
        best = translate(node.this)
        for each in node.expressions:
            other = translate(each)
            stays = is_better(best, other) | other.is_null()
            best = when(stays.fill_null(False)).then(best).otherwise(other)
        return best

    return made


# Dates and times.

UNITS = ("DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "HOUR", "MINUTE", "SECOND")
TRUNCATED = {
    "YEAR": "1y", "QUARTER": "1q", "MONTH": "1mo", "WEEK": "1w", "DAY": "1d", "HOUR": "1h", "MINUTE": "1m",
    "SECOND": "1s",
}  # fmt: skip
PARTS: Mapping[str, Callable[[Expr], Expr]] = {
    "YEAR": lambda a: a.dt.year(),
    "QUARTER": lambda a: a.dt.quarter(),
    "MONTH": lambda a: a.dt.month(),
    "WEEK": lambda a: a.dt.week(),
    "DAY": lambda a: a.dt.day(),
    "DOY": lambda a: a.dt.ordinal_day(),
    "DAYOFYEAR": lambda a: a.dt.ordinal_day(),
    "DOW": lambda a: a.dt.weekday() % 7,
    "DAYOFWEEK": lambda a: a.dt.weekday() % 7,
    "ISODOW": lambda a: a.dt.weekday(),
    "HOUR": lambda a: a.dt.hour(),
    "MINUTE": lambda a: a.dt.minute(),
    "SECOND": lambda a: a.dt.second(),
    "EPOCH": lambda a: a.dt.epoch(),
}


def part_of_time(node: Node, name: str, of: Expr) -> Expr:
    part = name.upper()
    if part not in PARTS:
        refuse(node, f"the part {part} of a time is not covered here")
    return PARTS[part](of)


def _extract(translate: Translator, node: Node) -> Expr:
    return part_of_time(node, str(node.this.this), translate(node.expression))


def _named_part(part: str) -> Function:
    return lambda translate, node: PARTS[part](translate(node.this))


def _truncate(translate: Translator, node: Node) -> Expr:
    unit = str(node.args["unit"].this).upper()
    if unit not in TRUNCATED:
        refuse(node, f"DATE_TRUNC to a {unit} is not covered here")
    return translate(node.this).dt.truncate(TRUNCATED[unit])


def _last_day(translate: Translator, node: Node) -> Expr:
    return translate(node.this).dt.truncate("1mo").dt.offset_by(1, "month") - 1


def _date_diff(translate: Translator, node: Node) -> Expr:
    if str(node.args["unit"].this).upper() != "DAY":
        refuse(node, "DATE_DIFF in days alone is covered here")
    return translate(node.this).dt.date() - translate(node.expression).dt.date()


def _text(name: str, apply: Callable[[str], Any], kind: ColumnType = TEXT) -> Function:
    return lambda translate, node: of_text(name, translate(node.this), apply, kind=kind)


FUNCTIONS: Mapping[str, Function] = {
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
    "DPipe": lambda translate, node: concat_str(translate(node.this), translate(node.expression)),
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
    "Round": _round,
    "Sign": _sign,
    "Greatest": _extreme(lambda a, b: a >= b),
    "Least": _extreme(lambda a, b: a <= b),
    "Extract": _extract,
    "TimeToUnix": _named_part("EPOCH"),
    "Year": _named_part("YEAR"),
    "Quarter": _named_part("QUARTER"),
    "Month": _named_part("MONTH"),
    "Week": _named_part("WEEK"),
    "WeekOfYear": _named_part("WEEK"),
    "Day": _named_part("DAY"),
    "DayOfMonth": _named_part("DAY"),
    "DayOfYear": _named_part("DOY"),
    "DayOfWeek": _named_part("DOW"),
    "DayOfWeekIso": _named_part("ISODOW"),
    "Hour": _named_part("HOUR"),
    "Minute": _named_part("MINUTE"),
    "Second": _named_part("SECOND"),
    "TimestampTrunc": _truncate,
    "DateTrunc": _truncate,
    "LastDay": _last_day,
    "DateDiff": _date_diff,
}
