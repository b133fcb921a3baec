"""The structure check finds one planted violation of each kind, and nothing where nothing is wrong."""

from __future__ import annotations

from pathlib import Path

import check_structure
import cpp_text
import pytest

RULES = check_structure.read_rules(check_structure.ROOT / "scripts/layers.toml")
HEADER = "include/penstock/"


def plant(root: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return [str(p) for p in check_structure.check_tree(root, RULES)]


def long_function(lines: int) -> str:
    return "namespace a {\nint f(int x) {\n" + "  x += 1;\n" * (lines - 3) + "  return x;\n}\n}\n"


CORE = {HEADER + "core/units.hpp": "#pragma once\n"}


@pytest.mark.parametrize(
    ("files", "where", "part"),
    [
        (
            {HEADER + "core/a.hpp": '#include "penstock/queue/b.hpp"\n', HEADER + "queue/b.hpp": ""},
            "core/a.hpp:1",
            "higher",
        ),
        (
            {HEADER + "cache/a.hpp": '#include "penstock/host/b.hpp"\n', HEADER + "host/b.hpp": ""},
            "cache/a.hpp:1",
            "higher",
        ),
        ({HEADER + "core/a.hpp": '#include "src/b.hpp"\n', "src/b.hpp": ""}, "core/a.hpp:1", "not public"),
        (
            {HEADER + "odd/a.hpp": '#include "penstock/core/units.hpp"\n', **CORE},
            "odd/a.hpp:1",
            "in no layer",
        ),
        ({"libs/a.cpp": '#include "src/b.hpp"\n', "src/b.hpp": ""}, "libs/a.cpp:1", "may include only"),
        ({"src/a.cpp": '#include "libs/b.hpp"\n', "libs/b.hpp": ""}, "src/a.cpp:1", "may include only"),
        (
            {"src/host/a.cpp": '#include "../pcie/b.hpp"\n', "src/pcie/b.hpp": ""},
            "src/host/a.cpp:1",
            "higher",
        ),
        (
            {"libs/graph/a.hpp": '#include "libs/drive/b.hpp"\n', "libs/drive/b.hpp": ""},
            "libs/graph/a.hpp:1",
            "two folders",
        ),
        (
            {
                "python/penstock/sizes.py": "def f():\n    from penstock import cli\n",
                "python/penstock/cli/__init__.py": "",
            },
            "sizes.py:2",
            "no lower layer",
        ),
        (
            {"python/penstock/odd.py": "from . import sizes\n", "python/penstock/sizes.py": ""},
            "odd.py:1",
            "penstock.odd is in no layer",
        ),
        (
            {
                "python/penstock/nn/a.py": "from penstock.nn import b\n",
                "python/penstock/nn/b.py": "def f():\n    import penstock.nn.a\n",
            },
            ".py:1",
            "a circle of imports",
        ),
        (
            {"src/host/a.cpp": '#include "penstock/rows/b.hpp"\n', HEADER + "rows/b.hpp": ""},
            "src/host/a.cpp:1",
            "higher",
        ),
        ({"src/a.cpp": "#include <penstock/core/units.hpp>\n", **CORE}, "src/a.cpp:1", "with quotes"),
        ({"src/a.cpp": '#include "gone.hpp"\n'}, "src/a.cpp:1", 'no "gone.hpp"'),
        ({HEADER + "queue/a.hpp": "\n#if defined(__CUDACC__)\n#endif\n"}, "queue/a.hpp:2", "target switch"),
        ({"src/a.cpp": "#if PENSTOCK_ON_DEVICE\n#endif\n"}, "src/a.cpp:1", "target switch"),
        ({HEADER + "queue/a.hpp": "struct s {\n  volatile int x;\n};\n"}, "queue/a.hpp:2", "volatile"),
        ({"tests/a.cpp": "int f() { return __activemask(); }\n"}, "tests/a.cpp:1", "__activemask"),
        ({"src/a.cpp": "//\n" * 801}, "src/a.cpp:801", "801 lines"),
        ({"src/a.cpp": long_function(81)}, "src/a.cpp:2", "f has 81 lines"),
        ({"python/a.py": "def f():\n" + "    x = 1\n" * 80}, "python/a.py:1", "f has 81 lines"),
        ({"src/a.cpp": "int a;\t\n"}, "src/a.cpp:1", "a tab"),
        ({"src/a.cpp": "/" * 129 + "\n"}, "src/a.cpp:1", "129 columns"),
        ({"src/a.cpp": "// TO" + "DO: later\n"}, "src/a.cpp:1", "no issue is named"),
        ({"scripts/a": "# FIX" + "ME\n"}, "scripts/a:1", "no issue is named"),
    ],
)
def test_a_planted_violation_is_found(tmp_path: Path, files: dict[str, str], where: str, part: str) -> None:
    problems = plant(tmp_path, files)
    assert len(problems) == 1, problems
    assert where in problems[0]
    assert part in problems[0]


@pytest.mark.parametrize(
    "files",
    [
        {HEADER + "queue/a.hpp": '#include "penstock/core/units.hpp"\n', **CORE},
        {
            "src/host/a.cpp": '#include "b.hpp"\n#include "penstock/core/units.hpp"\n',
            "src/host/b.hpp": "",
            **CORE,
        },
        {"tests/a.cpp": '#include "support/b.hpp"\n#include <vector>\n', "tests/support/b.hpp": ""},
        {"python/bindings/a.cpp": '#include "libs/b.hpp"\n', "libs/b.hpp": ""},
        {HEADER + "core/a.hpp": "#if defined(__CUDA_ARCH__)\n#endif\n"},
        {HEADER + "group/warp.hpp": "int f() { return __activemask(); }\n"},
        {HEADER + "queue/a.hpp": "// no volatile, and no __CUDACC__ here\n/* __activemask */\n"},
        {HEADER + "core/a.hpp": 'void f() { asm volatile("nop"); }\n'},
        {
            "python/penstock/nn/a.py": "from penstock.nn import b\n",
            "python/penstock/nn/b.py": "if TYPE_CHECKING:\n    from penstock.nn.a import c\n",
        },
        {"src/a.cpp": long_function(80)},
        {"src/a.cpp": "// TO" + "DO(#12): later\n"},
        {"src/a.cpp": 'char const* text = "volatile";\n'},
    ],
)
def test_nothing_is_found_where_nothing_is_wrong(tmp_path: Path, files: dict[str, str]) -> None:
    assert plant(tmp_path, files) == []


def names_and_lengths(code: str) -> list[tuple[str, int]]:
    return [
        (name, last - first + 1) for name, first, last in cpp_text.functions(cpp_text.without_comments(code))
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("int f() { return 1; }", [("f", 1)]),
        ("template <class T>\n  requires std::is_enum_v<T>\nint f(T t) {\n  return 1;\n}", [("f", 5)]),
        ("struct s {\n  s() : a_(1), b_{2} {\n  }\n  int a_ = 0;\n  int b_{0};\n};", [("s", 2)]),
        ("struct s {\n  s(int a)\n      : a_(a) {}\n  int a_;\n};", [("s", 2)]),
        ("int const table[] = {\n  1,\n  f(2),\n};\nint g() { return 0; }", [("g", 1)]),
        ("template <class G>\nconcept group = requires(G g) {\n  { g.rank() };\n};", []),
        ("enum class e : int { a, b };\nnamespace n { void f() {} }", [("f", 1)]),
        ("auto f(int x) -> int {\n  if (x) {\n    g([] { return 1; });\n  }\n  return 0;\n}", [("f", 6)]),
        ("#if A\nint f(int x) {\n#else\nint f() {\n#endif\n  return 1;\n}", [("f", 6)]),
        ("char const* s = \"{\";\nint f() { return '}'; }", [("f", 1)]),
        ("bool operator==(a x, a y) { return true; }\na::~a() {\n}", [("operator==", 1), ("a::~a", 2)]),
        ("int big = 1'000'000;\nint f() { return 1'0; }", [("f", 1)]),
    ],
)
def test_functions_of_cpp(code: str, expected: list[tuple[str, int]]) -> None:
    assert names_and_lengths(code) == expected


