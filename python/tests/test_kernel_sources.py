"""What the reader of signatures takes, and the words of CUDA that the CPU's compiler has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import penstock
import pytest
from penstock.kernels.signature import find_kernel

pytest.importorskip("penstock._native", reason="needs the compiled part", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("kernel_cache")


def output(content: Any, device: str) -> tuple[Callable[[], Any], Any]:
    """What a kernel's pointer takes, and what is there when it has run."""
    if device == "cpu":
        memory = np.array(content)
        return lambda: memory, memory
    torch = pytest.importorskip("torch", reason="torch is not installed")
    tensor = torch.as_tensor(content, device=device)
    return lambda: tensor.cpu().numpy(), tensor


SPACES = """
namespace outer::inner {
struct pair { int a, b; };
extern "C" __global__ void f(int* out) { out[0] = 1; }
__global__ void g(int out[3], pair p) { out[1] = p.a + p.b; }
}
namespace other { __global__ void g(int* out) { out[2] = 5; } }
"""
BRANCHES = """
#if 0
__global__ void f(double* out, double x) { *out = x; }
#elif defined(WIDE) // the first that holds
#define TYPE long long
__global__ void f(TYPE* out, TYPE x) { *out = x; }
#else
__global__ void f(int* out, int x) { *out = x + 1; }
#endif
"""


def test_a_kernel_in_a_namespace_is_found_by_its_name(device: str) -> None:
    memory, out = output(np.zeros(3, np.int32), device)
    penstock.kernel(SPACES, "f", device=device)(out, threads=1).wait()
    penstock.kernel(SPACES, "outer::inner::g", device=device)(
        out, np.array([2, 3], np.int32), threads=1
    ).wait()
    penstock.kernel(SPACES, "other::g", device=device)(out, threads=1).wait()
    assert memory().tolist() == [1, 5, 5]


def test_of_several_kernels_of_a_name_one_is_asked_for() -> None:
    with pytest.raises(
        ValueError, match="several kernels are called g: give one of other::g, outer::inner::g"
    ):
        find_kernel(SPACES, "g")
    with pytest.raises(
        ValueError, match="has no kernel h: it has other::g, outer::inner::f, outer::inner::g"
    ):
        find_kernel(SPACES, "h")


def test_the_branch_that_is_compiled_has_the_signature(device: str) -> None:
    runs: list[tuple[dict[str, Any], Any, int]] = [({}, np.int32, 8), ({"WIDE": 1}, np.int64, 7)]
    for defines, dtype, wanted in runs:
        memory, out = output(np.zeros(1, dtype), device)
        penstock.kernel(BRANCHES, device=device, defines=defines)(out, 7, threads=1).wait()
        assert memory().tolist() == [wanted]


@pytest.mark.parametrize(
    ("condition", "taken"),
    [
        ("#if 1", "yes"),
        ("#ifdef SET", "yes"),
        ("#ifndef SET", "no"),
        ("#if !defined(UNSET)", "yes"),
        ("#if SET", "yes"),
        ("#if UNSET", "no"),
        ("#if __cplusplus > 1", "both"),
        ("#ifdef __CUDACC__", "both"),
    ],
)
def test_conditions_that_are_known_decide(condition: str, taken: str) -> None:
    source = f"""
{condition}
__global__ void yes() {{}}
#else
__global__ void no() {{}}
#endif
"""
    found = {name for name in ("yes", "no") if _has(source, name)}
    assert found == ({"yes", "no"} if taken == "both" else {taken})


def _has(source: str, name: str) -> bool:
    try:
        return find_kernel(source, name, {"SET": "2"}).name == name
    except ValueError:
        return False


@pytest.mark.parametrize("letter", ["'\"'", "'{'", "'}'", "'('", r"'\''", "L'\"'", "1'000"])
def test_letters_of_a_source_are_no_words_of_it(letter: str) -> None:
    of = f"__device__ int letter() {{ return {letter}; }}"
    assert find_kernel(f"namespace n {{ {of} __global__ void f(int x) {{}} {of} }}", None).name == "n::f"


