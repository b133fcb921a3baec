// Checks for test bodies that run on every executor: no framework, no printing, no exception. The first failure is kept with
// its line and values; the rest are counted. The host looks at the report when all threads are done (`expect_clean`,
// cuda_main.cuh).
//
// Thread-safe: any number of threads of one executor may record at once. Recording orders no memory, so a check hides no race.
#pragma once

#include "penstock/core/atomic.hpp"
#include "penstock/core/status.hpp"

#include <type_traits>

namespace penstock::test {

struct check_report {
  u32 failures = 0;
  u32 first_line = 0;  ///< of the check that failed first; 0 while none has
  u64 expected = 0;    ///< at that check
  u64 found = 0;
  u32 used = 0;  ///< 1 once any check has run: a body that never ran is a failure too
  u32 reserved = 0;

  bool clean() const { return failures == 0 && used != 0; }
};

/// A checked value as one word: signs are extended, enums and statuses unpacked, pointers are addresses.
template <class T>
PENSTOCK_FN u64 check_word(T const& v) {
  if constexpr (std::is_same_v<T, status>) {
    return pack({v.domain, v.number()});  // as they are compared
  } else if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<u64>(v);
  } else if constexpr (std::is_same_v<T, bool>) {
    return v ? 1 : 0;
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>, "compare floating-point values by their bits");
    return static_cast<u64>(v);
  }
}

PENSTOCK_COLD inline void record_failure(check_report& report, u32 line, u64 expected, u64 found) {
  if (device_ref<u32>(report.failures).fetch_add(1, relaxed) != 0) return;
  report.first_line = line;  // only the first failure comes here
  report.expected = expected;
  report.found = found;
}

/// True if the values are equal.
PENSTOCK_FN inline bool check_equal(check_report& report, u32 line, u64 expected, u64 found) {
  device_ref<u32> used(report.used);
  if (used.load(relaxed) == 0) used.store(1, relaxed);
  if (expected != found) record_failure(report, line, expected, found);
  return expected == found;
}

}  // namespace penstock::test

/// Both are expressions: true if the check held.
#define PENSTOCK_CHECK(report, condition) \
  ::penstock::test::check_equal((report), __LINE__, 1, static_cast<bool>(condition) ? 1 : 0)
#define PENSTOCK_CHECK_EQ(report, expected, found)                                            \
  ::penstock::test::check_equal((report), __LINE__, ::penstock::test::check_word((expected)), \
                                ::penstock::test::check_word((found)))
