// The host's half of lsh_body: records in a file, their index, queries near some of them, and what plain code finds.
#pragma once

#include "device/lsh_body.hpp"
#include "libs/bench/collage_host.hpp"
#include "libs/lsh/build_index.hpp"
#include "support/scratch_files.hpp"

#include <fstream>

namespace penstock::test {

class lsh_fixture {
 public:
  static constexpr u32 dimensions = 22, record_bytes = 112, records = 400, tables = 5, nearest = 3, fallback = 2;
  static constexpr u32 stride = 24;

  /// `room`: of a shortlist.
  lsh_fixture(executor& on, u32 groups, u32 room) : groups_(groups), room_(room) {
    make_records();
    lsh::build_options how;
    how.executor = "cpu";
    how.dimensions = dimensions;
    how.record_bytes = record_bytes;
    how.tables = tables;
    how.projections_per_table = 3;
    how.candidates = 40;
    header_ = lsh::build_index(scratch_.path(), how);
    host_ = std::make_unique<bench::host_index>(scratch_.path(), 1, room);
    folder_options options;
    options.cache.bytes = 1 << 20;
    options.cache.line_bytes = 512;
    folder_ = std::make_unique<folder>(on, scratch_.path(), options);
    records_ = lsh::open_in_kernel(on, *folder_, scratch_.path(), lsh::records_name);
    entries_ = lsh::open_in_kernel(on, *folder_, scratch_.path(), lsh::index_name);
    constexpr auto local = memory_kind::local;
    memory_resource& memory = on.memory();
    const auto offsets = lsh::read_sections(scratch_.path()).offsets;
    offsets_ = {memory, local, offsets.size()};
    offsets_.write(offsets);
    queries_ = {memory, local, u64{groups} * stride};
    keys_ = {memory, local, u64{groups} * tables};
    seen_ = {memory, local, u64{groups} * slots()};
    lists_ = {memory, local, u64{groups} * room};
    counts_ = {memory, local, groups};
    cut_ = {memory, local, 1};
    failed_ = {memory, local, 1};
    distances_ = {memory, local, u64{groups} * room};
    ids_ = {memory, local, u64{groups} * nearest};
    nearest_distances_ = {memory, local, u64{groups} * nearest};
    ran_ = {memory, local, groups};
  }

  lsh_body body() const {
    const lsh::file_entries entries{folder_->view(), entries_, header_.entries_at()};
    return {{entries, offsets_.data(), keys_.data(), records, tables, header_.bucket_bits, room_, failed_.data()},
            {entries, offsets_.data(), keys_.data(), records, tables, header_.bucket_bits, room_, fallback, seen_.data(),
             slots(), lists_.data(), counts_.data(), cut_.data(), failed_.data()},
            {{folder_->view(), records_, record_bytes},
             queries_.data(),
             dimensions,
             stride,
             lists_.data(),
             counts_.data(),
             0,
             groups_,
             room_,
             distances_.data(),
             failed_.data()},
            {lists_.data(), counts_.data(), 0, room_, distances_.data(), nearest, ids_.data(), nearest_distances_.data()},
            ran_.data()};
  }

  void prepare(run_shape shape) {
    asked_.assign(u64{groups_} * dimensions, 0);
    std::vector<float> padded(u64{groups_} * stride);
    for (u32 q = 0; q < groups_; ++q) {
      const u64 drawn = random_word(shape.seed, 1, q);
      for (u32 d = 0; d < dimensions; ++d) {
        const float near = content_[drawn % records * dimensions + d] + static_cast<float>(random_word(shape.seed, q, d) % 3);
        asked_[q * dimensions + d] = padded[q * stride + d] = drawn >> 60 == 0 ? 40.0f * static_cast<float>(d) : near;
      }
    }
    expected_keys_ = host_->keys_of(asked_);
    queries_.write(padded);
    keys_.write(expected_keys_);
    ran_.write(std::vector<u32>(groups_));
    cut_.write(std::vector<u32>(1));
  }

  void verify(check_report& report) const {
    std::vector<u32> ran(groups_), counts(groups_), lists(lists_.size()), ids(ids_.size()), one(1);
    std::vector<float> distances(distances_.size()), best(nearest_distances_.size());
    ran_.read(ran);
    counts_.read(counts);
    lists_.read(lists);
    ids_.read(ids);
    distances_.read(distances);
    nearest_distances_.read(best);
    failed_.read(one);
    PENSTOCK_CHECK_EQ(report, 0u, one[0]);
    std::vector<u32> set = host_->empty_set(), list;
    for (u32 q = 0; q < groups_; ++q) {
      if (ran[q] == 0) continue;
      host_->candidates_of(expected_keys_.data() + u64{q} * tables, set, list);
      if (list.empty()) list = {0, records / fallback};
      PENSTOCK_CHECK_EQ(report, static_cast<u32>(list.size()), counts[q]);
      std::vector<std::pair<float, u32>> order;
      for (u32 c = 0; c < list.size() && c < counts[q]; ++c) {
        PENSTOCK_CHECK_EQ(report, list[c], lists[u64{q} * room_ + c]);
        const float expected = bench::squared_distance(asked_.data() + u64{q} * dimensions, host_->record(list[c]), dimensions);
        PENSTOCK_CHECK_EQ(report, std::bit_cast<u32>(expected), std::bit_cast<u32>(distances[u64{q} * room_ + c]));
        order.emplace_back(expected, list[c]);
      }
      std::sort(order.begin(), order.end());
      order.resize(nearest, {INFINITY, lsh::no_id});
      for (u32 j = 0; j < nearest; ++j) {
        PENSTOCK_CHECK_EQ(report, order[j].second, ids[u64{q} * nearest + j]);
        PENSTOCK_CHECK_EQ(report, std::bit_cast<u32>(order[j].first), std::bit_cast<u32>(best[u64{q} * nearest + j]));
      }
    }
  }

 private:
  u32 slots() const { return std::bit_ceil(2 * room_ + 64); }

  // Whole numbers, in groups of which some are equal, so that sums are exact and distances tie.
  void make_records() {
    std::vector<float> all(u64{records} * record_bytes / sizeof(float), -1);
    content_.resize(u64{records} * dimensions);
    for (u32 k = 0; k < records; ++k) {
      const u64 centre = random_word(3, 5, k) % 12;
      for (u32 d = 0; d < dimensions; ++d) {
        const float at = static_cast<float>(random_word(7, centre, d) % 200 + random_word(9, k / 2, d) % 4);
        content_[k * dimensions + d] = all[k * (record_bytes / sizeof(float)) + d] = at;
      }
    }
    std::ofstream(scratch_ / lsh::records_name, std::ios::binary)
        .write(reinterpret_cast<char const*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(float)));
  }

  u32 groups_, room_;
  test_support::scratch_folder scratch_;
  lsh::index_header header_;
  std::unique_ptr<bench::host_index> host_;
  std::vector<float> content_, asked_;
  std::vector<u64> expected_keys_;
  std::unique_ptr<folder> folder_;
  file_descriptor records_, entries_;
  buffer<float> queries_, distances_, nearest_distances_;
  buffer<u64> keys_;
  buffer<u32> offsets_, seen_, lists_, counts_, cut_, failed_, ids_, ran_;
};

}  // namespace penstock::test
