// Runs one relacy scenario: searches all executions within a bound of preemptions, then draws random ones.
//
// Why both: relacy's search lets a relaxed load return the newest store or the one before it; its random scheduler reaches
// further back, but only samples. A scenario passes when neither finds anything.
#pragma once

#include <relacy/relacy.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ostream>
#include <streambuf>

// Which mutant runs; 0: as in the code. An argument of the program, or -DMUTANT=n: what all of them share compiles once.
#ifndef MUTANT
#define MUTANT 0
#endif
static int chosen_mutant = MUTANT;

static bool mutant(int number) { return chosen_mutant == number; }

static void choose_mutant(int count, char** arguments) {
  if (count > 1) chosen_mutant = std::atoi(arguments[1]);
}

// relacy replaces operator new, which a std::stringbuf of the library does not survive.
class fixed_text : public std::streambuf {
 public:
  fixed_text() { setp(text_, text_ + sizeof text_); }
  int size() const { return static_cast<int>(pptr() - pbase()); }
  char const* data() const { return text_; }

 private:
  int overflow(int c) override { return c; }  // what is too long is cut

  char text_[1 << 16];
};

constexpr unsigned all_schedules = ~0u;

template <class Scenario>
bool search(char const* name, char const* how, rl::test_params& parameters) {
  fixed_text text;
  std::ostream report(&text);
  parameters.output_stream = &report;
  parameters.progress_stream = &report;
  const auto started = std::chrono::steady_clock::now();
  const bool passed = rl::simulate<Scenario>(parameters);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - started;
  const auto executions = static_cast<unsigned long long>(parameters.stop_iteration);
  std::printf("%-28s %-22s %10llu executions %7.2f s  %s\n", name, how, executions, seconds.count(),
              passed ? "nothing found" : rl::test_result_str(parameters.test_result));
  if (!passed && chosen_mutant == 0) std::printf("%.*s\n", text.size(), text.data());
  return passed;
}

/// `bound`: preemptions in one execution (a thread that waits gives way for free), or all_schedules.
template <class Scenario>
bool holds(char const* name, unsigned bound, unsigned samples) {
  rl::test_params bounded;
  bounded.search_type = bound == all_schedules ? rl::sched_full : rl::sched_bound;
  bounded.context_bound = bound;
  char how[32] = "all schedules";
  if (bound != all_schedules) std::snprintf(how, sizeof how, "preemptions <= %u", bound);
  if (!search<Scenario>(name, how, bounded)) return false;
  rl::test_params drawn;
  drawn.search_type = rl::sched_random;
  drawn.iteration_count = samples;
  return search<Scenario>(name, "random", drawn);
}