def test_headers_that_do_not_stand_alone_are_found(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {HEADER + "core/a.hpp": "#pragma once\nstd::string s();\n", HEADER + "core/b.hpp": "#pragma once\n"},
    )
    rules = {
        **RULES,
        "headers": {**RULES["headers"], "not_nvcc": [HEADER + "core/a.hpp", HEADER + "core/b.hpp"]},
    }
    problems = check_structure.check_headers(tmp_path, rules, 1)
    assert [p.path for p in problems] == [HEADER + "core/a.hpp"]
    assert "g++" in problems[0].message


def test_a_header_that_changed_is_compiled_again(tmp_path: Path) -> None:
    rules = {
        **RULES,
        "headers": {**RULES["headers"], "not_nvcc": [HEADER + "core/a.hpp", HEADER + "core/b.hpp"]},
    }
    files = {
        HEADER + "core/a.hpp": '#pragma once\n#include "penstock/core/b.hpp"\n',
        HEADER + "core/b.hpp": "#pragma once\n",
    }
    plant(tmp_path, files)
    assert check_structure.check_headers(tmp_path, rules, 1) == []
    plant(tmp_path, {HEADER + "core/b.hpp": "#pragma once\nwrong\n"})
    assert len(check_structure.check_headers(tmp_path, rules, 1)) == 2
