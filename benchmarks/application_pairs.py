"""What a program changes to move to Penstock: lines, and registers of its kernels.

    python benchmarks/application_pairs.py --results pairs.jsonl --programs build-examples
    python benchmarks/application_pairs.py --results pairs.jsonl --arch sm_90

Pairs of examples/plain, which copy all data to memory, and examples, which leave them in files.
pairs.lines.NAME     lines of the program on Penstock that the plain one has not; blank lines and comments are
                     left out. Both programs of --programs are run first: they have to print the same.
pairs.registers.NAME registers of a thread of its kernel, linked with the library, beside the plain
                     program's; needs nvcc and cuobjdump, but no GPU.
"""

from __future__ import annotations

import argparse
import datetime
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
KERNELS = {"sum": "sum_sample", "row_sums": "sum_rows", "search": "search_level"}
LIBRARY = ("block_io", "read_slowly", "write_back")


def write(results: str, line: dict[str, Any]) -> None:
    line |= {
        "params": {},
        "repeats": 1,
        "spread": None,
        "machine": {"name": os.environ.get("PENSTOCK_MACHINE", "unnamed")},
        "commit": os.environ.get("PENSTOCK_COMMIT", "unknown"),
        "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }
    with Path(results).open("a", encoding="utf-8") as out:
        out.write(json.dumps(line) + "\n")
    print(f"{line['id']}: {line['value']} {line['unit']}, {line['details']}", flush=True)


def code_of(path: Path) -> list[str]:
    """Without blank lines and comments, which have lines of their own or end one."""
    lines = (re.sub(r"\s*//.*", "", text).strip() for text in path.read_text().splitlines())
    return [line for line in lines if line]


def changed_lines(name: str) -> dict[str, Any]:
    plain, ours = code_of(ROOT / f"examples/plain/{name}.cpp"), code_of(ROOT / f"examples/{name}.cpp")
    changes = difflib.SequenceMatcher(None, plain, ours, autojunk=False).get_opcodes()
    gone = sum(b - a for kind, a, b, _, _ in changes if kind != "equal")
    come = sum(d - c for kind, _, _, c, d in changes if kind != "equal")
    details = {"lines": len(ours), "lines_removed": gone, "plain_lines": len(plain)}
    return {"id": f"pairs.lines.{name}", "value": come, "unit": "lines", "details": details}


def outputs(programs: Path, name: str, words: list[str]) -> list[str]:
    ran = (
        subprocess.run([programs / each, *words], capture_output=True, text=True, check=True, timeout=120)
        for each in (name, f"plain_{name}")
    )
    return [each.stdout for each in ran]


def write_lines(results: str, programs: Path) -> None:
    random = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        np.save(data / "values.npy", random.integers(-8, 8, 70_000).astype(float))
        np.save(data / "matrix.npy", random.integers(-8, 8, (300, 1001)).astype(np.float32))
        sources = np.sort(random.integers(0, 2000, 9000))
        np.save(data / "offsets.npy", np.searchsorted(sources, np.arange(2001)).astype(np.int64))
        np.save(data / "edges.npy", random.integers(0, 2000, 9000).astype(np.int32))
        arguments = {
            "sum": [str(data / "values.npy")],
            "row_sums": [str(data / "matrix.npy"), "1001"],
            "search": [str(data), "7"],
        }
        for name in KERNELS:
            ours, plain = outputs(programs, name, arguments[name])
            if ours != plain or not ours:
                raise SystemExit(f"pairs.lines.{name}: the two programs print different things")
            none = {"baseline": "", "baseline_value": None, "ratio": None}
            write(results, changed_lines(name) | none | {"verified": True})


def write_registers(results: str, arch: str) -> None:
    sys.path.insert(0, str(ROOT / "tests/codegen"))
    from machine_code import missing_for_cuda, nvcc, nvlink, output_of, resources_of

    if missing := missing_for_cuda():
        raise SystemExit(f"pairs.registers: {missing}")
    text = (ROOT / "cmake/penstock_cuda.cmake").read_text()
    cap = re.search(r"set\(PENSTOCK_COLD_REGISTERS (\d+) CACHE", text)
    assert cap
    with tempfile.TemporaryDirectory() as folder:
        parts = []
        for each in LIBRARY:
            parts.append(Path(folder) / f"{each}.cubin")
            flags = ("-rdc=true", "-cubin", f"-maxrregcount={cap.group(1)}")
            nvcc(parts[-1], arch, *flags, source=ROOT / f"src/device/{each}.cu")
        for name, kernel in KERNELS.items():
            registers, stack = [], []
            for source in (ROOT / f"examples/{name}.cpp", ROOT / f"examples/plain/{name}.cpp"):
                compiled, linked = Path(folder) / "kernel.cubin", Path(folder) / "linked.cubin"
                more = (f"-I{ROOT / 'examples'}", "-x=cu", "-rdc=true", "-cubin")
                nvcc(compiled, arch, *more, source=source)
                nvlink(linked, arch, compiled, *parts)
                found = [each for each in resources_of(linked).items() if kernel in each[0]]
                registers.append(max(each.registers for _, each in found))
                stack.append(max(each.stack_bytes for _, each in found))
            line = {
                "id": f"pairs.registers.{name}",
                "value": registers[0],
                "unit": "registers",
                "baseline": "all data in memory",
                "baseline_value": registers[1],
                "ratio": registers[0] / registers[1],
                # Read from the machine code that is linked, and no estimate.
                "verified": True,
                "details": {
                    "arch": arch,
                    "more_registers": registers[0] - registers[1],
                    "stack_bytes": stack[0],
                    "plain_stack_bytes": stack[1],
                    "compiler": output_of([shutil.which("nvcc") or "nvcc", "--version"]).split("\n")[-3],
                },
            }
            write(results, line)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", required=True)
    parser.add_argument("--programs", type=Path, help="where the examples were built")
    parser.add_argument("--arch", help="sm_90: compile the kernels for it")
    options = parser.parse_args()
    if not options.programs and not options.arch:
        parser.error("give --programs, --arch, or both")
    if options.programs:
        write_lines(options.results, options.programs)
    if options.arch:
        write_registers(options.results, options.arch)


if __name__ == "__main__":
    main()
