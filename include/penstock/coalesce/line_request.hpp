// What the lanes of a group want, as lines: lanes that want the same line are peers, the lowest of them acts for all (one
// claim, one pin, one command per distinct line), and every lane stays until the last is served.
//
// W4: while a lane waits for a frame, nothing of this call is held that another waits for: a read gives each pin back as soon
// as its peers have read; a `pin` of several lines is all or nothing. W5: every round of waiting moves the queues.
#pragma once

#include "penstock/coalesce/fill_watch.hpp"
#include "penstock/coalesce/lone_fill.hpp"
#include "penstock/coalesce/send_fills.hpp"
#include "penstock/core/backoff.hpp"
#include "penstock/write_back/cleaner.hpp"

namespace penstock {

/// What a group does with the lines that it asks for.
enum class line_use : u32 {
  read,
  write,      ///< stores into it
  overwrite,  ///< stores all of it: what lies in storage is not brought in
};

/// One lane's part in a collective access. Lives for one call.
template <thread_group G, class Cache, line_use How = line_use::read>
class line_request {
 public:
  /// Collective. Lanes that want nothing take part all the same.
  PENSTOCK_FN line_request(G const& g, Cache const& cache, u32 dataset, bool want, line_id line)
      : g_(g), cache_(cache), data_(cache.datasets[dataset]), line_(line), wait_(cache.patience_ns),
        peers_(peers_of(g, cache, want, line)), todo_(want) {
    leads_ = want && lowest(peers_) == g.rank();
    phase_ = leads_ ? phase::looking : phase::over;
  }

  /// Where all lanes want one line, one of them goes for it; what is left of that is the group's. Collective. REQUIRES: called
  /// first. `queues`: as fill_alone.
  PENSTOCK_FN void start_alone(bool queues) {
    if (How == line_use::overwrite || count(g_.ballot(leads_)) != 1) return;
    if (leads_) go_on_from(fill_alone(cache_, data_, line_, cache_.directory.glance(line_), size(g_), queues));
  }

  /// Takes over what fill_alone has begun, in the lane that leads. REQUIRES: called first.
  PENSTOCK_FN void go_on_from(lone_fill const& begun) {
    if (begun.queued) {
      ticket_ = begun.ticket;
      has_ticket_ = true;
    }
    if (begun.entry == nullptr) return;
    entry_ = begun.entry;
    claimed_ = looked_ = true;
    unsent_ = !begun.sent;
    phase_ = phase::filling;
    if (begun.sent) landing_ = landing_of(cache_, command());
  }

  /// Calls use(frame address) once in each lane, under a pin; it returns whether it has stored something. Collective. This
  /// lane's status.
  template <class Use>
  PENSTOCK_FN status access(Use const& use) {
    status outcome{};
    bool stored = false;
    [[maybe_unused]] bool overfull = false;
    queues_ = cache_.admission.applies();
    if (has_ticket_ && phase_ == phase::looking) phase_ = phase::queued;
    for (;;) {
      advance();
      const u64 report = g_.shfl(make_report(), lowest(peers_));
      g_.sync();  // the leaders' acquires are their peers', which read the frame
      if (todo_ && report != 0) {
        if ((report & report_failed) != 0) {
          outcome = unpack_status(static_cast<u32>(report));
        } else {
          stored = use(report);
        }
        todo_ = false;
      }
      g_.sync();
      if constexpr (How == line_use::read) {
        if (phase_ == phase::pinned) cache_.unpin(entry_);
      } else {
        overfull |= leave_written(g_.ballot(stored));
      }
      if (phase_ == phase::pinned) phase_ = phase::over;
      if (queues_) give_tickets_back();
      if (!any(g_.ballot(todo_))) break;
      wait();
    }
    if constexpr (How != line_use::read) {
      const u32 lines = count(g_.ballot(overfull));
      if (lines != 0) keep_clean(g_, cache_, data_.counters, lines);
    }
    return outcome;
  }

  /// Pins every lane's line at once; one pin per distinct line, held by the lowest of its lanes. Collective; one status for
  /// all: either every line is pinned or none. `frame` is this lane's frame address. No lane waits for its turn to claim: pins
  /// of those that have had theirs would be held meanwhile (W4). REQUIRES: to overwrite, all lanes name the same line.
  PENSTOCK_FN status pin(u64& frame) {
    start_alone(false);
    for (;;) {
      advance();
      const auto failures = g_.ballot(phase_ == phase::failed);
      if (any(failures)) {
        give_back();
        return unpack_status(static_cast<u32>(g_.shfl(pack(error_), lowest(failures))));
      }
      if (!any(g_.ballot(phase_ == phase::looking || phase_ == phase::filling))) break;
      if (any(g_.ballot(short_of_frames_))) give_back();
      wait();
    }
    frame = g_.shfl(phase_ == phase::pinned ? frame_address() : 0, lowest(peers_));
    g_.sync();  // the leaders' acquires are their peers', which read the frame
    return {};
  }

