"""Compiles the probes and reads the machine code of their functions."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
MNEMONIC = re.compile(r"/\*([0-9a-f]{4,})\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*([^;]*);")
LABEL_TARGET = re.compile(r"0x([0-9a-f]+)\s*$")


def includes() -> list[str]:
    """The headers under test. A mutant's changed headers come first."""
    first = os.environ.get("PENSTOCK_MUTANT_INCLUDE")
    return [f"-I{path}" for path in ([first] if first else []) + [str(ROOT / "include")]]


def nvidia_tool(name: str) -> str | None:
    """A tool of the CUDA toolkit, or of NVIDIA's package nvidia-cuda-<name> on PyPI."""
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [p for f in folders for p in Path(f).glob(f"*/bin/{name}")]
    return str(found[0]) if found else shutil.which(name)


def missing_for_cuda() -> str:
    """Why SASS cannot be looked at here; empty if it can."""
    if shutil.which("nvcc") is None:
        return "nvcc is not installed"
    for name in ("cuobjdump", "nvdisasm"):
        if nvidia_tool(name) is None:
            return f"{name} is not installed: pip install nvidia-cuda-{name}"
    return ""


def output_of(arguments: list[str]) -> str:
    # cuobjdump starts nvdisasm by its bare name.
    nvdisasm = nvidia_tool("nvdisasm")
    folders = [str(Path(nvdisasm).parent)] if nvdisasm else []
    path = os.pathsep.join([*folders, os.environ["PATH"]])
    done = subprocess.run(
        arguments, capture_output=True, text=True, env={**os.environ, "PATH": path}, check=False
    )
    assert done.returncode == 0, f"{' '.join(arguments)}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout + done.stderr


def nvcc(target: Path, arch: str, *flags: str, source: Path = HERE / "hit_path.cu") -> str:
    """Compiles a source; what the compiler says."""
    fixed = ["-std=c++20", "--expt-relaxed-constexpr", "-O3", f"-arch={arch}"]
    return output_of(["nvcc", *fixed, *flags, *includes(), "-o", str(target), str(source)])


def nvlink(target: Path, arch: str, *parts: Path) -> str:
    """Links cubins as a program does; what the linker says."""
    compiler = shutil.which("nvcc")
    assert compiler
    beside = Path(compiler).resolve().parent / "nvlink"
    tool = str(beside) if beside.exists() else nvidia_tool("nvlink")
    assert tool, "nvlink is not installed beside nvcc"
    return output_of([tool, f"-arch={arch}", "-o", str(target), *map(str, parts)])


@dataclass(frozen=True)
class Resources:
    registers: int
    stack_bytes: int


def resources_of(cubin: Path) -> dict[str, Resources]:
    """What each function takes; of a linked cubin a kernel with all that it calls."""
    tool = nvidia_tool("cuobjdump")
    assert tool
    said = output_of([tool, "--dump-resource-usage", str(cubin)])
    found = re.findall(r"Function (\S+):\s+REG:(\d+) STACK:(\d+)", said)
    return {name: Resources(int(registers), int(stack)) for name, registers, stack in found}


@dataclass(frozen=True)
class Instruction:
    address: int
    predicate: str
    mnemonic: str
    operands: str

    @property
    def kind(self) -> str:
        """What it does to shared memory, or where it goes on. Empty: nothing of interest."""
        parts = self.mnemonic.split(".")
        if parts[0] in ("LD", "LDG"):
            if "CONSTANT" in parts:
                return "constant load"
            return "strong load" if "STRONG" in parts and {"GPU", "SYS"} & set(parts) else "plain load"
        if parts[0] in ("ATOM", "ATOMG", "RED", "REDG"):
            return "rmw"
        if parts[0] == "MEMBAR" and {"GPU", "SYS"} & set(parts):
            return "fence"
        # What makes an acquire of the load before it, and stands at the end of a fence.
        if parts[0] == "CCTL" and "IVALL" in parts:
            return "invalidate"
        return "call" if parts[0] in ("CALL", "JCAL") and not self.is_jump else ""

    @property
    def is_jump(self) -> bool:
        """Whether it goes on inside the function: sm_80 leaves some loops by CALL.REL.NOINC."""
        return self.mnemonic == "BRA" or self.mnemonic.startswith(("BRA.", "CALL.REL.NOINC"))

    @property
    def target(self) -> int:
        found = LABEL_TARGET.search(self.operands)
        assert found, f"{self.mnemonic} {self.operands}: no target"
        return int(found.group(1), 16)


