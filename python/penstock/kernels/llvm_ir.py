"""The reads of arrays as LLVM IR, for compilers that link nothing else, such as Triton's.

What they link is a module of LLVM; the functions in it hold inline assembly that calls the library's PTX,
which is the module's file-scope assembly.
"""

from __future__ import annotations

import re

# (name, type in LLVM IR, the register's constraint, the parameter's type in PTX)
_LOADS = [
    *((f"{sign}{bits}", f"i{bits}", "r", "b32") for sign in "iu" for bits in (8, 16, 32)),
    ("i64", "i64", "l", "b64"),
    ("u64", "i64", "l", "b64"),
    ("f32", "float", "f", "b32"),
    ("f64", "double", "d", "b64"),
]
_OWN = "penstock_ptx_load_"  # of the functions in PTX: those of LLVM have their names


def as_llvm_ir(ptx: str) -> str:
    """A module with `penstock_load_f32(i64 array, i64 index)` and its like, of a library in PTX."""
    lines = ['target triple = "nvptx64-nvidia-cuda"', ""]
    body = ptx[re.search(r"^\.address_size.*$", ptx, re.MULTILINE).end() :]  # type: ignore[union-attr]
    for line in body.replace("penstock_load_", _OWN).splitlines():
        if code := line.partition("//")[0].rstrip():
            lines.append(f'module asm "{_escaped(code)}"')
    lines += [
        "",
        *(_function(*load) for load in _LOADS),
        "attributes #0 = { alwaysinline convergent nounwind }",
    ]
    return "\n".join(lines) + "\n"


def _escaped(code: str) -> str:
    return re.sub(r'[\\"\t]', lambda letter: f"\\{ord(letter.group()):02X}", code)


def _function(name: str, of: str, register: str, parameter: str) -> str:
    call = (
        "{ .param .b64 array; .param .b64 index; .param ." + parameter + " element; "
        "st.param.b64 [array], $1; st.param.b64 [index], $2; "
        f"call.uni (element), {_OWN}{name}, (array, index); ld.param.{parameter} $0, [element]; }}"
    )
    narrow = of in ("i8", "i16")
    read = "i32" if narrow else of
    result = (
        f"  %element = trunc i32 %read to {of}\n  ret {of} %element\n" if narrow else f"  ret {of} %read\n"
    )
    return (
        f"define {of} @penstock_load_{name}(i64 %array, i64 %index) #0 {{\n"
        f'  %read = call {read} asm sideeffect "{call}", "={register},l,l"(i64 %array, i64 %index)\n'
        f"{result}}}\n"
    )