def test_parameters_with_extents_are_pointers() -> None:
    found = find_kernel("__global__ void f(float x[3], const int y[]) {}", None)
    assert [(p.name, p.kind, p.text, p.stores) for p in found.parameters] == [
        ("x", "pointer", "float*", True),
        ("y", "pointer", "const int*", False),
    ]
    with pytest.raises(ValueError, match=r"f: parameter 1 \(double \(&z\)\[2\]\): a kernel takes values"):
        find_kernel("__global__ void f(double (&z)[2]) {}", None)


WORDS = """
__global__ void words(long long* out, double* real, int x, unsigned y) {
  const float3 a = make_float3(1, 2, 3);
  const int3 b = make_int3(x, -x, 7);
  const double3 c{0.5, 1.5, 2.5};
  const longlong2 d = make_longlong2(1ll << 40, 3);
  real[0] = a.x + a.y * a.z + c.x + c.y + c.z;
  real[1] = __saturatef(1.5f) + __fdividef(3.0f, 2.0f) + __fmaf_rn(2.0f, 3.0f, 4.0f);
  real[2] = __expf(1.0f);
  real[3] = min(2, 3) + max(1u, 3u) + max(2.5f, 1.0);
  out[0] = b.x + b.y + b.z + d.x + d.y;
  out[1] = __popc(y) + 100 * __ffs(x) + 10000 * __clz(x);
  out[2] = __brev(y);
  out[3] = (long long)(__brevll(y) >> 1);
  out[4] = __umulhi(y, y) + (long long)__mulhi(x, x);
  out[5] = (long long)__umul64hi(1ull << 63, 6);
  out[6] = __mul64hi(-(1ll << 62), 8);
  out[7] = (__activemask() >> (threadIdx.x % 32)) & 1;
  out[8] = __byte_perm(0x33221100u, 0x77665544u, 0x5140u);
  out[9] = min(-1ll, 2ll) + (long long)max(3ull, 2ull);
}
"""


def test_words_of_cuda_mean_the_same_everywhere(device: str) -> None:
    whole, out = output(np.zeros(10, np.int64), device)
    real, values = output(np.zeros(4), device)
    x, y = 40, 0xF0000013
    penstock.kernel(WORDS, device=device)(out, values, x, y, threads=1).wait()
    reversed_bits = int(f"{y:032b}"[::-1], 2)
    assert whole().tolist() == [
        7 + (1 << 40) + 3,
        y.bit_count() + 100 * 4 + 10000 * 26,
        reversed_bits,
        (reversed_bits << 32) >> 1,
        (y * y >> 32) + (x * x >> 32),
        3,
        -2,
        1,
        0x55114400,
        2,
    ]
    assert np.allclose(real(), [11.5, 1 + 1.5 + 10, np.e, 2 + 3 + 2.5], rtol=1e-5)


VOTES = """
__global__ void votes(int* out, float x) {
  const int t = threadIdx.x;
  int* const mine = out + 12 * t;
  int all = 7;
  mine[0] = __syncthreads_count(t % 3 == 0);
  mine[1] = __syncthreads_or(t == 70) != 0;
  mine[2] = __syncthreads_or(t == 1000) != 0;
  mine[3] = __syncthreads_and(t < 96) != 0;
  mine[4] = __syncthreads_and(t != 5) != 0;
  mine[5] = __match_any_sync(0xffffffffu, t % 4);
  mine[6] = __match_any_sync(0xffffffffu, t < 40 ? 1.5 : -1.5);
  mine[7] = __match_all_sync(0xffffffffu, t / 32, &all);
  mine[8] = all != 0;
  mine[9] = __match_all_sync(0xffffffffu, t / 16, &all) + (all != 0);
  mine[10] = isnan(x * 0) + 2 * isinf(x) + 4 * isfinite(1.0) + 8 * (signbit(-0.0) != 0);
  if (t >= 64) return;
  mine[11] = __syncthreads_count(1);
}
__global__ void wraps(unsigned* n) {
  atomicInc(n, 3);
  atomicDec(n + 1, 3);
}
"""


