# Shell functions that scripts/test and .ci/run share; sourced, with the repository's root as working directory.

jobs=$(nproc)
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  # What one clone has compiled, another finds.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
  # Units with precompiled headers, too.
  export CCACHE_SLOPPINESS=pch_defines,time_macros
fi

# GoogleTest is needed; liburing is what most of the tests of io_uring are about, QEMU what those of the NVMe driver talk to.
need_system_packages() {
  local missing=()
  echo '#include <gtest/gtest.h>' | ${CXX:-g++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null || missing+=(libgtest-dev)
  echo '#include <liburing.h>' | ${CXX:-g++} -std=c++20 -x c++ -fsyntax-only - 2>/dev/null || missing+=(liburing-dev)
  command -v "${PENSTOCK_QEMU:-qemu-system-x86_64}" >/dev/null || missing+=(qemu-system-x86)
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]}"
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null && return 0
  fi
  echo "The tests need these packages: ${missing[*]}" >&2
  [[ " ${missing[*]} " != *" libgtest-dev "* ]]
}

# CMake 3.24 and Ninja: the system's, or else from the active virtual environment.
need_cmake() {
  local have
  have=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')
  if ! command -v ninja >/dev/null || ! printf '3.24\n%s\n' "${have:-0}" | sort -V -C; then
    pip_install "cmake>=3.24" ninja
  fi
}

make_venv() {
  [ -x "$1/bin/python" ] || python3 -m venv "$1"
}

# Quiet unless it fails.
pip_install() {
  local log
  log=$(mktemp)
  if ! python -m pip install --quiet --disable-pip-version-check "$@" >"$log" 2>&1; then
    cat "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}

# A preset, with further arguments for the configuration.
build_preset() {
  local preset=$1 log=build-$1/build.log
  shift
  mkdir -p "build-$preset"
  if ! { cmake --preset "$preset" -DPENSTOCK_WERROR="${PENSTOCK_WERROR:-OFF}" "$@" &&
         cmake --build "build-$preset" -j "$jobs" -- -k 0; } >"$log" 2>&1; then
    grep -E 'error|Error|warning' "$log" | grep -v -- '-Werror -D\| -c ' | sort -u | head -n 60 >&2
    echo "the build failed; all of its output is in $log" >&2
    return 1
  fi
  grep -E '^-- (nvcc not found|liburing)' "$log" || true
}

# All GoogleTest executables of a preset, their output in a log; the end of the log of what fails.
run_ctest() {
  local preset=$1 log=build-$1/tests.log
  shift
  if ! (cd "build-$preset" && ctest --verbose -j "$jobs" --no-tests=error "$@") >"$log" 2>&1; then
    grep -E '\[  FAILED  \]|Failure$|^[0-9]+: .*(ERROR|WARNING): |SUMMARY|\*\*\*' "$log" | head -n 60 >&2
    echo "tests failed; all of their output is in $log" >&2
    return 1
  fi
}

# "123 passed, 0 failed, 2 skipped" over all executables of a preset.
ctest_summary() {
  awk '/\[  PASSED  \] [0-9]+ test/ { for (i = 1; i < NF; ++i) if ($i == "]") passed += $(i + 1) }
       /\[  SKIPPED \] [0-9]+ test/ { for (i = 1; i < NF; ++i) if ($i == "]") skipped += $(i + 1) }
       /\[  FAILED  \] [0-9]+ test/ { for (i = 1; i < NF; ++i) if ($i == "]") failed += $(i + 1) }
       END { printf "%d passed, %d failed, %d skipped\n", passed, failed, skipped }' "build-$1/tests.log"
}
