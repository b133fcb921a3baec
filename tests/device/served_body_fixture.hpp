// A modelled drive without servers: the test says when who serves its queues, and by which time.
#pragma once

#include "penstock/group/lone_thread.hpp"
#include "src/controller/served_queue_body.hpp"
#include "support/emulated_warp.hpp"
#include "support/stamped_media.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace penstock::test {

inline constexpr u64 media_bytes = 1 << 20;

/// Time that passes when someone looks at it: serving takes what it takes, however slow the machine is.
struct model_time {
  u64 ns = one_second_ns;
  u64 look_ns = 0;

  /// Of a group: the leader's looks are those that count.
  struct clock {
    model_time* time;
    bool leads = true;

    u64 now() {
      if (!leads) return 0;
      time->ns += time->look_ns;
      return time->ns;
    }
  };
};

/// Records that no server owns, and a controller that hands its rings to them: the test says when who serves.
class body_bed final : public controller {
 public:
  explicit body_bed(controllers::drive_record const& options) : media_(media_bytes), drive_(options) {
    drive_.spaces[0] = {reinterpret_cast<u64>(media_.bytes().data()), media_bytes, 9, 0};
    drive_.space_count = 1;
    drive_.pace.transfer_bytes = 1u << 20;
    view_.queues = queues_;
    view_.shared = &shared_;
    view_.control = &control_;
  }

  void attach(queue_rings const& rings) override {
    controllers::queue_record& q = queues_[rings.id - 1];
    q.facts.rings = rings;
    q.facts.drive = &drive_;
    q.facts.completions_per_command = drive_.completions_per_command;
    q.facts.plain = drive_.plain;
    q.facts.faulty = drive_.faulty;
    q.facts.poison_fetched = drive_.poison_fetched;
    q.facts.torn_completion = drive_.torn_completion;
    q.facts.waiting = waiting_[rings.id - 1];
    q.facts.waiting_capacity = 256;
    q.active = 1;
    slots_ = std::max<u32>(slots_, rings.id);
  }
  void detach(u16) override {}
  void poll(u16) override {}
  void add_buffer(void*, u64) override {}
  controller_limits limits() const override { return {2, 4096, 1u << 20}; }
  std::string engine() const override { return "body"; }

  /// `warps` whole warps visit all queues `turns` times.
  void serve(u32 warps, u32 turns) {
    std::vector<lane_assignment> lanes;
    for (u32 w = 0; w < warps; ++w) assign_group(lanes, w, 0xffffffffu);
    run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const& a) {
      fine_clock clock(1, 0);
      for (u32 k = 0; k < turns; ++k) controllers::serve_once(g, view_, slots_, a.warp, warps, clock);
    });
  }

  /// Likewise one lone thread, or one whole warp, by a time of the test's own.
  void serve_in(model_time& time, bool warp, u32 turns) {
    const auto visit = [&](auto const& g) {
      model_time::clock clock{&time, is_leader(g)};
      for (u32 k = 0; k < turns; ++k) controllers::serve_once(g, view_, slots_, 0, 1, clock);
    };
    if (!warp) return visit(lone_thread{});
    std::vector<lane_assignment> lanes;
    assign_group(lanes, 0, 0xffffffffu);
    run_lanes(lanes, [&](emulated_warp const& g, lane_assignment const&) { visit(g); });
  }

  controllers::drive_record& drive() { return drive_; }
  controllers::queue_record& queue(u16 id) { return queues_[id - 1]; }
  unsigned char const* media() { return reinterpret_cast<unsigned char const*>(media_.bytes().data()); }

 private:
  stamped_media media_;
  controllers::drive_record drive_;
  controllers::queue_record queues_[2];
  controllers::waiting_command waiting_[2][256];
  controllers::server_shared shared_;
  controllers::server_control control_;
  controllers::server_view view_;
  u32 slots_ = 0;
};

}  // namespace penstock::test