def test_votes_and_matches_mean_the_same_everywhere(device: str) -> None:
    memory, out = output(np.zeros((96, 12), np.int32), device)
    penstock.kernel(VOTES, "votes", device=device)(out, np.inf, block=96, grid=1).wait()
    found = memory().T.astype(np.uint32)
    t = np.arange(96)
    every_fourth = np.uint32(0x11111111) << (t % 4).astype(np.uint32)
    halves = np.where(t < 32, 0xFFFFFFFF, np.where(t < 40, 0xFF, np.where(t < 64, 0xFFFFFF00, 0xFFFFFFFF)))
    for column, wanted in zip(found[:5], (32, 1, 0, 1, 0), strict=True):
        assert (column == wanted).all()
    assert np.array_equal(found[5], every_fourth)
    assert np.array_equal(found[6], halves)
    assert (found[7:11] == np.array([[0xFFFFFFFF], [1], [0], [15]])).all()
    assert np.array_equal(found[11], np.where(t < 64, 64, 0))


def test_atomics_wrap_where_they_are_told(device: str) -> None:
    memory, counts = output(np.zeros(2, np.uint32), device)
    penstock.kernel(VOTES, "wraps", device=device)(counts, threads=6, block=2).wait()
    assert memory().tolist() == [6 % 4, -6 % 4]


def test_votes_of_a_launch_that_was_given_up_are_gone() -> None:
    stuck = "if (threadIdx.x == 31) __syncthreads(); else __ballot_sync(0xffffffffu, 1);"
    with pytest.raises(ValueError, match="waits for threads that wait elsewhere"):
        penstock.kernel(f"__global__ void f() {{ {stuck} }}", device="cpu")(block=32, grid=1)
    count = np.zeros(1, np.int32)
    alone = "if (threadIdx.x == 0) *n = __ballot_sync(0xffffffffu, 0);"
    penstock.kernel(f"__global__ void f(int* n) {{ {alone} }}", device="cpu")(count, block=32, grid=1)
    assert count[0] == 0


def test_vectors_of_three_are_parameters(device: str) -> None:
    memory, out = output(np.zeros(1), device)
    kernel = penstock.kernel(
        "__global__ void f(double* out, float3 v) { *out = v.x + 10 * v.y + 100 * v.z; }", device=device
    )
    given: Any = np.array([1, 2, 3], np.float32)
    kernel(out, given, threads=1).wait()
    assert memory().tolist() == [321]


PEOPLE = """
struct __align__(16) pair { int first, second; };
__device__ int block_sum(int v) {
  static __shared__ int parts[32];
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = 0;
  __syncthreads();
  atomicAdd_block(&parts[threadIdx.x / 32], v);
  __syncthreads();
  v = 0;
  for (unsigned k = 0; k < blockDim.x / 32; ++k) v += parts[k];
  return v;
}
__global__ void sums(volatile int* out, const volatile unsigned* in, pair add) {
  __shared__ int twice;
  if (in == nullptr) __trap();
  assert(sizeof(pair) == 16);
  const int sum = block_sum(__ldcg((const unsigned*)in + threadIdx.x));
  if (threadIdx.x == 0) twice = 2 * sum;
  __syncthreads();
  __threadfence_system();
  out[threadIdx.x] = twice + add.first + __funnelshift_l(1u << 31, 4, 1) + __funnelshift_r(8, 1, 3 + 32);
}
"""


def test_what_people_write_in_cuda_means_the_same_everywhere(device: str) -> None:
    memory, out = output(np.zeros(64, np.int32), device)
    _, given = output(np.arange(64, dtype=np.uint32), device)
    kernel = penstock.kernel(PEOPLE, device=device)
    kernel(out, given, np.array([5, 0, 0, 0], np.int32).tobytes(), threads=64, block=64).wait()
    assert memory().tolist() == [2 * 2016 + 5 + 9 + (1 << 29) + 1] * 64


