// Volumes: where bytes lie, caches over several namespaces and controllers, and what is refused.
#include "penstock/controller/model_controller.hpp"
#include "penstock/controller/software_controller.hpp"
#include "penstock/host/error.hpp"
#include "penstock/runtime/line_cache.hpp"
#include "support/stamped_media.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <fstream>
#include <set>
#include <tuple>

#include <unistd.h>

namespace penstock::test {
namespace {

TEST(volume, stripes_go_round_the_members_and_leave_no_gap) {
  for (const u32 members : {1u, 2u, 3u, 5u, 16u}) {
    volume_view volume;
    volume.layout = volume_layout::striped;
    volume.members_count = members;
    volume.stripe_shift = 12;
    std::vector<u64> next(members, 0);
    for (u64 at = 0; at < 100 * 4096; at += 512) {
      const auto place = volume.locate(byte_offset{at}, 7);
      ASSERT_EQ(at / 4096 % members, place.member);
      ASSERT_EQ(next[place.member], value(place.offset));
      next[place.member] += 512;
    }
  }
}

TEST(volume, replicas_hold_everything_and_share_the_reads) {
  volume_view volume;
  volume.layout = volume_layout::replicated;
  volume.members_count = 3;
  for (u32 hint = 0; hint < 9; ++hint) {
    const auto place = volume.locate(byte_offset{123456}, hint);
    EXPECT_EQ(hint % 3, place.member);
    EXPECT_EQ(123456u, value(place.offset));
  }
}

/// The media of one dataset, dealt out to the members of a volume.
struct dealt_media {
  dealt_media(u64 bytes, volume_layout layout, u32 members, u64 stripe) : whole(round_up(bytes, 512)), parts(members) {
    auto const* from = whole.bytes().data();
    for (u64 at = 0; at < whole.size(); at += 512) {
      for (u32 m = 0; m < members; ++m) {
        if (layout == volume_layout::striped && at / stripe % members != m) continue;
        parts[m].insert(parts[m].end(), from + at, from + at + 512);
      }
    }
    for (auto& part : parts) part.resize(std::max<u64>(part.size(), 512));
  }
  stamped_media whole;
  std::vector<std::vector<std::byte>> parts;
};

/// A directory of its own that goes away with its files.
class scratch_directory {
 public:
  scratch_directory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "penstock_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = pattern;
  }
  ~scratch_directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string write(std::string const& name, std::span<std::byte const> bytes) const {
    const std::string path = path_ / name;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<char const*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

 private:
  std::filesystem::path path_;
};

enum class backend { one_model, models, files };

struct volume_case {
  volume_layout layout;
  u32 members;
  u64 stripe;
  u64 line;
  u64 bytes;  ///< of the dataset
};

class volume_reads_test : public testing::TestWithParam<std::tuple<volume_case, backend, bool>> {
 protected:
  volume_spec make_volume(dealt_media& media, backend kind) {
    volume_spec volume{std::get<0>(GetParam()).layout, {}, std::get<0>(GetParam()).stripe};
    for (u32 m = 0; m < media.parts.size(); ++m) {
      if (kind == backend::files) {
        auto controller = std::make_unique<software_controller>();
        const u32 id = controller->add_namespace({.path = directory_.write("part" + std::to_string(m), media.parts[m])});
        volume.members.push_back({controller.get(), id});
        controllers_.push_back(std::move(controller));
        continue;
      }
      if (kind == backend::models || m == 0) models_.push_back(std::make_unique<model_controller>(model_options{}));
      volume.members.push_back({models_.back().get(), models_.back()->add_namespace(media.parts[m])});
    }
    return volume;
  }