class Function:
    """One function of a cubin: its instructions, and the ways through them."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.instructions = [
            Instruction(int(address, 16), predicate, mnemonic, operands)
            for address, predicate, mnemonic, operands in MNEMONIC.findall(text)
        ]
        assert self.instructions, f"{name}: no instructions"
        self._position = {i.address: n for n, i in enumerate(self.instructions)}

    def meets_before_it_calls(self) -> bool:
        """Whether the group of the last call is made of all lanes that came here, whatever each has met with.

        The lanes' mask (a vote of all that are active) is taken behind a meeting (BSYNC), with no branch
        between, and the next vote follows with none but for lanes that have parted all the same.
        """
        code = self.instructions
        calls = [k for k, each in enumerate(code) if each.kind == "call"]
        is_mask = [each.mnemonic == "VOTE.ANY" and each.operands.rstrip().endswith("PT, PT") for each in code]
        masks = [k for k in range(calls[-1]) if is_mask[k]] if calls else []
        if not masks:
            return False
        before = next((k for k in range(masks[-1], -1, -1) if code[k].mnemonic == "BSYNC"), None)
        vote = next(
            (k for k in range(masks[-1] + 1, calls[-1]) if code[k].mnemonic.startswith("VOTE")), calls[-1]
        )
        if before is None or vote == calls[-1]:
            return False
        between = [each for each in code[before:vote] if each.is_jump and each.mnemonic != "BRA.DIV"]
        return not between

    def count(self, kind: str) -> int:
        return sum(i.kind == kind for i in self.instructions)

    def _next(self, position: int) -> list[int]:
        here = self.instructions[position]
        name = here.mnemonic.split(".")[0]
        assert name not in ("BRX", "JMX", "JMP"), f"{self.name}: {here.mnemonic}: a jump to where?"
        after = [position + 1] if position + 1 < len(self.instructions) else []
        if name in ("EXIT", "RET"):
            return after if here.predicate else []
        if here.is_jump:
            # A branch on a uniform predicate or a condition in its operands may fall through, too.
            conditional = here.predicate or "," in here.operands
            return [self._position[here.target], *(after if conditional else [])]
        if name == "BSYNC":
            barrier = here.operands.split()[0]
            meets = [
                i.target
                for i in self.instructions
                if i.mnemonic.startswith("BSSY") and re.split(r"[\s,]", i.operands)[0] == barrier
            ]
            return [self._position[m] for m in meets]
        return after

    def has_path(self, pattern: list[str]) -> bool:
        """Whether some way from start to end does exactly `pattern` to shared memory.

        Plain loads may stand before the first element of the pattern (indices, fields of objects) or after
        the last; read-modify-writes, calls and constant loads nowhere. Fences that follow each other are one.
        """
        todo = [(0, 0)]
        seen = set(todo)
        while todo:
            position, matched = todo.pop()
            here = self.instructions[position]
            kind = here.kind
            if kind in ("rmw", "call", "constant load"):
                continue
            if kind == "plain load" and 0 < matched < len(pattern):
                continue
            if kind in ("strong load", "fence", "invalidate"):
                repeated = kind != "strong load" and matched > 0 and pattern[matched - 1] == kind
                if not repeated:
                    if matched == len(pattern) or pattern[matched] != kind:
                        continue
                    matched += 1
            ends = here.mnemonic.split(".")[0] in ("EXIT", "RET")
            if ends and matched == len(pattern):
                return True
            for following in self._next(position):
                if (following, matched) not in seen:
                    seen.add((following, matched))
                    todo.append((following, matched))
        return False

    def reaches(self, begin: str, end: str, without: str) -> bool:
        """Whether a way leads from a `begin` to a read-modify-write that does `end`, without a `without`.

        `begin` and `without` are kinds of instructions, `end` is what a mnemonic has: MAX, ...
        """
        ends = [i.kind == "rmw" and end in i.mnemonic.split(".") for i in self.instructions]
        found = [n for n, is_end in enumerate(ends) if is_end]
        assert found, f"{self.name}: no {end}"
        todo = [n for n, i in enumerate(self.instructions) if i.kind == begin and n not in found]
        assert todo, f"{self.name}: no {begin}"
        seen = set(todo)
        while todo:
            for following in self._next(todo.pop()):
                if following in found:
                    return True
                if following not in seen and self.instructions[following].kind != without:
                    seen.add(following)
                    todo.append(following)
        return False


def functions_of(cubin: Path) -> dict[str, Function]:
    tool = nvidia_tool("cuobjdump")
    assert tool
    parts = re.split(r"Function : (\S+)", output_of([tool, "-sass", str(cubin)]))
    return {name: Function(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}
