"""The parameters of a kernel, from its source: arrays, pointers and scalars, and their types.

>>> found = find_kernel("__global__ void f(penstock::array<const float> a, int* n, double x) {}", None)
>>> found.name, [parameter.kind for parameter in found.parameters]
('f', ['array', 'pointer', 'scalar'])
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.kernels.ctypes_of import ElementType, element_type
from penstock.kernels.plain_text import namespace_at, plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Parameter:
    """One parameter. `text`: its type as the source has it."""

    name: str
    text: str
    kind: str  # array, files, pointer, scalar, other
    element: ElementType | None
    stores: bool  # whether the kernel may write through it


@dataclass(frozen=True)
class Signature:
    name: str  # with its namespaces
    parameters: tuple[Parameter, ...]
    has_c_linkage: bool
    is_template: bool
    line: int  # of the source

    def checks(self) -> str:
        """C++ that does not compile unless the parameters are what their text seems to say."""
        kinds = {"array": "array_parameter", "pointer": "pointer_parameter"}
        lines = []
        for index, parameter in enumerate(self.parameters):
            element = parameter.element
            if parameter.kind == "files":
                asked = "files_parameter, sizeof(penstock::files), penstock::kernels::no_number"
            elif element is None and parameter.kind == "pointer":
                continue
            elif element is None:
                asked = ""
            else:
                asked = f"{kinds.get(parameter.kind, 'value_parameter')}, {element.itemsize}, "
                asked += f"penstock::kernels::{element.number}"
            fits = f"parameter_is(&{self.name}, {index}, penstock::kernels::{asked})"
            if not asked:
                fits = f"parameter_is_value(&{self.name}, {index})"
            lines.append(
                f'static_assert(penstock::kernels::{fits}, "parameter '
                f'{index + 1} of {self.name} is not what its type seems to be: name a plain type there");'
            )
        return "\n".join(lines) + "\n"


_MAX_PARAMETERS = 64  # host_entry.hpp
_BOUNDS = re.compile(r"\s*__launch_bounds__\s*")
_FILES = re.compile(r"(?:::)?(?:penstock\s*::\s*)?files")
_ARRAY = re.compile(r"(?:::)?(?:penstock\s*::\s*)?array\s*<(.*)>$", re.DOTALL)


def find_kernel(source: str, name: str | None, names: Mapping[str, str] | None = None) -> Signature:
    """The kernel of that name, or the only one.

    Args:
        source: CUDA C++.
        name: Of the kernel.
        names: What names of types stand for, beside those that the source gives (`using`, `typedef`,
            `#define`).

    Raises:
        ValueError: There is none, or there are several and no name.
    """
    plain = plain_text(source, names or {})
    found = _kernels_in(plain, {**_aliases(plain), **(names or {})})
    there = sorted({signature.name for signature in found})
    if not found:
        there_is = "__global__" in plain
        raise ValueError(
            "penstock.kernel: the source has no __global__ function that can be read: write __global__ void "
            "name(parameters), and not by a macro"
            if there_is
            else "penstock.kernel: the source has no __global__ function: write one"
        )
    if name is not None and "<" in name:
        raise ValueError(
            f"penstock.kernel: {name}: a kernel is no template: write one that names its types, and call a "
            "__device__ template from it"
        )
    if name is None and len(there) > 1:
        raise ValueError(f"penstock.kernel: the source has the kernels {', '.join(there)}: give name=")
    named = [
        signature for signature in found if name in (None, signature.name, signature.name.rpartition("::")[2])
    ]
    if len({signature.name for signature in named}) > 1:
        several = ", ".join(sorted({signature.name for signature in named}))
        raise ValueError(f"penstock.kernel: several kernels are called {name}: give one of {several}")
    wanted = named[0] if named else None
    if wanted is None:
        raise ValueError(f"penstock.kernel: the source has no kernel {name}: it has {', '.join(there)}")
    if wanted.is_template:
        raise ValueError(
            f"penstock.kernel: {wanted.name} is a template: write a kernel that names its types, and call a "
            "__device__ template from it"
        )
    _check_declarations(wanted, found)
    return wanted


def _check_declarations(wanted: Signature, found: list[Signature]) -> None:
    """ValueError for a kernel that cannot be named or called by itself."""
    if len({tuple(_type_of(p) for p in one.parameters) for one in found if one.name == wanted.name}) > 1:
        raise ValueError(
            f"penstock.kernel: there are several kernels {wanted.name} with other parameters: give each a "
            "name of its own"
        )
    if len(wanted.parameters) > _MAX_PARAMETERS:
        raise ValueError(
            f"penstock.kernel: {wanted.name} has {len(wanted.parameters)} parameters: a kernel takes up to "
            f"{_MAX_PARAMETERS}: put some into a structure"
        )
    for position, parameter in enumerate(wanted.parameters, 1):
        if parameter.text.startswith("...") or "(" in parameter.text:
            raise ValueError(
                f"penstock.kernel: {wanted.name}: parameter {position} ({parameter.text}): a kernel takes "
                "values, arrays, files and pointers to data: declare one of them"
            )
        if parameter.text.endswith("&"):
            raise ValueError(
                f"penstock.kernel: {wanted.name}, line {wanted.line}: parameter {position} "
                f"({parameter.text} {parameter.name}): a kernel takes no references: take it by value"
            )


def _type_of(parameter: Parameter) -> tuple[object, ...]:
    """The same in a declaration and in the definition."""
    text = "" if parameter.element is not None else "".join(parameter.text.split())
    return parameter.kind, parameter.element, parameter.stores, text


def _aliases(plain: str) -> dict[str, str]:
    pairs = re.findall(r"\busing\s+(\w+)\s*=\s*([^;]+);", plain)
    pairs += [(name, of) for of, name in re.findall(r"\btypedef\s+([^;]+?)\s+(\w+)\s*;", plain)]
    pairs += re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([\w \t:*]+)$", plain, re.MULTILINE)
    return {name: of.strip() for name, of in pairs}


def _kernels_in(plain: str, names: Mapping[str, str]) -> list[Signature]:
    found = []
    macros = _macros(plain)
    for match in re.finditer(r"^[ \t]*#[^\n]*|__global__", plain, re.MULTILINE):
        if match.group() != "__global__":  # a directive
            continue
        at = match.end()
        before = plain[: match.start()].rstrip()
        while True:  # attributes and `void`, in any order
            rest = plain[at:]
            if (bounds := _BOUNDS.match(rest)) is not None:
                at = _closing(plain, at + bounds.end()) + 1
            elif (word := re.match(r"\s*(void|static|inline)\b", rest)) is not None:
                at += word.end()
            else:
                break
        named = re.match(r"\s*([A-Za-z_]\w*)\s*\(", plain[at:])
        if named is None:
            continue
        opening = at + named.end() - 1
        inside = re.sub(
            r"[A-Za-z_]\w*",
            lambda word: macros.get(word.group(), word.group()),
            plain[opening + 1 : _closing(plain, opening)],
        )
        linkage = re.search(
            r'extern\s+"C"(?:\s+(?:static|inline|void|__launch_bounds__\s*\([^)]*\)))*\s*$', before
        )
        is_template = re.search(r"template\s*<[^{};]*>\s*$", before) is not None
        is_template = is_template or re.search(r"\bauto\b", inside) is not None
        parameters = tuple(
            _parameter(text, names) for text in _split(inside) if text.strip() not in ("", "void")
        )
        full_name = namespace_at(plain, match.start()) + named.group(1)
        line = plain.count("\n", 0, match.start()) + 1
        found.append(Signature(full_name, parameters, linkage is not None, is_template, line))
    return found


def _macros(plain: str) -> dict[str, str]:
    """Those without parameters that stand for several words of a kernel's parameters."""
    found = re.findall(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+([^\n]*,[^\n]*)$", plain, re.MULTILINE)
    return {name: of.strip() for name, of in found}


def _element(text: str, names: Mapping[str, str]) -> ElementType | None:
    return element_type(_resolved(text, names))


def _resolved(text: str, names: Mapping[str, str]) -> str:
    """With what its names stand for, until they name a plain type."""
    for _ in range(8):  # names of names
        changed = re.sub(r"[A-Za-z_]\w*", lambda word: names.get(word.group(), word.group()), text)
        if element_type(text) is not None or changed == text:
            break
        text = changed
    return text


def _closing(text: str, opening: int) -> int:
    """Of the parenthesis at or behind `opening`."""
    depth = 0
    for at in range(text.index("(", opening), len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError("penstock.kernel: a parenthesis of the kernel's parameters is never closed: close it")


def _split(inside: str) -> list[str]:
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(inside):
        depth += {"<": 1, "(": 1, "[": 1, ">": -1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append(inside[begin:at])
            begin = at + 1
    return [*parts, inside[begin:]]


def _parameter(text: str, names: Mapping[str, str]) -> Parameter:
    text = re.sub(
        r"\b(__restrict__|__restrict|__grid_constant__|restrict)\b", " ", text.split("=")[0]
    ).strip()
    if (extents := re.fullmatch(r"([^\[\])]*?)(\w*)\s*\[[^\[\]]*\]\s*", text)) is not None:
        text = f"{extents.group(1).rstrip()}* {extents.group(2)}"  # as C++ takes it
    if "(" in text:  # of a function, which find_kernel refuses
        return Parameter("", " ".join(text.split()), "other", None, False)
    named = re.search(r"([A-Za-z_]\w*)\s*$", text)
    kind_text, name = text, ""
    before = text[: named.start() if named else 0].strip()
    unnamed = element_type(text) is not None or before in ("", "const") or before.endswith("::")
    if named is not None and not unnamed:
        kind_text, name = text[: named.start()].strip(), named.group(1)
    shown = " ".join(kind_text.split())
    bare = re.sub(r"^const\b|\bconst$", "", shown).strip()
    resolved = _resolved(bare, names)
    if (array := _ARRAY.match(resolved)) is not None:
        element = array.group(1).strip()
        stores = re.search(r"\bconst\b", element) is None
        return Parameter(name, shown, "array", _element(element, names), stores)
    if _FILES.fullmatch(resolved) is not None:
        return Parameter(name, shown, "files", None, False)
    pointer = next((each for each in (shown, resolved) if each.endswith(("*", "* const"))), None)
    if pointer is not None:
        pointed = pointer.removesuffix("const").strip().removesuffix("*").strip()
        stores = re.search(r"\bconst\b", pointed) is None
        return Parameter(name, shown, "pointer", _element(pointed, names), stores)
    element = _element(bare, names)
    scalar = element is not None and element.count == 1
    return Parameter(name, shown, "scalar" if scalar else "other", element, False)
