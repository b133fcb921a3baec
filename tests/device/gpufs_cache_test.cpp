// GPUfs's cache by lone threads and emulated warps, with each of its options.
#include "libs/bench/gpufs_cache.hpp"
#include "device/gpufs_cache_test_body.hpp"
#include "support/run_everywhere.hpp"
#include "support/scratch_files.hpp"

namespace penstock::test {
namespace {

using bench::gpufs_allocation;
using bench::gpufs_cache;
using bench::gpufs_error;
using bench::gpufs_lookup;
using bench::gpufs_options;
using bench::gpufs_transfers;

constexpr u32 max_groups = 256, file_count = 2;
constexpr u64 file_bytes = 64 * 512 + 100;  // the last page is a part of one

class gpufs_files {
 public:
  gpufs_files() {
    for (u32 f = 0; f < file_count; ++f) {
      std::string text(file_bytes, '\0');
      for (u64 i = 0; i < file_bytes; ++i) text[i] = static_cast<char>(gpufs_byte(f, i));
      paths_.push_back(scratch_ / std::to_string(f));
      test_support::put_file(paths_.back(), text);
    }
  }
  std::vector<std::string> const& paths() const { return paths_; }

 private:
  test_support::scratch_folder scratch_;
  std::vector<std::string> paths_;
};

/// A fresh cache for each run.
template <class Body>
struct on_gpufs : Body {
  gpufs_files* files;
  gpufs_options options;
  u32 rounds;
  std::shared_ptr<executor> on = open_executor("cpu", 1);
  std::shared_ptr<buffer<std::byte>> rooms =
      std::make_shared<buffer<std::byte>>(on->memory(), memory_kind::local, max_groups* gpufs_reads_body::room);
  std::shared_ptr<gpufs_cache> cache{};

  on_gpufs(gpufs_files& f, gpufs_options const& o, u32 r) : Body{}, files(&f), options(o), rounds(r) {}

