// Whether a history of operations on one word can be put in an order in which each took effect at a moment between its call and
// its return (linearizability: Herlihy and Wing 1990; the search is Wing and Gong's with Lowe's memory of what was tried).
#pragma once

#include "penstock/core/config.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace penstock::test {

enum class word_op : u32 { read, write, add, exchange };

/// One operation that succeeded. What failed has had no effect, and is left out.
struct word_event {
  word_op op = word_op::read;
  u32 thread = 0;
  u64 argument = 0;  ///< stored, added, or to be stored
  u64 expected = 0;  ///< of an exchange
  u64 seen = 0;      ///< what the word was; nothing of a write
  bool done = true;  ///< false: an exchange that found another word
  u64 called = 0, returned = 0;
};

class history_check {
 public:
  /// REQUIRES: at most 64 events.
  history_check(u64 initial, std::vector<word_event> events) : initial_(initial), events_(std::move(events)) {}

  bool linearizable() {
    tried_.clear();
    return search(0, initial_);
  }

  /// What remains of a wrong history without the events whose absence leaves it wrong, and that stored nothing: a word a line.
  std::string smallest() {
    for (u64 k = events_.size(); k-- > 0;) {
      const word_event out = events_[k];
      const bool stores = out.op == word_op::write || out.op == word_op::add || (out.op == word_op::exchange && out.done);
      if (stores) continue;
      events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(k));
      if (linearizable()) events_.insert(events_.begin() + static_cast<std::ptrdiff_t>(k), out);
    }
    std::sort(events_.begin(), events_.end(), [](auto const& a, auto const& b) { return a.called < b.called; });
    std::string lines = "from " + std::to_string(initial_) + ":\n";
    for (word_event const& e : events_) lines += describe(e);
    return lines;
  }

 private:
  static std::string describe(word_event const& e) {
    static constexpr char const* names[] = {"read", "write", "add", "exchange"};
    std::string line = "  [" + std::to_string(e.called) + ", " + std::to_string(e.returned) + "] thread " +
                       std::to_string(e.thread) + " " + names[static_cast<u32>(e.op)];
    if (e.op == word_op::exchange) line += " " + std::to_string(e.expected) + " by";
    if (e.op != word_op::read) line += " " + std::to_string(e.argument);
    if (e.op != word_op::write) line += ", saw " + std::to_string(e.seen);
    return line + "\n";
  }

  // Whether an event can be the next when the word is `word`, and what it makes of it.
  static bool takes(word_event const& e, u64& word) {
    switch (e.op) {
      case word_op::read: return e.seen == word;
      case word_op::write: word = e.argument; return true;
      case word_op::add:
        if (e.seen != word) return false;
        word += e.argument;
        return true;
      case word_op::exchange:
        if (e.seen != word || e.done != (word == e.expected)) return false;
        if (e.done) word = e.argument;
        return true;
    }
    return false;
  }

  bool search(u64 taken, u64 word) {
    const u64 all = events_.size() == 64 ? ~0ull : (1ull << events_.size()) - 1;
    if (taken == all) return true;
    if (!tried_.insert({taken, word}).second) return false;
    u64 first_return = ~0ull;
    for (u64 k = 0; k < events_.size(); ++k) {
      if ((taken >> k & 1) == 0) first_return = std::min(first_return, events_[k].returned);
    }
    for (u64 k = 0; k < events_.size(); ++k) {
      if ((taken >> k & 1) != 0 || events_[k].called > first_return) continue;
      u64 next = word;
      if (takes(events_[k], next) && search(taken | 1ull << k, next)) return true;
    }
    return false;
  }

  u64 initial_;
  std::vector<word_event> events_;
  std::set<std::pair<u64, u64>> tried_;  ///< which were taken, and what the word was then: led nowhere
};

}  // namespace penstock::test
