#include "libs/bench/timing.hpp"
#include "libs/bench/topics.hpp"
#include "penstock/host/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace penstock::test {
namespace {

using bench::measurement;
using bench::option_texts;

std::vector<measurement> measure(std::string const& topic, option_texts options) {
  options.insert({{"executor", "cpu"}, {"repeats", "2"}});
  return bench::run_topic(topic, options);
}

std::string refusal(std::string const& topic, option_texts const& options) {
  try {
    measure(topic, options);
  } catch (error const& e) {
    EXPECT_EQ(e.kind(), error_kind::bad_input) << e.what();
    return e.what();
  }
  return "nothing";
}

measurement const* find(std::vector<measurement> const& all, std::string const& id) {
  const auto at = std::find_if(all.begin(), all.end(), [&](measurement const& m) { return m.id == id; });
  return at == all.end() ? nullptr : &*at;
}

const option_texts tiny_model = {{"mib", "1"}, {"commands", "2000"}, {"samples", "20"}, {"queues", "1,3"}, {"depth", "64"}};

option_texts with(option_texts base, option_texts const& more) {
  for (auto const& [key, value] : more) base[key] = value;
  return base;
}

TEST(bench_model, measures_rates_and_latencies_of_every_setting) {
  for (char const* threads : {"0", "1"}) {  // polled in place, served
    const auto all = measure("model", with(tiny_model, {{"server-sms", threads}}));
    EXPECT_EQ(all.size(), 2 * (2 * 2 + 2));
    for (measurement const& m : all) {
      EXPECT_TRUE(m.verified);
      EXPECT_EQ(m.values.size(), 2);
      EXPECT_GT(bench::median(m.values), 0) << m.id;
    }
    for (char const* id : {"model.512.hbm.read", "model.512.hbm.write", "model.4k.hbm.read-latency"}) {
      EXPECT_NE(find(all, id), nullptr) << id;
    }
  }
}

TEST(bench_model, takes_no_less_than_the_drive_does) {
  const auto all = measure(
      "model", with(tiny_model, {{"preset", "pm1735"}, {"block", "512"}, {"kinds", "read,read-latency"}, {"samples", "2000"}}));
  measurement const* latency = find(all, "model.512.hbm.read-latency.pm1735");
  ASSERT_NE(latency, nullptr);
  // Its service time of 25 us, which commands keep on the average, once the lead of the busy run before is unlearned.
  EXPECT_GE(latency->details.at("mean_us"), 20);
  EXPECT_GE(latency->details.at("p99_us"), bench::median(latency->values));
  measurement const* rate = find(all, "model.512.hbm.read.pm1735");
  ASSERT_NE(rate, nullptr);
  EXPECT_LE(bench::median(rate->values), 1.1e6 * 1.05);
}

TEST(bench_model, larger_blocks_have_lists_of_their_pages) {
  const auto all = measure("model", with(tiny_model, {{"block", "8192,16384"}, {"queues", "2"}}));
  EXPECT_EQ(all.size(), 8);
}

TEST(bench_model, refuses_in_one_sentence_what_cannot_be) {
  const std::pair<option_texts, char const*> bad[] = {
      {{{"queues", "2000"}}, "queues"},
      {{{"depth", "8192"}}, "rings of 8192 entries: choose a power of two from 2 to 4096"},
      {{{"depth", "100"}}, "rings of 100 entries: choose a power of two"},
      {{{"batch", "3"}}, "batches of 3"},
      {{{"batch", "64"}, {"depth", "64"}}, "batches of 64: choose a power of two up to 8"},
      {{{"block", "131072"}}, "commands of 131072 bytes"},
      {{{"block", "1000"}}, "commands of 1000 bytes"},
      {{{"mib", "67108864"}}, "choose 1 TiB or less"},
      {{{"mib", "1048576"}}, "MiB of memory: ask for less"},
      {{{"kinds", "erase"}}, "there is no erase"},
      {{{"media", "tape"}}, "place tape"},
      {{{"rings", "tape"}}, "place tape"},
      {{{"repeats", "0"}}, "0 repeats"},
      {{{"queues", ""}}, "queues: it names nothing"},
      {{{"queues", "1,x"}}, "it is no whole number"},
      {{{"preset", "floppy"}}, "drive floppy"},
  };
  for (auto const& [options, part] : bad) {
    const std::string sentence = refusal("model", with(tiny_model, options));
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
}

TEST(bench_model, over_depths_obeys_littles_law_as_the_drive_counts) {
  const option_texts curve = with(tiny_model, {{"preset", "p5800x"}, {"block", "512"}, {"depths", "1,4,16"}, {"queues", "2"}});
  const auto all = measure("model", curve);
  ASSERT_EQ(all.size(), 6);
  EXPECT_EQ(all[0].params.at("queues"), "1");
  EXPECT_EQ(all[2].params.at("queues"), "2");
  for (measurement const& m : all) {
    EXPECT_LE(m.details.at("mean_in_flight"), std::stod(m.params.at("depth")) * 1.001);
    EXPECT_GE(m.details.at("residence_us"), 9);
    EXPECT_LE(bench::median(m.values), bench::median(m.baseline_values) * 1.05) << m.params.at("depth");
    EXPECT_LE(m.details.at("littles_law"), 0.02) << m.params.at("depth");
    EXPECT_TRUE(m.verified);
  }
  EXPECT_NE(refusal("model", with(tiny_model, {{"depths", "1"}})).find("name a preset"), std::string::npos);
  EXPECT_NE(refusal("model", with(curve, {{"depths", "3"}})).find("depth 3"), std::string::npos);
  EXPECT_NE(refusal("model", with(curve, {{"queues", "3"}})).find("by 3 queues: choose a power of two"), std::string::npos);
}

const option_texts tiny_io = {{"mib", "1"}, {"commands", "500"}, {"queues", "4"}};

TEST(bench_io, sweeps_over_one_option_beside_what_the_drive_allows) {
  for (auto const& [sweep, values] : {std::pair{"threads", "1,2"},
                                      {"requests", "64,128"},
                                      {"blocks", "512,8192"},
                                      {"depth", "16,32"},
                                      {"queues", "2,4"},
                                      {"in-flight", "1,3"},
                                      {"drives", "1,3"},
                                      {"writes", "0,30"}}) {
    const auto all = measure("io", with(tiny_io, {{"preset", "p5800x"}, {"sweep", sweep}, {"values", values}}));
    ASSERT_EQ(all.size(), 2) << sweep;
    EXPECT_NE(all[0].params, all[1].params) << sweep;
    for (measurement const& m : all) {
      EXPECT_TRUE(m.verified);
      // A lead from a busier time makes the first commands early.
      EXPECT_LE(bench::median(m.values), bench::median(m.baseline_values) * 1.15) << sweep;
    }
  }
}

TEST(bench_io, procedures_stand_beside_what_the_paper_has) {
  const struct {
    option_texts options;
    char const* id;
    std::size_t steps;
    double expected;
  } procedures[] = {
      {{{"procedure", "table5.3"}, {"preset", "980pro"}, {"block", "512"}}, "table5.3.512.read.980pro", 2, 750e3},
      {{{"procedure", "fig5.6"}, {"drives", "10"}, {"threads", "65536"}}, "fig5.6.read", 2, 45.8e6},
      {{{"procedure", "fig5.8"}, {"drives", "2"}, {"threads", "4096"}}, "fig5.8.read", 2, 12.4},
      {{{"procedure", "fig5.9"}, {"block", "1024"}, {"threads", "16384"}}, "fig5.9.read", 1, 15},
  };
  for (auto const& p : procedures) {
    const auto all = measure("io", with(tiny_io, with(p.options, {{"repeats", "1"}})));
    ASSERT_EQ(all.size(), p.steps) << p.id;
    EXPECT_EQ(all[0].id, p.id);
    EXPECT_EQ(bench::median(all[0].baseline_values), p.expected);
    EXPECT_NEAR(all[0].details.at("deviation"), bench::median(all[0].values) / p.expected - 1, 1e-9);
  }
}

TEST(bench_io, mixes_and_orders_and_rings_are_verified) {
  const auto mixed = measure("io", with(tiny_io, {{"reads", "70"}, {"rings", "host"}, {"order", "sequential"}}));
  ASSERT_EQ(mixed.size(), 1);
  EXPECT_TRUE(mixed[0].verified);
  EXPECT_EQ(mixed[0].id, "io.512.hbm.mix30.hostrings");
}

TEST(bench_io, refuses_in_one_sentence_what_cannot_be) {
  const std::pair<option_texts, char const*> bad[] = {
      {{{"sweep", "moods"}}, "there is no sweep over moods: choose one of threads, requests"},
      {{{"procedure", "fig9.9"}}, "there is no procedure fig9.9: choose one of table5.3, fig5.6"},
      {{{"procedure", "fig5.6"}, {"sweep", "threads"}}, "ask for one of them"},
      {{{"procedure", "fig5.6"}, {"drives", "11"}}, "has no step"},
      {{{"sweep", "drives"}, {"values", "1,17"}}, "17 drives: choose 1 to 16"},
      {{{"sweep", "blocks"}, {"values", "131072"}}, "commands of 131072 bytes"},
      {{{"in-flight", "0"}}, "0 commands of a thread in flight"},
      {{{"depth", "8192"}}, "submission queue of 8192 entries"},
      {{{"queues", "2000"}}, "queues"},
      {{{"reads", "200"}}, "reads=200: percent go up to 100"},
      {{{"reads", "20"}, {"writes", "20"}}, "name one of the two"},
      {{{"order", "backwards"}}, "order backwards"},
      {{{"rings", "tape"}}, "place tape"},
      {{{"drives", "16"}, {"queues", "16"}, {"mib", "1048576"}}, "MiB of memory: ask for less"},
      {{{"link", "string"}}, "link string"},
  };
  for (auto const& [options, part] : bad) {
    const std::string sentence = refusal("io", with(tiny_io, options));
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
}

const option_texts tiny_latency = {{"line", "512,4096"}, {"samples", "20"}};

TEST(bench_latency, has_three_times_for_each_line_beside_the_bare_client) {
  const option_texts settings[] = {{{"controller", "model"}},
                                   {{"controller", "model"}, {"server-sms", "1"}, {"media", "host"}},
                                   {{"controller", "model"}, {"rings", "host"}, {"directory", "set"}},
                                   {{"controller", "software"}, {"lanes", "1"}}};
  for (auto const& setting : settings) {
    const auto all = measure("latency", with(tiny_latency, setting));
    ASSERT_EQ(all.size(), 6);
    for (std::size_t k = 0; k < 6; k += 3) {
      const double first = bench::median(all[k].values), whole = bench::median(all[k + 1].values);
      EXPECT_TRUE(all[k].verified && all[k + 1].verified && all[k + 2].verified);
      EXPECT_LE(first, whole) << all[k].id;
      for (std::size_t n = k; n < k + 3; ++n) {
        EXPECT_GT(bench::median(all[n].baseline_values), 0);
        EXPECT_LE(all[n].details.at("least_us"), all[n].details.at("p99_us"));
        EXPECT_TRUE(all[n].details.contains("added_us"));
      }
    }
  }
}

TEST(bench_latency, is_about_the_service_time_or_more) {
  for (measurement const& m : measure("latency", with(tiny_latency, {{"preset", "pm1735"}}))) {
    EXPECT_GE(m.details.at("mean_us"), 20) << m.id;
    EXPECT_GE(m.details.at("bare_mean_us"), 20) << m.id;
  }
}

TEST(bench_latency, of_a_small_cache_is_one_with_evictions) {
  const auto all = measure("latency", {{"line", "8192"}, {"samples", "200"}, {"cache-mib", "1"}});
  EXPECT_GT(all.front().details.at("evictions"), 0);
}

TEST(bench_latency, refuses_in_one_sentence_what_cannot_be) {
  const std::pair<option_texts, char const*> bad[] = {
      {{{"controller", "abacus"}}, "controller abacus: choose model or software"},
      {{{"line", "256"}}, "commands of 256 bytes"},
      {{{"line", "131072"}}, "commands of 131072 bytes"},
      {{{"lanes", "33"}}, "33 lanes: choose 1 to 32"},
      {{{"samples", "0"}}, "0 repeats or samples"},
      {{{"samples", "4000000000"}, {"line", "65536"}}, "MiB of memory: ask for less"},
      {{{"rings", "tape"}}, "place tape"},
      {{{"preset", "floppy"}}, "drive floppy"},
  };
  for (auto const& [options, part] : bad) {
    const std::string sentence = refusal("latency", with(tiny_latency, options));
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
}

TEST(bench_hit, reads_whole_lines_in_any_order) {
  for (char const* order : {"random", "linear", "strided", "coarsened"}) {
    const auto all = measure("hit", {{"mib", "1"}, {"patterns", "line,linear"}, {"order", order}, {"repeats", "1"}});
    ASSERT_FALSE(all.empty());
    const std::string suffix = order == std::string("random") ? "" : std::string(".") + order;
    EXPECT_NE(find(all, "hit.line4k.validated" + suffix + ".direct"), nullptr) << order;
    EXPECT_NE(find(all, "hit.linear.walk.half_warp" + suffix + ".direct"), nullptr) << order;
    EXPECT_NE(find(all, "hit.linear.direct"), nullptr) << order;
  }
}

TEST(bench_litmus, runs_the_orders_that_are_named) {
  const auto all = measure("litmus", {{"rounds", "1000"}, {"groups", "2"}, {"orders", "sound,data"}});
  ASSERT_EQ(all.size(), 2u);
  for (auto const& m : all) EXPECT_EQ(m.details.at("refills"), 2000) << m.id;
  EXPECT_NE(refusal("litmus", {{"orders", "hasty"}}).find("no order hasty"), std::string::npos);
}

TEST(bench_litmus, passes_messages_through_queues) {
  const option_texts small = {{"executor", "cpu"}, {"test", "queue"}, {"rounds", "500"}, {"orders", "sound"}};
  const auto all = measure("litmus", with(small, {{"queues", "1"}, {"sharers", "1"}, {"depth", "2"}}));
  ASSERT_EQ(all.size(), 2u);
  for (auto const& m : all) EXPECT_EQ(m.details.at("messages"), 1000) << m.id;  // of two repeats
  EXPECT_NE(refusal("litmus", with(small, {{"groups", "2"}})).find("groups=2"), std::string::npos);
  EXPECT_NE(refusal("litmus", {{"queues", "2"}}).find("queues=2"), std::string::npos);
  EXPECT_NE(refusal("litmus", {{"test", "moon"}}).find("test moon"), std::string::npos);
}

TEST(bench_miss, completes_inline_or_by_a_service) {
  const option_texts small = {{"executor", "cpu"}, {"mib", "1"}, {"line", "512"}, {"repeats", "1"}, {"patterns", "touch"}};
  const auto served = measure("miss", with(small, {{"completion", "service"}, {"service-sms", "2"}}));
  EXPECT_EQ(served[0].params.at("completion"), "service");
  EXPECT_EQ(served[0].params.at("service_units"), "2");
  EXPECT_EQ(measure("miss", small)[0].params.at("completion"), "inline");
  EXPECT_NE(refusal("miss", with(small, {{"completion", "later"}})).find("completion later"), std::string::npos);
  EXPECT_NE(refusal("miss", with(small, {{"service-sms", "2"}})).find("completion is inline"), std::string::npos);
}

TEST(bench_miss, has_every_pattern_and_order) {
  const option_texts small = {{"mib", "1"}, {"line", "512"}, {"repeats", "1"}};
  const auto elements = measure("miss", with(small, {{"patterns", "strided,random,lines,coarsened"}, {"step", "4"}}));
  EXPECT_EQ(elements.size(), 4);
  for (measurement const& m : elements) EXPECT_GE(m.details.at("fills_per_line"), 0.9) << m.id;
  const auto whole = measure("miss", with(small, {{"patterns", "line,touch"}, {"order", "strided"}, {"width", "8"}}));
  ASSERT_EQ(whole.size(), 2);
  EXPECT_EQ(whole[0].id, "miss.line512.strided.host");
  EXPECT_NE(refusal("miss", with(small, {{"width", "12"}})).find("12 lanes to a line"), std::string::npos);
  EXPECT_NE(refusal("miss", with(small, {{"order", "upward"}})).find("order upward"), std::string::npos);
  EXPECT_NE(refusal("miss", with(small, {{"patterns", "plaid"}})).find("no pattern plaid"), std::string::npos);
}

TEST(bench_miss, reads_ahead_of_what_goes_from_line_to_line) {
  const option_texts small = {{"executor", "cpu"}, {"mib", "8"}, {"cache-mib", "4"}, {"line", "512"}, {"repeats", "1"}};
  const auto ahead = measure("miss", with(small, {{"patterns", "linear,random"}, {"ahead-kib", "64"}}));
  ASSERT_EQ(ahead.size(), 2);
  EXPECT_EQ(ahead[0].params.at("read_ahead_lines"), "128");
  EXPECT_GT(ahead[0].details.at("prefetched"), 0.5);
  EXPECT_LT(ahead[1].details.at("prefetched"), 0.01);
  const auto none = measure("miss", with(small, {{"patterns", "linear"}, {"ahead-kib", "0"}}));
  EXPECT_EQ(none[0].details.at("prefetched"), 0);
}

const option_texts tiny_write = {{"mib", "1"}, {"repeats", "1"}, {"queues", "2"}, {"depth", "64"}};

TEST(bench_write, stores_lines_and_elements_over_every_controller) {
  const option_texts settings[] = {{{"controller", "model"}},
                                   {{"controller", "model"}, {"server-sms", "1"}, {"media", "host"}, {"directory", "set"}},
                                   {{"controller", "software"}, {"line", "512"}},
                                   {{"controller", "software"}, {"file", testing::TempDir() + "bench_write"}}};
  for (auto const& setting : settings) {
    const auto all = measure("write", with(tiny_write, setting));
    ASSERT_EQ(all.size(), 3);
    measurement const *const lines = &all[0], *const random = &all[1], *const sequential = &all[2];
    for (measurement const& m : all) {
      EXPECT_TRUE(m.verified);
      EXPECT_GT(bench::median(m.baseline_values), 0) << m.id;
      EXPECT_GE(m.details.at("evicting_share"), 0) << m.id;
      EXPECT_LE(m.details.at("evicting_share"), 1) << m.id;
      EXPECT_GT(m.details.at("drive_writes_per_day"), 0) << m.id;
      EXPECT_LT(m.details.at("least_clean_frames"),
                std::stod(m.params.at("cache_bytes")) / std::stod(m.params.at("line_bytes")));
    }
    EXPECT_EQ(lines->details.at("write_amplification"), 1);
    EXPECT_EQ(lines->details.at("commands_per_line"), 1) << "as the ceiling has it";
    EXPECT_EQ(lines->details.at("bytes_changed"), 1 << 20);
    // A sixteenth of the elements' lines are in the cache already.
    const double line = std::stod(random->params.at("line_bytes"));
    EXPECT_GT(random->details.at("write_amplification"), line / 8 / 4);
    EXPECT_LE(sequential->details.at("write_amplification"), 3);
    EXPECT_LT(sequential->details.at("commands_per_line"), random->details.at("commands_per_line"));
  }
}

TEST(bench_write, refuses_in_one_sentence_what_cannot_be) {
  const std::pair<option_texts, char const*> bad[] = {
      {{{"controller", "abacus"}}, "controller abacus: choose model or software"},
      {{{"file", "here"}}, "a file behind a modelled drive"},
      {{{"line", "1000"}}, "commands of 1000 bytes"},
      {{{"mib", "3"}}, "choose a power of two"},
      {{{"cache-mib", "1"}}, "a cache that holds all of the data"},
      {{{"dirty", "101"}}, "101 percent"},
      {{{"elements", "1000000"}}, "1000000 elements: there are 131072"},
      {{{"patterns", "plaid"}}, "no pattern plaid"},
      {{{"media", "tape"}}, "place tape"},
      {{{"preset", "floppy"}}, "drive floppy"},
      {{{"direct", "perhaps"}}, "direct perhaps"},
      {{{"repeats", "0"}}, "0 repeats"},
  };
  for (auto const& [options, part] : bad) {
    const std::string sentence = refusal("write", with(tiny_write, options));
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  }
}

const option_texts tiny_own = {{"mib", "1"}, {"cache-mib", "0"}, {"line", "512"}, {"reads", "20000"}};

TEST(bench_own, reads_by_an_own_policy_and_from_own_fills_beside_the_stock_cache) {
  const auto all = measure("own", tiny_own);
  ASSERT_EQ(all.size(), 6);
  for (measurement const& m : all) {
    EXPECT_TRUE(m.verified);
    EXPECT_EQ(m.values.size(), 2);
    EXPECT_EQ(m.baseline_values.size(), 2);
    EXPECT_GT(m.details.at("misses_per_read"), 0) << m.id;
    EXPECT_GT(m.details.at("misses_per_read_stock"), 0) << m.id;
  }
  measurement const *const uniform = find(all, "own.policy.uniform"), *const zipf = find(all, "own.policy.zipf"),
                           *const sequential = find(all, "own.fills.sequential");
  ASSERT_TRUE(uniform != nullptr && zipf != nullptr && sequential != nullptr);
  EXPECT_LT(zipf->details.at("misses_per_read"), uniform->details.at("misses_per_read"));
  EXPECT_GT(zipf->details.at("misses_per_read"), zipf->details.at("misses_per_read_stock"))
      << "FIFO takes lines that are used again, CLOCK leaves them";
  EXPECT_NEAR(sequential->details.at("misses_per_read"), 1.0 / 64, 0.001) << "each line once, by its first read";
}

TEST(bench_own, refuses_in_one_sentence_what_cannot_be) {
  EXPECT_NE(refusal("own", with(tiny_own, {{"patterns", "plaid"}})).find("no pattern plaid: choose"), std::string::npos);
  EXPECT_NE(refusal("own", with(tiny_own, {{"repeats", "0"}})).find("0 repeats"), std::string::npos);
  EXPECT_NE(refusal("own", with(tiny_own, {{"mib", "3"}})).find("choose a power of two"), std::string::npos);
}

TEST(bench_io, tickets_pass_32_bits) {
  const auto all =
      measure("io", {{"queues", "1"}, {"first-ticket", "4294966000"}, {"depth", "64"}, {"commands", "5000"}, {"mib", "1"}});
  ASSERT_EQ(all.size(), 1);
  EXPECT_EQ(all[0].id, "fault.wrap");
  EXPECT_GT(all[0].details.at("first_ticket") + all[0].details.at("tickets_used"), 0x1p32);
}

TEST(bench_topics, tells_each_measurement_as_it_comes) {
  std::vector<std::string> told;
  const option_texts options = with(tiny_model, {{"executor", "cpu"}, {"repeats", "1"}, {"block", "512"}});
  const auto stop_at_two = [&](measurement const& m) {
    told.push_back(m.id);
    if (told.size() == 2) throw std::runtime_error("enough");
  };
  EXPECT_THROW(bench::run_topic("model", options, {}, stop_at_two), std::runtime_error);
  EXPECT_EQ(told, (std::vector<std::string>{"model.512.hbm.read", "model.512.hbm.write"}));
}

}  // namespace
}  // namespace penstock::test