  void prepare(run_shape) {
    cache.reset();
    cache = std::make_shared<gpufs_cache>(*on, files->paths(), options);
    gpufs_reads_body body{cache->view(), rooms->data(), file_count, file_bytes, rounds};
    if constexpr (std::is_same_v<Body, gpufs_pins_body>) {
      Body::reads = body;
    } else {
      static_cast<gpufs_reads_body&>(*this) = body;
    }
  }
  void verify(check_report& report, run_shape) const {
    PENSTOCK_CHECK_EQ(report, 0u, cache->pinned_frames());
    const bench::gpufs_counts counts = cache->counts();
    PENSTOCK_CHECK_EQ(report, counts.insertions, cache->traffic().pages);
    PENSTOCK_CHECK(report, counts.evictions <= counts.insertions);
    PENSTOCK_CHECK(report, counts.insertions - counts.evictions <= cache->frames());
  }
};

std::string gpufs_name(gpufs_options const& o) {
  return std::string(o.lookup == gpufs_lookup::hash_table ? "table" : "tree") +
         (o.allocation == gpufs_allocation::ring ? "_ring" : "_list") + std::to_string(o.allocators) +
         (o.transfers == gpufs_transfers::batched ? "_batched" : "_single") + std::to_string(o.workers);
}

std::vector<gpufs_options> gpufs_combinations() {
  std::vector<gpufs_options> all;
  gpufs_options o;
  o.page_bytes = 512;
  o.cache_bytes = 16 * 512;
  o.slots = 64;
  for (o.lookup = gpufs_lookup::radix_tree;; o.lookup = gpufs_lookup::hash_table) {
    for (const auto allocation : {gpufs_allocation::locked_list, gpufs_allocation::ring}) {
      for (const u32 allocators : {1u, 4u}) {
        for (const auto transfers : {gpufs_transfers::single, gpufs_transfers::batched}) {
          for (const u32 workers : {0u, 2u}) {
            if (workers == 0 && transfers == gpufs_transfers::batched) continue;
            o.allocation = allocation, o.allocators = allocators, o.transfers = transfers, o.workers = workers;
            all.push_back(o);
          }
        }
      }
    }
    if (o.lookup == gpufs_lookup::hash_table) return all;
  }
}

class gpufs_cache_test : public testing::TestWithParam<gpufs_options> {
 protected:
  gpufs_files files;
};

constexpr everywhere how = {.lone_threads = 4, .warps = 1, .partitions = 1};

TEST_P(gpufs_cache_test, each_byte_is_the_files) {
  run_everywhere(on_gpufs<gpufs_reads_body>(files, GetParam(), yields_are_dear ? 4 : 10), how);
}

TEST_P(gpufs_cache_test, lone_threads_evict_from_each_other) {
  on_gpufs<gpufs_reads_body> body(files, GetParam(), yields_are_dear ? 100 : 400);
  run_lone(body, 6, test_seed());
  EXPECT_GT(body.cache->counts().evictions, 0u);
}

TEST_P(gpufs_cache_test, a_block_reads_as_one_group) {
  on_gpufs<gpufs_reads_body> body(files, GetParam(), 4);
  run_block(body, 40, test_seed());
}

TEST_P(gpufs_cache_test, a_pinned_page_stays) {
  gpufs_options options = GetParam();
  options.cache_bytes = 64 * 512;  // each group of a run may hold one, of one allocator
  on_gpufs<gpufs_pins_body> body(files, options, 8);
  run_lone(body, 8, test_seed());
  run_warps(body, "one whole warp", {{0xffffffffu}}, test_seed());
}

INSTANTIATE_TEST_SUITE_P(, gpufs_cache_test, testing::ValuesIn(gpufs_combinations()),
                         [](auto const& each) { return gpufs_name(each.param); });

struct gpufs_alone : testing::Test {
  gpufs_files files;
  std::unique_ptr<executor> on = open_executor("cpu", 1);
  lone_thread g;
};

TEST_F(gpufs_alone, a_wait_for_a_frame_ends_at_the_deadline) {
  for (const auto allocation : {gpufs_allocation::locked_list, gpufs_allocation::ring}) {
    gpufs_options options;
    options.page_bytes = 512, options.cache_bytes = 2 * 512, options.workers = 0;
    options.allocation = allocation;
    options.timeout_ns = 5 * one_millisecond_ns;
    gpufs_cache cache(*on, files.paths(), options);
    const bench::gpufs_page first = cache.view().pin(g, 0, 0, 0), second = cache.view().pin(g, 0, 0, 1);
    EXPECT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(gpufs_error::no_frame, cache.view().pin(g, 0, 1, 7).error);
    cache.view().unpin(g, first);
    const bench::gpufs_page third = cache.view().pin(g, 0, 1, 7);
    EXPECT_TRUE(third.ok()) << "the page was given up, not lost";
    EXPECT_EQ(first.frame, third.frame);
    cache.view().unpin(g, second);
    cache.view().unpin(g, third);
    EXPECT_EQ(0u, cache.pinned_frames());
  }
}

TEST_F(gpufs_alone, a_file_that_was_cut_is_an_error_and_its_page_is_asked_for_again) {
  gpufs_options options;
  options.page_bytes = 512, options.cache_bytes = 4 * 512, options.workers = 0;
  for (const auto lookup : {gpufs_lookup::radix_tree, gpufs_lookup::hash_table}) {
    options.lookup = lookup;
    gpufs_cache cache(*on, files.paths(), options);
    std::string const& path = files.paths()[0];
    const std::string whole = test_support::file_content(path);
    std::filesystem::resize_file(path, 512);
    std::byte byte{};
    EXPECT_EQ(gpufs_error::io, cache.view().read(g, 0, 0, 600, 1, &byte));
    test_support::put_file(path, whole);
    EXPECT_EQ(gpufs_error::none, cache.view().read(g, 0, 0, 600, 1, &byte));
    EXPECT_EQ(gpufs_byte(0, 600), static_cast<u8>(byte));
    EXPECT_EQ(0u, cache.pinned_frames());
  }
}

TEST_F(gpufs_alone, options_that_cannot_be_are_refused) {
  const auto refused = [&](auto change) {
    gpufs_options options;
    change(options);
    try {
      const gpufs_cache cache(*on, files.paths(), options);
    } catch (error const& e) {
      return e.kind() == error_kind::bad_input;
    }
    return false;
  };
  EXPECT_FALSE(refused([](auto&) {}));
  EXPECT_TRUE(refused([](auto& o) { o.page_bytes = 1000; }));
  EXPECT_TRUE(refused([](auto& o) { o.page_bytes = 2 << 20; }));
  EXPECT_TRUE(refused([](auto& o) { o.allocators = 65; }));
  EXPECT_TRUE(refused([](auto& o) { o.allocators = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.cache_bytes = 0; }));
  EXPECT_TRUE(refused([](auto& o) { o.workers = 9; }));
  EXPECT_TRUE(refused([](auto& o) { o.workers = 0, o.transfers = gpufs_transfers::batched; }));
  EXPECT_TRUE(refused([](auto& o) { o.slots = 0; }));
  EXPECT_THROW(gpufs_cache(*on, {"/nowhere/at/all"}, {}), error);
}

}  // namespace
}  // namespace penstock::test
