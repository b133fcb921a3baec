// Conditions that are ranges of columns' values and nothing else, all of which must hold: no instructions, but for each column
// a loop of its own over the rows of a zone, whose loads do not wait for each other. Values that were packed are compared as
// they lie.
#pragma once

#include "libs/columns/column_view.hpp"
#include "penstock/group/lone_thread.hpp"
#include "penstock/group/thread_group.hpp"

namespace penstock::columns {

/// Values that a column must have: from `low` to `high`, as range_key has them. A null is not in it.
struct column_range {
  static constexpr u32 no_note = ~0u;
  u32 column = 0;
  u32 note = no_note;  ///< of the zone notes that is about this column
  std::int64_t low = 0, high = 0;
};

/// Whether rows can be marked by a column's ranges: each of its values is a number, and none an error.
PENSTOCK_FN constexpr bool has_range_keys(encoding how) {
  return how != encoding::uint64 && how != encoding::int128 && how != encoding::bits;
}

/// The sortable value that a packed one stands for.
PENSTOCK_FN inline std::int64_t sortable_of_packed(column_view const& column, std::int64_t stored) {
  const u64 value = column.widened(column.base + static_cast<u64>(stored));
  return column.divisor == 0 ? static_cast<std::int64_t>(value) : sortable(std::bit_cast<double>(value));
}

/// Sortable bounds as those of range_key. Both are in order, so each end is found by halving.
inline column_range as_keys(column_view const& column, column_range range) {
  if (column.how != encoding::packed) return range;
  const std::int64_t count = std::int64_t{1} << column.packed_bits;
  const auto first_from = [&](auto const& reaches) {
    std::int64_t begin = 0, end = count;
    while (begin < end) {
      const std::int64_t middle = begin + (end - begin) / 2;
      reaches(sortable_of_packed(column, middle)) ? end = middle : begin = middle + 1;
    }
    return begin;
  };
  const std::int64_t low = first_from([&](std::int64_t value) { return value >= range.low; });
  const std::int64_t high = first_from([&](std::int64_t value) { return value > range.high; }) - 1;
  range.low = low;
  range.high = high;
  return range;
}

namespace detail {

/// As column_view::unpacked, neither shifted by the base nor divided.
PENSTOCK_FN inline std::int64_t packed_at(u64 const* words, u32 bits, u64 i) {
  if (bits == 0) return 0;
  const u64 bit = i * bits, word = bit / 64;
  const auto within = static_cast<u32>(bit % 64);
  u64 low = words[word] >> within;
  if (within + bits > 64) low |= words[word + 1] << (64 - within);
  return static_cast<std::int64_t>(low & (~u64{0} >> (64 - bits)));
}

template <class T, class Use>
PENSTOCK_FN inline void with_plain_keys(column_view const& column, column_facts const& facts, Use const& use) {
  const auto key = [](T v) {
    if constexpr (std::is_floating_point_v<T>) {
      return sortable(static_cast<double>(v));
    } else {
      return static_cast<std::int64_t>(v);
    }
  };
  if (facts.is_resident || column.bytes.is_resident()) {
    auto const* const values = reinterpret_cast<T const*>(column.bytes.resident());
    use([=](u64 i) { return key(values[i]); });
  } else {
    use([&](u64 i) { return key(std::bit_cast<T>(column.at<piece_of<sizeof(T)>>(i))); });
  }
}

/// Calls use(range_key): what a row's value is compared as.
template <class Use>
PENSTOCK_FN inline void with_range_keys(column_view const& column, column_facts const& facts, Use const& use) {
  switch (facts.how) {
    case encoding::int8: return with_plain_keys<std::int8_t>(column, facts, use);
    case encoding::int16: return with_plain_keys<std::int16_t>(column, facts, use);
    case encoding::int32: return with_plain_keys<std::int32_t>(column, facts, use);
    case encoding::uint8: return with_plain_keys<u8>(column, facts, use);
    case encoding::uint16: return with_plain_keys<u16>(column, facts, use);
    case encoding::uint32: return with_plain_keys<u32>(column, facts, use);
    case encoding::float32: return with_plain_keys<float>(column, facts, use);
    case encoding::float64: return with_plain_keys<double>(column, facts, use);
    case encoding::packed:
      if (facts.is_resident || column.bytes.is_resident()) {
        auto const* const words = reinterpret_cast<u64 const*>(column.bytes.resident());
        const u32 bits = facts.packed_bits;
        return use([=](u64 i) { return packed_at(words, bits, i); });
      }
      return use([&](u64 i) { return static_cast<std::int64_t>(column.packed_raw(i, facts)); });
    default: return with_plain_keys<std::int64_t>(column, facts, use);
  }
}

/// Which of up to 32 rows from `first` on are in a range. For one thread: without branches, so that it is compiled for vectors.
template <class Key>
PENSTOCK_FN inline u32 rows_in_range(Key const& key, column_range const& range, u64 first, u32 count, std::int64_t& low,
                                     std::int64_t& high, bool notes) {
  alignas(32) u8 in[32] = {};
  if (notes) {
    for (u32 k = 0; k < count; ++k) {
      const std::int64_t v = key(first + k);
      in[k] = static_cast<u8>((v >= range.low) & (v <= range.high));
      low = v < low ? v : low;
      high = v > high ? v : high;
    }
  } else if (count == 32) {
    for (u32 k = 0; k < 32; ++k) {
      const std::int64_t v = key(first + k);
      in[k] = static_cast<u8>((v >= range.low) & (v <= range.high));
    }
  } else {
    for (u32 k = 0; k < count; ++k) {
      const std::int64_t v = key(first + k);
      in[k] = static_cast<u8>((v >= range.low) & (v <= range.high));
    }
  }
  u32 word = 0;
  for (u32 byte = 0; byte < 4; ++byte) {
    u64 eight;
    __builtin_memcpy(&eight, in + 8 * byte, sizeof eight);
    word |= static_cast<u32>(eight * 0x0102040810204080ull >> 56) << 8 * byte;
  }
  return word;
}

}  // namespace detail

/// Calls use(words[index]). A thread's few words are in registers, which are chosen and have no address.
template <u32 Words, class Word, class Use>
PENSTOCK_FORCE_INLINE void with_word(Word (&words)[Words], u32 index, Use const& use) {
  if constexpr (Words > 4) {
    use(words[index]);
  } else {
    PENSTOCK_UNROLL
    for (u32 w = 0; w < Words; ++w) {
      if (w == index) use(words[w]);
    }
  }
}

/// Rows that a warp has in flight for each of its lanes.
inline constexpr u32 range_loads_in_flight = 8;

/// Takes the rows out of `words` that are not in a range. Word w of the zone is words[w / size(g)] of lane w % size(g). What
/// the column has in the zone's rows goes to `noted`, sortable, where that is no null pointer. `facts`: of the column.
/// Collective; a warp or a lone thread.
template <u32 Words, class Range, thread_group G>
PENSTOCK_FN inline void keep_range(G const& g, column_view const& column, column_facts const& facts, column_range const& range,
                                   u64 first, u32 rows, u32 (&words)[Words], Range* noted) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  std::int64_t low = most, high = ~most;
  detail::with_range_keys(column, facts, [&](auto const& key) {
    if constexpr (std::is_same_v<G, lone_thread>) {
      for (u32 w = 0; 32 * w < rows; ++w) {
        if (words[w] == 0 && noted == nullptr) continue;
        const u32 count = rows - 32 * w < 32 ? rows - 32 * w : 32;
        if (column.nullable == 0) {
          words[w] &= detail::rows_in_range(key, range, first + 32 * w, count, low, high, noted != nullptr);
          continue;
        }
        u32 in = 0;
        for (u32 k = 0; k < count; ++k) {
          if (!column.is_valid(first + 32 * w + k)) continue;
          const std::int64_t v = key(first + 32 * w + k);
          in |= (v >= range.low && v <= range.high ? 1u : 0u) << k;
          low = v < low ? v : low;
          high = v > high ? v : high;
        }
        words[w] &= in;
      }
    } else {
      constexpr u32 step = range_loads_in_flight;
      const u32 lane = index_in(g), width = size(g);
      for (u32 n = 0; 32 * n < rows; n += step) {
        u32 mine = 0;
        with_word(words, n / width, [&](u32 word) { mine = word; });
        if (noted == nullptr && !any(g.ballot(mine != 0 && lane >= n % width && lane < n % width + step))) continue;
        std::int64_t value[step];
        bool there[step];
        PENSTOCK_UNROLL
        for (u32 k = 0; k < step; ++k) {
          const u32 row = 32 * (n + k) + lane;
          there[k] = row < rows && column.is_valid(first + row, facts);
          value[k] = there[k] ? key(first + row) : 0;
        }
        PENSTOCK_UNROLL
        for (u32 k = 0; k < step; ++k) {
          const u32 in = static_cast<u32>(g.ballot(there[k] && value[k] >= range.low && value[k] <= range.high));
          if ((n + k) % width == lane) with_word(words, (n + k) / width, [&](u32& word) { word &= in; });
          if (noted != nullptr && there[k]) {
            low = value[k] < low ? value[k] : low;
            high = value[k] > high ? value[k] : high;
          }
        }
      }
    }
  });
  if (noted == nullptr || low > high) return;
  const bool packed = facts.how == encoding::packed;
  noted->low = packed ? sortable_of_packed(column, low) : low;
  noted->high = packed ? sortable_of_packed(column, high) : high;
}

}  // namespace penstock::columns