@pytest.mark.parametrize(
    "source",
    [
        "#define PARAMS int* n, int k\n__global__ void f(PARAMS) { *n = k; }",
        "#define K \\\n 7\n__global__ void \\\nf(int* n, int k) { *n = K; }",
        '__device__ const char t[] = R"x(__global__ void "no"(int q) { )x";\n'
        "__global__ void f(int* n, int k) { *n = k + 0 * t[0]; }",
        "__global__ void f(int *n, int);\r\n__global__ void f(int* n, int k) { *n = k; }",
        "// größer ≥ 日本語\n__global__ void f(int* zähler, int k) { *zähler = k; }",
        "#include <memory>\n#include <regex>\n"
        "__noinline__ __device__ int same(int k) { return *std::make_unique<int>(k); }\n"
        "__global__ void f(int* n, int k) { *n = same(k); }",
        "struct files { int k; };\n__global__ void f(int* n, int k) { files x{k}; *n = x.k; }",
    ],
)
def test_sources_as_people_write_them_compile(source: str) -> None:
    number = np.zeros(1, np.int32)
    penstock.kernel(source, device="cpu")(number, 7, threads=1)
    assert number[0] == 7


def test_another_name_of_an_array_is_an_array(device: str) -> None:
    memory, out = output(np.zeros(1, np.int32), device)
    array = penstock.from_tensor(np.array([3, 5], np.int32), "host", device=device)
    penstock.kernel(
        "using A = penstock::array<const int>; __global__ void f(A a, int* n) { *n = a[1]; }", device=device
    )(array, out, threads=1).wait()
    assert memory().tolist() == [5]


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (
            "#define KERNEL(x) __global__ void x(int* n)\nKERNEL(f) {}",
            r"write __global__ void name\(parameters\), and not by",
        ),
        ("__global__ int f(int* n) { return 1; }", "has no __global__ function that can be read"),
        (
            "__global__ void f(int* n) {}\n__global__ void f(float* n) {}",
            "several kernels f with other parameters: give each",
        ),
        ("__global__ void f(auto n) {}", "f is a template"),
        ("__global__ void f(int* n, ...) {}", r"f: parameter 2 \(\.\.\.\): a kernel takes values, arrays"),
        ("__global__ void f(int (*g)(int), int* n) {}", r"f: parameter 1 \(int \(\*g\)\(int\)\): a kernel"),
        ("__global__ void f(int n) {}\0", r"the source has '\\x00' at position 27, which is no text"),
        ("// \udcff\n__global__ void f(int n) {}", r"the source has '\\udcff' at position 3, which is no"),
        ("__global__ void max(int* n) {}", "compile the kernel max: another function has its name"),
    ],
)
def test_what_cannot_be_a_kernel_is_one_sentence(source: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        penstock.kernel(source, device="cpu")


def test_a_name_is_that_of_a_kernel() -> None:
    source = "template <class T> __global__ void f(T* n) {}"
    with pytest.raises(ValueError, match="f<int>: a kernel is no template: write one"):
        penstock.kernel(source, "f<int>")
    wrong: Any = 3
    with pytest.raises(TypeError, match="name 3: give the name of a kernel"):
        penstock.kernel(source, wrong)


def test_an_array_for_a_type_that_does_not_seem_one_is_refused() -> None:
    array = penstock.from_tensor(np.zeros(3, np.int32), "host", device="cpu")
    kernel = penstock.kernel("struct s { int x; };\n__global__ void f(s a) {}", device="cpu")
    with pytest.raises(TypeError, match=r"argument 1 \(s a\): a penstock.Array: declare penstock::array<T>"):
        kernel(array)


def test_macros_may_have_any_name(device: str) -> None:
    memory, out = output(np.zeros(1, np.float32), device)
    source = "__global__ void f(T* kernel) { *kernel = ADD(K, 2) + Of; }"
    macros = {"T": "float", "K": 4, "Of": True, "ADD(x, y)": "((x) + (y))", "parameters": "none", "A": "x y"}
    penstock.kernel(source, device=device, defines=macros)(out, threads=1).wait()
    assert memory().tolist() == [7]


def test_what_is_no_macro_is_refused() -> None:
    source = "__global__ void f(int n) {}"
    cases: list[tuple[dict[str, object], str]] = [
        ({"A B": 1}, "A B: give the name"),
        ({"A": "1\n2"}, "defines A: .*: give one"),
    ]
    for defines, sentence in cases:
        with pytest.raises(ValueError, match=sentence):
            penstock.kernel(source, device="cpu", defines=defines)
    with pytest.raises(TypeError, match="include_dirs /tmp: give a list of folders"):
        penstock.kernel(source, device="cpu", include_dirs="/tmp")


def test_parameters_have_a_limit(device: str) -> None:
    def source(count: int) -> str:
        return f"__global__ void f({', '.join(f'int a{k}' for k in range(count))}) {{}}"

    penstock.kernel(source(64), device=device)(*range(64), threads=1).wait()
    with pytest.raises(ValueError, match="f has 65 parameters: a kernel takes up to 64: put some into"):
        penstock.kernel(source(65), device=device)


def test_a_kernel_throws_nothing_on_the_cpu() -> None:
    with pytest.raises(ValueError, match="a kernel throws and catches nothing: report"):
        penstock.kernel("__global__ void f() { throw 1; }", device="cpu")


def test_nothing_is_no_array() -> None:
    kernel = penstock.kernel("__global__ void f(penstock::array<const int> a) {}", device="cpu")
    for _ in range(2):
        with pytest.raises(TypeError, match=r"None: give a penstock\.Array"):
            kernel(None)
        kernel(penstock.from_tensor(np.zeros(3, np.int32), "host", device="cpu")).wait()  # which is gone then


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("extern __shared__ int s[]; s[0] = 1;", r"write penstock::dynamic_shared<T>\(\)"),
        ("extern __shared__ __align__(16) int s[]; s[0] = 1;", r"write penstock::dynamic_shared<T>\(\)"),
        ("__shared__ extern int s[]; s[0] = 1;", r"write penstock::dynamic_shared<T>\(\)"),
        (
            "{ extern __shared__ int s[]; s[0] = 1; } extern __shared__ float s[]; s[0] = 1;",
            r"write penstock::dynamic_shared<T>\(\)",
        ),
        ("/* extern __shared__ int s[]; */ unknown = 1;", "'unknown' was not declared"),
        ("extern __shared__ int s[]; unknown = 1;", "'unknown' was not declared"),
        ("__shared__ int s[4]; __shared__ float s[4];", "conflicting declaration"),
        ("__half x = 1;", "__half and __nv_bfloat16 are a GPU's: use float"),
        ("half x = 1;", "__half and __nv_bfloat16 are a GPU's: use float"),
        ("penstock::array<const __half> x;", "__half and __nv_bfloat16 are a GPU's: use float"),
        ("f<<<1, 1>>>(n);", "a kernel launches no other on the CPU"),
        ('asm("mov.u32 %0, %laneid;" : "=r"(*n));', "PTX is a GPU's"),
        ("\n#include <cuda_fp16.h>\n", "the headers of CUDA are a GPU's: leave them out"),
        ("cudaTextureObject_t t;", "textures are a GPU's"),
        ("// __half\n unknown = 1;", "'unknown' was not declared"),
    ],
)
def test_what_the_cpu_does_not_take_is_named(body: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"compile the kernel f: .*({sentence})"):
        penstock.kernel(f"__global__ void f(int* n) {{ {body} }}", device="cpu")


@pytest.mark.parametrize(
    "source",
    [
        "\ufeff__global__ void f(int* p) { *p = 7; }",
        "#define P int*\r\n__global__ void f(P p) {\r\n  *p = \\\r\n  7;\r\n}\r\n",
        "using P = int*;\n__global__ void f(P p) { *p = 7; }",
        "__global__ void f(void* p) { *static_cast<int*>(p) = 7; }",
        "struct later;\n__global__ void f(later* p) { *reinterpret_cast<int*>(p) = 7; }",
    ],
)
def test_pointers_are_known_however_they_are_written(source: str) -> None:
    number = np.zeros(2, np.int32)
    penstock.kernel(source, device="cpu")(number, threads=1)
    assert number[0] == 7


def test_a_pointer_that_cannot_be_seen_is_no_bytes() -> None:
    source = "template <class T> using to = T*;\n__global__ void f(to<int> p) { *p = 1; }"
    with pytest.raises(ValueError, match="parameter 1 of f is not what its type seems to be"):
        penstock.kernel(source, device="cpu")