  PENSTOCK_FN bool leads() const { return leads_; }
  /// Whether the line, pinned to be overwritten, is this lane's claim: others wait until it is published.
  PENSTOCK_FN bool owned() const { return owned_; }
  /// The entry that holds the pin of this lane and its peers, after `pin`. REQUIRES: leads().
  PENSTOCK_FN u64* entry() const { return entry_; }
  /// Line requests of this lane that found their line in a frame at first look.
  PENSTOCK_FN u64 hits() const { return hits_; }

 private:
  using mask = decltype(std::declval<G const&>().members());
  enum class phase : u32 { looking, queued, filling, pinned, failed, over };
  static constexpr u64 report_failed = 1ull << 63;
  static constexpr u32 rounds_for_others = 8, rounds_for_joined = 4, rounds_for_helped = 4, most_others_moved = 4;

  // Gives a line back that some of its peers have stored into; true if it was clean, and too many are dirty now.
  PENSTOCK_FN bool leave_written(mask stored) {
    if (phase_ != phase::pinned) return false;
    if (!any(without(peers_, without(peers_, stored)))) {
      cache_.unpin(entry_);
      return false;
    }
    data_.counters.add(counter::writes, 1);
    return cache_.unpin_written(entry_) && cache_.writes.note_dirty();
  }

  // One round: the watching lanes look again, all that was claimed is submitted before any lane waits, fills are looked at.
  PENSTOCK_FN void advance() {
    bool claimed = unsent_;
    victim_search search;
    if (!last_look_) search.most_in_use = victim_search::brief;
    unsent_ = short_of_frames_ = false;
    if (phase_ == phase::queued && (is_admitted() || is_there())) phase_ = phase::looking;
    bool looks = phase_ == phase::looking && !rests() && !is_refused();
    for (;;) {
      access_step step = access_step::again;
      if (looks) {
        const bool claims = !queues_ || (has_ticket_ && is_admitted()) || last_look_;
        step = cache_.look(data_, line_, size(g_) >= 32 && cache_.coalesces, claims, entry_, search);
        claimed |= take(step);
      }
      if (!queues_ || !any(g_.ballot(step == access_step::queue))) break;
      looks = queue_up(step == access_step::queue);
    }
    count_search(g_, data_, search);
    if (short_of_frames_ && is_stuck(cache_, data_, line_)) {
      fail(why_not());
      short_of_frames_ = false;
    }
    submit(claimed);
    if (phase_ == phase::filling) check_fill();
  }

  PENSTOCK_FN bool take(access_step step) {
    using enum access_step;
    switch (step) {
      case pinned:
        if (!looked_) ++hits_;
        looked_ = true;
        phase_ = phase::pinned;
        break;
      case filling:
        if (!looked_) data_.counters.add(counter::joins, 1);
        looked_ = true;
        phase_ = phase::filling;
        break;
      case claimed:
        if (How == line_use::overwrite) {
          data_.counters.add(counter::whole_lines, 1);
          owned_ = looked_ = true;
          phase_ = phase::pinned;
          break;
        }
        data_.counters.add(counter::misses, 1);
        claimed_ = looked_ = true;
        phase_ = phase::filling;
        return true;
      case no_frame:
        if (!waited_for_frame_) data_.counters.add(counter::frame_waits, 1);
        short_of_frames_ = waited_for_frame_ = true;
        pins_exhausted_ = false;
        break;
      case pin_limit: pins_exhausted_ = true; break;
      case queue:
      case again: break;
    }
    return false;
  }

  // A ticket for each lane that wants to claim a frame and has none yet; whether it may claim at once. Collective.
  PENSTOCK_FN bool queue_up(bool wants) {
    const auto asking = g_.ballot(wants && !has_ticket_);
    if (any(asking)) {
      const u32 first = lowest(asking);
      const u64 tickets = g_.shfl(g_.rank() == first ? cache_.admission.take(count(asking)) : 0, first);
      if (wants && !has_ticket_) {
        ticket_ = tickets + count_below(asking, g_.rank());
        has_ticket_ = true;
      }
    }
    if (!wants) return false;
    if (is_admitted()) return true;
    phase_ = phase::queued;
    if (!waited_for_frame_) data_.counters.add(counter::frame_waits, 1);
    waited_for_frame_ = true;
    return false;
  }

  // At the deadline it tries without its turn.
  PENSTOCK_FN bool is_admitted() const { return last_look_ || cache_.admission.admits(ticket_); }

  // Another thread's turn may have brought the line of one that waits for its own.
  PENSTOCK_FN bool is_there() const { return cache_.looks_up && cache_.directory.glance(line_).state() != line_state::empty; }

  PENSTOCK_FN void give_tickets_back() {
    const bool ends = has_ticket_ && (phase_ == phase::over || phase_ == phase::failed);
    const auto ended = g_.ballot(ends);
    if (any(ended) && g_.rank() == lowest(ended)) cache_.admission.give_back(count(ended));
    if (ends) has_ticket_ = false;
  }

