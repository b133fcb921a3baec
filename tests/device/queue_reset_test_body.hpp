// What the queue pair promises any group while another one resets it: each command has one answer, and the ring goes on.
#pragma once

#include "penstock/queue/result_sink.hpp"
#include "support/stamped_media.hpp"

namespace penstock::test {

/// All groups submit and wait, but for the one of thread 0: that one resets, until they are done. Every thread of the run takes
/// part. Without a controller (on a GPU
/// none can be stopped from here) only resets answer.
struct resets_body {
  queue_pair_view<result_sink> queue;
  u32* results;  ///< [threads * rounds]
  u64* data;     ///< [threads * rounds * 64]
  u64 blocks;    ///< of the namespace
  u32 rounds;
  u32* finished;                        ///< [1] threads that are done
  u32* answers;                         ///< [2] good ones, and resetting
  void (*stop)(void*, u16) = nullptr;   ///< host: the controller's detach
  void (*begin)(void*, u16) = nullptr;  ///< host: its attach
  void* far_side = nullptr;

  template <thread_group G>
  PENSTOCK_FN void operator()(G const& g, test_context const& c) const {
    if (c.group == 0) {
      reset_until_done(g, c);
      return;
    }
    for (u32 round = 0; round < rounds; ++round) read_one(g, c, u64{c.thread} * rounds + round);
    g.sync();
    if (is_leader(g)) device_ref<u32>(*finished).fetch_add(size(g), relaxed);
  }

 private:
  // Some lanes ask for nothing, now and then.
  template <thread_group G>
  PENSTOCK_FN void read_one(G const& g, test_context const& c, u64 k) const {
    const u64 draw = random_word(c.seed(), 1, k);
    const bool want = draw % 4 != 0;
    const u64 block = (draw >> 8) % blocks;
    const result_sink::target to{results + k, nullptr};
    transfer t;
    t.command = nvme::transfer_command(nvme::opcode::read, 1, lba{block}, 1);
    t.address = reinterpret_cast<u64>(data + k * 64);
    t.bytes = 512;
    const status sent = queue.submit(g, want, t, to);
    const status told = wait_for(g, queue, want && sent.ok(), to);
    if (!want) return;
    if (!sent.ok()) PENSTOCK_CHECK_EQ(*c.report, 0, device_ref<u32>(results[k]).load(relaxed));
    const status outcome = sent.ok() ? told : sent;
    const bool reset = outcome == make_status(failure::resetting);
    device_ref<u32>(answers[reset]).fetch_add(1, relaxed);
    if (reset || !PENSTOCK_CHECK_EQ(*c.report, status{}, outcome)) return;
    for (u32 w = 0; w < 64; ++w) {
      if (!PENSTOCK_CHECK_EQ(*c.report, stamp(block * 64 + w), load_piece(data + k * 64 + w))) break;
    }
  }

  template <thread_group G>
  PENSTOCK_FN bool others_done(G const& g, test_context const& c) const {
    return from_leader(g, device_ref<u32>(*finished).load(relaxed) + size(g) == c.run.threads) != 0;
  }

  // As long as anyone may need it for an answer.
  template <thread_group G>
  PENSTOCK_FN void reset_until_done(G const& g, test_context const& c) const {
    constexpr u64 patience = 10 * one_second_ns;
    backoff wait(patience);
    for (u32 n = 0; n < 2 || !others_done(g, c); ++n) {
      backoff pause((n % 4) * (one_millisecond_ns / 32));
      while (from_leader(g, pause.pause()) != 0) {}
      queue.close(g);
      if (!PENSTOCK_CHECK(*c.report, queue.quiesce(g, patience))) return;
      if (is_leader(g)) call_on_host(stop, far_side, queue.id);
      g.sync();
      if (!PENSTOCK_CHECK(*c.report, queue.answer_all(g, patience))) return;
      queue.start_over(g);
      if (is_leader(g)) call_on_host(begin, far_side, queue.id);
      queue.reopen(g);
      if (!PENSTOCK_CHECK(*c.report, from_leader(g, wait.pause()) != 0)) return;
    }
  }
};

}  // namespace penstock::test