  scratch_directory directory_;
  std::vector<std::unique_ptr<controller>> controllers_;
  std::vector<std::unique_ptr<model_controller>> models_;
};

TEST_P(volume_reads_test, gives_the_bytes_of_the_dataset_and_asks_all_members) {
  auto const& [test, kind, bounce] = GetParam();
  dealt_media media(test.bytes, test.layout, test.members, test.stripe);
  const volume_spec volume = make_volume(media, kind);
  const auto on = open_executor("cpu", 1);
  cache_options options;
  options.line_bytes = test.line;
  options.bytes = 5 * test.line;
  options.queues = 2;
  options.queue_depth = 16;
  options.bounce = bounce;
  line_cache cache(*on, {{"volume", test.bytes, volume}}, options);
  const array_view<u64> words = cache.array<u64>(0, 0, test.bytes / 8);
  for (u64 i = 0; i < words.size(); i += 8) ASSERT_EQ(stamp(i), words[i]) << "word " << i;
  ASSERT_EQ(stamp(words.size() - 1), words[words.size() - 1]);
  cache.check_faults();
  for (auto const& model : models_) {
    const u64 share = cache.stats(0).fills / models_.size();
    EXPECT_NEAR(static_cast<double>(share), static_cast<double>(model->counts().fetched - test.members), 16.0 + test.members);
    EXPECT_GT(model->counts().fetched, 3u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    volumes, volume_reads_test,
    testing::Combine(testing::Values(volume_case{volume_layout::single, 1, 1 << 20, 4096, 100008},
                                     volume_case{volume_layout::striped, 2, 4096, 4096, 40 * 4096},          // line = stripe
                                     volume_case{volume_layout::striped, 3, 16384, 4096, 20 * 16384 + 520},  // cut short
                                     volume_case{volume_layout::striped, 4, 8192, 512, 19 * 8192},           // uneven shares
                                     volume_case{volume_layout::striped, 2, 65536, 65536, 7 * 65536 + 8},
                                     volume_case{volume_layout::striped, 1, 1 << 20, 512, 30000},
                                     volume_case{volume_layout::replicated, 1, 1 << 20, 512, 30000},
                                     volume_case{volume_layout::replicated, 3, 1 << 20, 4096, 60 * 4096 + 16}),
                     testing::Values(backend::one_model, backend::models, backend::files), testing::Bool()));

/// What the cache says of a volume, "" if it takes it.
std::string refusal(std::vector<dataset_spec> const& datasets, u64 line = 4096, u64 bytes = 1 << 20) {
  const auto on = open_executor("cpu", 1);
  cache_options options;
  options.line_bytes = line;
  options.bytes = bytes;
  options.queues = 1;
  options.queue_depth = 8;
  try {
    const line_cache cache(*on, datasets, options);
    return "";
  } catch (error const& refused) {
    EXPECT_EQ(error_kind::bad_input, refused.kind());
    return refused.what();
  }
}

class volume_refusals_test : public testing::Test {
 protected:
  volume_refusals_test() : media_(4 * 65536) {
    model_.add_namespace(media_);
    model_.add_namespace(std::span(media_).first(65536));
    model_.add_namespace(media_, 4096);
  }
  std::string ask(u64 bytes, volume_spec const& volume, u64 line = 4096) { return refusal({{"x", bytes, volume}}, line); }

  std::vector<std::byte> media_;
  model_controller model_{{}};
};

TEST_F(volume_refusals_test, members_must_be_of_a_number_that_suits_the_layout) {
  using enum volume_layout;
  EXPECT_EQ("open x: 0 members: a volume has 1 to 16", ask(4096, {single, {}}));
  EXPECT_EQ("open x: 0 members: a volume has 1 to 16", ask(4096, {striped, {}}));
  EXPECT_EQ("open x: 17 members: a volume has 1 to 16",
            ask(4096, {replicated, std::vector<volume_spec::member>(17, {&model_, 1})}));
  EXPECT_EQ("open x: a single volume has one member: ask for striped or replicated",
            ask(4096, {single, {{&model_, 1}, {&model_, 2}}}));
  EXPECT_EQ("", ask(4096, {replicated, std::vector<volume_spec::member>(16, {&model_, 1})}));
}

TEST_F(volume_refusals_test, stripes_must_be_powers_of_two_that_hold_a_line) {
  const std::vector<volume_spec::member> members{{&model_, 1}, {&model_, 1}};
  for (const u64 stripe : {0u, 2048u, 12288u}) {
    EXPECT_EQ("open x: stripes of " + std::to_string(stripe) + " bytes: choose a power of two that holds a line",
              ask(4096, {volume_layout::striped, members, stripe}));
  }
  EXPECT_EQ("", ask(4096, {volume_layout::striped, members, 4096}));
}

TEST_F(volume_refusals_test, a_line_holds_a_block_and_fits_a_command) {
  EXPECT_EQ("open x: blocks of 4096 bytes are larger than lines of 512: ask for larger lines",
            ask(4096, {volume_layout::single, {{&model_, 3}}}, 512));
  EXPECT_EQ("", ask(4096, {volume_layout::single, {{&model_, 3}}}, 4096));
  model_options small;
  small.transfer_bytes = 8192;
  model_controller narrow(small);
  narrow.add_namespace(media_);
  EXPECT_EQ("open x: lines of 16384 bytes: its controller moves at most 8192 bytes at once; ask for smaller lines",
            ask(4096, {volume_layout::single, {{&narrow, 1}}}, 16384));
  EXPECT_EQ("", ask(4096, {volume_layout::single, {{&narrow, 1}}}, 8192));
}

TEST_F(volume_refusals_test, each_member_must_hold_its_share) {
  using enum volume_layout;
  EXPECT_EQ("open x: a member holds 65536 bytes, but the dataset needs 65537 there", ask(65537, {single, {{&model_, 2}}}));
  EXPECT_EQ("", ask(65536, {single, {{&model_, 2}}}));
  EXPECT_EQ("open x: a member holds 65536 bytes, but the dataset needs 131072 there",
            ask(131072, {replicated, {{&model_, 1}, {&model_, 2}}}));
  // Three stripes of 64 KiB on two members: the first has two of them, though half of the bytes is less.
  const u64 bytes = 3 * 65536;
  EXPECT_EQ("open x: a member holds 65536 bytes, but the dataset needs 131072 there",
            ask(bytes, {striped, {{&model_, 2}, {&model_, 1}}, 65536}));
  EXPECT_EQ("", ask(bytes, {striped, {{&model_, 1}, {&model_, 2}}, 65536}));
  EXPECT_EQ("open x: a member holds 65536 bytes, but the dataset needs 65544 there",
            ask(2 * 65536 + 8, {striped, {{&model_, 2}, {&model_, 2}}, 65536}));
}

TEST_F(volume_refusals_test, a_cache_serves_something_and_has_room_for_a_line) {
  EXPECT_EQ("create a cache: no dataset: name one or more that it is to serve", refusal({}));
  const std::vector<dataset_spec> data{{"x", 4096, {volume_layout::single, {{&model_, 1}}}}};
  for (const u64 line : {0u, 256u, 5000u, 131072u}) {
    EXPECT_EQ("create a cache: line size " + std::to_string(line) + " bytes: choose a power of two from 512 B to 64 KiB",
              refusal(data, line));
  }
  EXPECT_EQ("create a cache: its 4095 bytes hold no line of 4096 bytes: make the cache larger or the lines smaller",
            refusal(data, 4096, 4095));
}

}  // namespace
}  // namespace penstock::test
