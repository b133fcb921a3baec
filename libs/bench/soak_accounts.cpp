#include "libs/bench/soak_accounts.hpp"

#include "penstock/host/error.hpp"

namespace penstock::bench {
namespace {

/// One equation after another; the first that does not hold ends the run.
class ledger {
 public:
  void equal(char const* what, u64 left, u64 right) const {
    if (left != right) refuse(what, left, " is not ", right);
  }
  void at_most(char const* what, u64 left, u64 right) const {
    if (left > right) refuse(what, left, " is more than ", right);
  }

 private:
  [[noreturn]] static void refuse(char const* what, u64 left, char const* how, u64 right) {
    throw error(error_kind::world, std::string("run the soak: the counters do not add up: ") + what + ": " +
                                       std::to_string(left) + how + std::to_string(right));
  }
};

template <class Counts, class... Field>
void add_fields(Counts& sum, Counts const& more, Field... of) {
  ((sum.*of += more.*of), ...);
}

// Between drive and queues. A command that the drive has fetched is completed, dropped, or discarded by a reset; one that was
// published is answered in time, expired, or ended with its queue.
void check_commands(ledger const& books, soak_account const& now, bool exact) {
  model_counts const& drive = now.drive;
  queue_counts const& queues = now.queues;
  books.equal("commands = completions - strays + expired + failed + reset", queues.commands,
              queues.completions - queues.strays + queues.expired + queues.failed + queues.reset);
  books.at_most("commands fetched <= published", drive.fetched, queues.commands);
  books.at_most("answered + dropped <= fetched", drive.completed + drive.drops, drive.fetched);
  books.at_most("completions read <= posted", queues.completions, drive.completed);
  books.equal("doorbells refused, completions doubled, identifiers unknown",
              drive.refused_doorbells + drive.duplicates + drive.unknown_identifiers, 0);
  const u64 discarded = drive.fetched - drive.completed - drive.drops;
  const u64 unread = drive.completed - queues.completions, unfetched = queues.commands - drive.fetched;
  if (exact && now.given_up == 0) {
    books.equal("no completion lies unread", unread, 0);
    books.equal("no command was left unfetched", unfetched, 0);
    // So each drop, and each late command that did not come or came after all, is one that expired.
    books.equal("expired + reset = drops + strays + discarded", queues.expired + queues.reset,
                drive.drops + queues.strays + discarded);
  }
  books.at_most("drops <= expired + failed + reset", drive.drops, queues.expired + queues.failed + queues.reset);
  books.at_most("strays <= expired", queues.strays, queues.expired);
  books.at_most("errors told <= injected", queues.errors, drive.errors);
  books.at_most("errors injected <= told + drops + discarded + unread", drive.errors,
                queues.errors + drive.drops + discarded + unread);
}

// Between queues and cache. Commands are fills, write-backs and flushes; one that failed was tried again, told to whoever
// waited, or nobody's: a fill ahead of need.
void check_cache(ledger const& books, soak_account const& now, u64 line_bytes, bool exact) {
  cache_stats const& cache = now.cache;
  queue_counts const& queues = now.queues;
  books.equal("bytes moved = fills x line", cache.bytes_moved, cache.fills * line_bytes);
  books.at_most("fills <= misses + prefetches", cache.fills, cache.misses + cache.prefetches);
  books.at_most("commands <= fills + write-backs + flushes", queues.commands, cache.fills + cache.write_commands + now.flushes);
  const u64 refused_at_most = now.given_up == 0 ? 0 : cache.write_errors + now.failed_flushes;
  books.at_most("fills + write-backs + good flushes <= commands + refused",
                cache.fills + cache.write_commands + (now.flushes - now.failed_flushes), queues.commands + refused_at_most);
  if (now.given_up == 0) books.equal("fills = misses + prefetches", cache.fills, cache.misses + cache.prefetches);
  books.at_most("errors in time + expired + failed + reset <= refills + errors + write errors + prefetches + failed flushes",
                queues.errors - std::min(queues.errors, queues.strays) + queues.expired + queues.failed + queues.reset,
                cache.refills + cache.errors + cache.write_errors + cache.prefetches + now.failed_flushes);
  books.at_most("errors <= operations that failed", cache.errors, now.program.failed);
  if (!exact) return;
  books.equal("errors = operations that failed", cache.errors, now.program.failed);
  books.equal("writes = elements and lines stored", cache.writes, now.program.stored + now.program.spans);
  books.equal("bytes changed = those of elements and lines stored", cache.bytes_changed,
              now.program.stored * sizeof(u64) + now.program.spans * line_bytes);
}

}  // namespace

queue_counts sum_of(std::vector<queue_counts> const& queues) {
  using c = queue_counts;
  queue_counts sum;
  for (queue_counts const& q : queues) {
    add_fields(sum, q, &c::commands, &c::doorbells, &c::completions, &c::errors, &c::strays, &c::expired, &c::failed,
               &c::reset);
  }
  return sum;
}

void add_to(model_counts& sum, model_counts const& more) {
  using c = model_counts;
  add_fields(sum, more, &c::fetched, &c::completed, &c::errors, &c::delays, &c::drops, &c::duplicates, &c::lates,
             &c::unknown_identifiers, &c::refused_doorbells);
}

bool all_told(queue_counts const& sum) {
  return sum.commands == sum.completions - sum.strays + sum.expired + sum.failed + sum.reset;
}

void check_account(soak_account const& now, u64 line_bytes, bool exact) {
  const ledger books;
  check_commands(books, now, exact);
  check_cache(books, now, line_bytes, exact);
}

}  // namespace penstock::bench
