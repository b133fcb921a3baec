// What a check_report says, as gtest failures at the caller's line.
#pragma once

#include "support/check.hpp"

#include <gtest/gtest.h>

#include <source_location>
#include <string>

namespace penstock::test {

/// `where` names the run: executor, shape, seed.
inline void expect_clean(check_report const& report, std::string const& where = {},
                         std::source_location caller = std::source_location::current()) {
  if (report.clean()) return;
  std::string failure = where.empty() ? "" : where + ": ";
  if (report.used == 0) {
    failure += "no check has run";
  } else {
    failure += "line " + std::to_string(report.first_line) + ": expected " + std::to_string(report.expected) + ", found " +
               std::to_string(report.found) + " (failed checks: " + std::to_string(report.failures) + ")";
  }
  ADD_FAILURE_AT(caller.file_name(), static_cast<int>(caller.line())) << failure;
}

}  // namespace penstock::test