  PENSTOCK_FN void submit(bool claimed) {
    if (!any(g_.ballot(claimed))) return;
    const found_line at = claimed ? found_line{entry_, device_ref<u64>(*entry_).load(relaxed)} : found_line{};
    const u64 sent = send_fills(g_, cache_, data_, claimed, line_, at, nullptr);
    if (claimed) landing_ = landing_of(cache_, sent);
  }

  PENSTOCK_FN bool is_over() const { return entry::state(device_ref<u64>(*entry_).load(relaxed)) != line_state::filling; }

  PENSTOCK_FN void check_fill() {
    const u64 e = device_ref<u64>(*entry_).load(acquire);
    switch (entry::state(e)) {
      case line_state::filling: return;
      case line_state::valid:
        phase_ = phase::pinned;
        if (claimed_ && data_.health != nullptr) data_.health->note_success();
        return;
      case line_state::failed:
        if (How == line_use::overwrite) break;  // what could not be read is not needed
        if (!try_again(cache_.record_of(entry_, e).load_failure())) return;
        break;
      case line_state::empty: break;  // undone: the claimant found no frame
    }
    cache_.unpin(entry_);
    phase_ = phase::looking;
  }

  // Whether the line is asked for once more; if not, this request has failed.
  PENSTOCK_FN bool try_again(status why) {
    if (claimed_ && data_.health != nullptr) data_.health->note_failure(why, cache_.retry.fails_after);
    const bool broken = data_.health != nullptr && !data_.health->failed().ok();
    if (broken || last_look_ || !cache_.retry.retries(why, ++attempts_)) {
      fail(why);
      return false;
    }
    data_.counters.add(counter::refills, 1);
    rests_until_ns_ = now_ns() + cache_.retry.wait_ns(attempts_);
    claimed_ = false;
    return true;
  }

  // A dataset that fails again and again is not asked any more, and gives up no line for what it would not get.
  PENSTOCK_FN bool is_refused() {
    if (How == line_use::overwrite || data_.health == nullptr) return false;
    const status verdict = data_.health->failed();
    if (verdict.ok()) return false;
    const line_state now = cache_.directory.glance(line_).state();
    if (now == line_state::valid || now == line_state::filling) return false;
    fail(verdict);
    return true;
  }

  // Between a failure and the next attempt.
  PENSTOCK_FN bool rests() const { return rests_until_ns_ != 0 && !last_look_ && now_ns() < rests_until_ns_; }

  PENSTOCK_FN void fail(status why) {
    if (phase_ == phase::filling) cache_.unpin(entry_);
    data_.counters.add(counter::errors, 1);
    error_ = why;
    phase_ = phase::failed;
  }

  PENSTOCK_FN void give_back() {
    if (phase_ != phase::pinned && phase_ != phase::filling) return;
    cache_.unpin(entry_);
    phase_ = phase::looking;
  }

  PENSTOCK_FN u64 frame_address() const { return cache_.frame_address(entry_, device_ref<u64>(*entry_).load(relaxed)); }

  /// 0: nothing yet; else a frame's address, or the failure that took its place.
  PENSTOCK_FN u64 make_report() const {
    if (phase_ == phase::pinned) return frame_address();
    return phase_ == phase::failed ? report_failed | pack(error_) : 0;
  }

  // How it waits: line_request_wait.hpp defines these, and code that makes a request includes it.
  PENSTOCK_FN void wait();
  PENSTOCK_FN void wait_for_news();
  PENSTOCK_FN bool wait_for_turn();
  PENSTOCK_FN void move_others(u32 round);
  PENSTOCK_FN void drain_landed();
  PENSTOCK_FN status why_not() const;
  PENSTOCK_FN bool help();

  PENSTOCK_FN u64 command() const {
    return phase_ == phase::filling ? cache_.record_of(entry_, device_ref<u64>(*entry_).load(relaxed)).load_command() : 0;
  }

  G const& g_;
  Cache const& cache_;
  dataset_view const& data_;
  line_id line_;
  u64* entry_ = nullptr;    ///< the one that holds this lane's pin or claim, once it has one
  u64* landing_ = nullptr;  ///< the word of the slot of the fill that this lane has sent, where it lands in a bounce buffer
  backoff wait_;
  mask peers_;
  phase phase_ = phase::over;
  status error_{};
  u64 hits_ = 0;
  u32 round_ = 0;
  u32 looks_until_help_ = 1;
  u32 attempts_ = 0;        ///< that have failed
  u64 rests_until_ns_ = 0;  ///< before the next; 0: none has failed
  u64 ticket_ = 0;
  bool todo_;
  bool leads_ = false;
  bool owned_ = false;    ///< has claimed a line that is stored whole
  bool claimed_ = false;  ///< the fill that it waits for is its own
  bool unsent_ = false;   ///< and has yet to be submitted
  bool looked_ = false;   ///< has found, missed or joined it already: what it finds later is no hit
  bool short_of_frames_ = false;
  bool queues_ = false;  ///< its lanes claim in turn
  bool has_ticket_ = false;
  bool waited_for_frame_ = false;  ///< and is counted
  bool pins_exhausted_ = false;
  bool last_look_ = false;
};

}  // namespace penstock
