// The interpreter: an instruction at a time for a batch of rows, so that what it takes to decode one is shared. A thread of a
// CPU has batches of hundreds of rows that lie one after another, whose loops its compiler turns into vector instructions; one
// of a GPU has few, which lie apart by the width of its warp.
#pragma once

#include "libs/columns/column_view.hpp"
#include "libs/columns/key_slots.hpp"
#include "libs/columns/program.hpp"

#include <cmath>

namespace penstock::columns {

template <u32 V>
struct registers {
  u64 value[max_registers][V];
  u8 valid[max_registers][V];
};

/// Which rows of a piece a batch has. Those that are not `active` are not there, and nothing of them is read.
template <u32 V>
struct row_batch {
  u64 row[V];
  u8 active[V];
  u32 count = 0;                         ///< rows from here on are not active; of a GPU's thread V
  bool together = false;                 ///< rows follow row[0], the first `count` of them; the others of `row` say nothing
  column_view const* columns = nullptr;  ///< of the piece

  PENSTOCK_FN u64 at(u32 k) const { return together ? row[0] + k : row[k]; }
  /// How many to look at, of a GPU's thread a constant.
  PENSTOCK_FN u32 size() const {
    if constexpr (V > 32) {
      return count;
    } else {
      return V;
    }
  }
};

namespace detail {

PENSTOCK_FN inline double as_number(u64 bits) { return std::bit_cast<double>(bits); }
PENSTOCK_FN inline u64 bits_of_number(double v) { return std::bit_cast<u64>(v); }
PENSTOCK_FN inline std::int64_t as_integer(u64 bits) { return static_cast<std::int64_t>(bits); }

PENSTOCK_FN inline bool less(double a, double b) { return a < b || (b != b && a == a); }
PENSTOCK_FN inline bool equal(double a, double b) { return a == b || (a != a && b != b); }

PENSTOCK_FN inline double floor_modulo(double a, double b) {
  const double rest = fmod(a, b);
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
PENSTOCK_FN inline std::int64_t floor_division(std::int64_t a, std::int64_t b) {
  const std::int64_t whole = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? whole - 1 : whole;
}

struct date_parts {
  std::int64_t year;
  u32 month, day;
};
/// Of days since 1970 in the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms", civil_from_days).
PENSTOCK_FN inline date_parts date_of(std::int64_t days) {
  const std::int64_t z = days + 719468, era = floor_division(z, 146097);
  const auto of_era = static_cast<u32>(z - era * 146097);
  const u32 year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
  const u32 of_year = of_era - (365 * year + year / 4 - year / 100), shifted = (5 * of_year + 2) / 153;
  const u32 month = shifted < 10 ? shifted + 3 : shifted - 9;
  return {static_cast<std::int64_t>(year) + era * 400 + (month <= 2 ? 1 : 0), month, of_year - (153 * shifted + 2) / 5 + 1};
}

/// Sets `wrong` where the result does not fit.
template <op What>
PENSTOCK_FN inline std::int64_t arithmetic(std::int64_t a, std::int64_t b, bool& wrong) {
  const u64 x = static_cast<u64>(a), y = static_cast<u64>(b);
  if constexpr (What == op::add) {
    const u64 sum = x + y;
    wrong = ((x ^ sum) & (y ^ sum)) >> 63 != 0;
    return static_cast<std::int64_t>(sum);
  } else if constexpr (What == op::subtract) {
    const u64 rest = x - y;
    wrong = ((x ^ y) & (x ^ rest)) >> 63 != 0;
    return static_cast<std::int64_t>(rest);
  } else {
    const auto product = static_cast<__int128>(a) * b;
    wrong = product != static_cast<std::int64_t>(product);
    return static_cast<std::int64_t>(product);
  }
}

}  // namespace detail

/// What a program needs beside its rows.
struct evaluation {
  lookup_table const* tables = nullptr;
  u32* errors = nullptr;
  u64 literals[max_literals] = {};  ///< of a compiled program, whose instructions have their numbers in place of `bits`
};

/// Runs instructions [first, last). Rows whose value is null or that are not active have no errors.
template <u32 V, class Code = interpreted>
class evaluator {
 public:
  PENSTOCK_FN evaluator(evaluation const& with, registers<V>& r, row_batch<V> const& rows) : with_(with), r_(r), rows_(rows) {}

  PENSTOCK_FN void run(instruction const* first, instruction const* last) const {
    for (; first != last; ++first) step(*first);
  }
  /// The same of constants: what an instruction does is decided when it is compiled.
  template <program_view const& Program, u32 First, u32 Last>
  PENSTOCK_FN void run() const {
    if constexpr (Last == First + 1) {
      constexpr instruction c = Program.code[First];
      step<c.what>(c);
    } else if constexpr (Last > First) {
      constexpr u32 middle = First + (Last - First) / 2;
      run<Program, First, middle>();
      run<Program, middle, Last>();
    }
  }

 private:
  template <class Each>
  PENSTOCK_FN void each(Each const& use) const {
    if constexpr (V > 32) {
      const u32 count = rows_.count;
      PENSTOCK_EACH_BY_ITSELF
      for (u32 k = 0; k < count; ++k) use(k);
    } else {
      PENSTOCK_UNROLL
      for (u32 k = 0; k < V; ++k) use(k);
    }
  }

  PENSTOCK_FN void report(row_error what) const { device_ref<u32>(*with_.errors).fetch_or(what, relaxed); }

  template <class Of>
  PENSTOCK_FN void numbers(instruction const& c, Of const& of) const {
    each([&](u32 k) {
      using namespace detail;
      r_.value[c.to][k] = bits_of_number(of(as_number(r_.value[c.a][k]), as_number(r_.value[c.b][k])));
    });
    strict(c);
  }
  template <class Of>
  PENSTOCK_FN void integers(instruction const& c, Of const& of) const {
    each([&](u32 k) {
      using namespace detail;
      r_.value[c.to][k] = static_cast<u64>(of(as_integer(r_.value[c.a][k]), as_integer(r_.value[c.b][k])));
    });
    strict(c);
  }

  template <class Of>
  PENSTOCK_FN void values(instruction const& c, Of const& of) const {
    each([&](u32 k) { r_.value[c.to][k] = of(r_.value[c.a][k]); });
    strict(c);
  }

  /// Null where an operand is. Those that have one operand name it twice.
  PENSTOCK_FN void strict(instruction const& c) const {
    if (c.nullable == 0) return;
    each([&](u32 k) { r_.valid[c.to][k] = r_.valid[c.a][k] & r_.valid[c.b][k]; });
  }

  PENSTOCK_FN void step(instruction const& c) const {
    switch (c.what) {
      case op::load: return step<op::load>(c);
      case op::constant: return step<op::constant>(c);
      case op::null: return step<op::null>(c);
      case op::copy: return step<op::copy>(c);
      case op::convert_to_float: return step<op::convert_to_float>(c);
      case op::convert_to_integer: return step<op::convert_to_integer>(c);
      case op::add: return step<op::add>(c);
      case op::subtract: return step<op::subtract>(c);
      case op::multiply: return step<op::multiply>(c);
      case op::negate: return step<op::negate>(c);
      case op::absolute: return step<op::absolute>(c);
      case op::divide: return step<op::divide>(c);
      case op::floor_divide: return step<op::floor_divide>(c);
      case op::modulo: return step<op::modulo>(c);
      case op::minimum: return step<op::minimum>(c);
      case op::maximum: return step<op::maximum>(c);
      case op::floor: return step<op::floor>(c);
      case op::ceil: return step<op::ceil>(c);
      case op::square_root: return step<op::square_root>(c);
      case op::equal: return step<op::equal>(c);
      case op::not_equal: return step<op::not_equal>(c);
      case op::less: return step<op::less>(c);
      case op::less_equal: return step<op::less_equal>(c);
      case op::logic_and: return step<op::logic_and>(c);
      case op::logic_or: return step<op::logic_or>(c);
      case op::logic_not: return step<op::logic_not>(c);
      case op::is_null: return step<op::is_null>(c);
      case op::is_nan: return step<op::is_nan>(c);
      case op::select: return step<op::select>(c);
      case op::fill_null: return step<op::fill_null>(c);
      case op::lookup: return step<op::lookup>(c);
      case op::find: return step<op::find>(c);
      case op::sortable: return step<op::sortable>(c);
      case op::year: return step<op::year>(c);
      case op::month: return step<op::month>(c);
      case op::day: return step<op::day>(c);
      case op::weekday: return step<op::weekday>(c);
      case op::bit_and: return step<op::bit_and>(c);
      case op::bit_or: return step<op::bit_or>(c);
      case op::bit_xor: return step<op::bit_xor>(c);
      case op::shift_left: return step<op::shift_left>(c);
      case op::shift_right: return step<op::shift_right>(c);
    }
  }

  template <op What>
  PENSTOCK_FN void step(instruction const& c) const {
    using enum op;
    if constexpr (What == load) read_column(c);
    if constexpr (What == constant) {
      each([&](u32 k) {
        r_.value[c.to][k] = bits_of(c);
        r_.valid[c.to][k] = 1;
      });
    }
    if constexpr (What == null) each([&](u32 k) { r_.value[c.to][k] = r_.valid[c.to][k] = 0; });
    if constexpr (What == copy) integers(c, [](std::int64_t a, std::int64_t) { return a; });
    if constexpr (What == convert_to_float) {
      values(c, [](u64 a) { return detail::bits_of_number(static_cast<double>(detail::as_integer(a))); });
    }
    if constexpr (What == convert_to_integer) truncate(c);
    if constexpr (What == add || What == subtract || What == multiply) {
      c.kind == value_kind::number ? number_arithmetic<What>(c) : integer_arithmetic<What>(c);
    }
    if constexpr (What == divide) numbers(c, [](double a, double b) { return a / b; });
    if constexpr (What == negate || What == absolute) sign<What>(c);
    if constexpr (What == floor_divide || What == modulo) {
      c.kind == value_kind::number ? number_rest<What>(c) : integer_rest<What>(c);
    }
    if constexpr (What == minimum || What == maximum) extreme<What>(c);
    if constexpr (What == op::floor) numbers(c, [](double a, double) { return ::floor(a); });
    if constexpr (What == op::ceil) numbers(c, [](double a, double) { return ::ceil(a); });
    if constexpr (What == square_root) numbers(c, [](double a, double) { return ::sqrt(a); });
    if constexpr (What == equal || What == not_equal || What == less || What == less_equal) compare<What>(c);
    if constexpr (What == logic_and) conjunction<0>(c);
    if constexpr (What == logic_or) conjunction<1>(c);
    if constexpr (What == logic_not) integers(c, [](std::int64_t a, std::int64_t) { return a ^ 1; });
    if constexpr (What == is_null) {
      each([&](u32 k) {
        r_.value[c.to][k] = r_.valid[c.a][k] ^ 1u;
        r_.valid[c.to][k] = 1;
      });
    }
    if constexpr (What == is_nan) {
      values(c, [](u64 a) -> u64 {
        const double v = detail::as_number(a);
        return v != v ? 1 : 0;
      });
    }
    if constexpr (What == select || What == fill_null) choose<What>(c);
    if constexpr (What == lookup) look_up(c);
    if constexpr (What == find) find_row(c);
    if constexpr (What == op::sortable) {
      values(c, [](u64 a) { return static_cast<u64>(penstock::columns::sortable(detail::as_number(a))); });
    }
    if constexpr (What == year || What == month || What == day || What == weekday) part_of_date<What>(c);
    if constexpr (What == bit_and) integers(c, [](std::int64_t a, std::int64_t b) { return a & b; });
    if constexpr (What == bit_or) integers(c, [](std::int64_t a, std::int64_t b) { return a | b; });
    if constexpr (What == bit_xor) integers(c, [](std::int64_t a, std::int64_t b) { return a ^ b; });
    if constexpr (What == shift_left) shift_bits_left(c);
    if constexpr (What == shift_right) {
      integers(c, [](std::int64_t a, std::int64_t b) { return b < 0 || b > 63 ? 0 : a >> b; });
    }
  }

  PENSTOCK_FN u64 bits_of(instruction const& c) const {
    if constexpr (Code::is_compiled) {
      return with_.literals[c.bits];
    } else {
      return c.bits;
    }
  }
  PENSTOCK_FN column_facts facts_of(instruction const& c) const {
    if constexpr (Code::is_compiled) {
      return Code::columns[c.number];
    } else {
      return rows_.columns[c.number].facts();
    }
  }

  PENSTOCK_FN void read_column(instruction const& c) const {
    column_view const& column = rows_.columns[c.number];
    if constexpr (V > 32) {
      if (rows_.together && load_together(column, r_.value[c.to])) return load_validity(c, column, column.facts());
    }
    const column_facts facts = facts_of(c);
    each([&](u32 k) { r_.value[c.to][k] = rows_.active[k] != 0 ? column.value(rows_.at(k), facts) : 0; });
    if (facts.how == encoding::uint64 || facts.how == encoding::int128) {
      each([&](u32 k) {
        if (rows_.active[k] == 0 || !column.is_valid(rows_.at(k), facts)) return;
        const bool fits =
            facts.how == encoding::uint64 ? r_.value[c.to][k] >> 63 == 0 : column.fits(rows_.at(k), facts.is_resident);
        if (!fits) report(out_of_range);
      });
    }
    load_validity(c, column, facts);
  }
  PENSTOCK_FN void load_validity(instruction const& c, column_view const& column, column_facts const& facts) const {
    if (c.nullable == 0) return;
    each([&](u32 k) { r_.valid[c.to][k] = rows_.active[k] != 0 && column.is_valid(rows_.at(k), facts) ? 1 : 0; });
  }

  /// Of what lies in memory as plain numbers. False: it does not.
  PENSTOCK_FN bool load_together(column_view const& column, u64* to) const {
    if (!column.bytes.is_resident() || rows_.count == 0) return false;
    penstock::u8 const* const from = column.bytes.resident();
    const u64 first = rows_.row[0];
    const auto copy = [&](auto sample, auto const& widened) {
      auto const* const values = reinterpret_cast<decltype(sample) const*>(from) + first;
      if (rows_.count == V) {
        for (u32 k = 0; k < V; ++k) to[k] = widened(values[k]);
      } else {
        for (u32 k = 0; k < rows_.count; ++k) to[k] = widened(values[k]);
      }
      return true;
    };
    const auto integer = [](auto v) { return static_cast<u64>(static_cast<std::int64_t>(v)); };
    switch (column.how) {
      case encoding::int8: return copy(std::int8_t{}, integer);
      case encoding::int16: return copy(std::int16_t{}, integer);
      case encoding::int32: return copy(std::int32_t{}, integer);
      case encoding::uint8: return copy(std::uint8_t{}, integer);
      case encoding::uint16: return copy(std::uint16_t{}, integer);
      case encoding::uint32: return copy(std::uint32_t{}, integer);
      case encoding::float32: return copy(float{}, [](float v) { return detail::bits_of_number(static_cast<double>(v)); });
      case encoding::int64:
      case encoding::float64: return copy(u64{}, [](u64 v) { return v; });
      case encoding::packed: return unpack_together(column, to, first);
      default: return false;
    }
  }
  PENSTOCK_FN bool unpack_together(column_view const& column, u64* to, u64 first) const {
    auto const* const words = reinterpret_cast<u64 const*>(column.bytes.resident());
    const u32 bits = column.packed_bits;
    if (bits == 0 || bits > 57) return false;
    auto const* const bytes = reinterpret_cast<char const*>(words);
    const u64 mask = (u64{1} << bits) - 1;
    for (u32 k = 0; k < rows_.count; ++k) {
      const u64 at = (first + k) * bits;
      u64 word;
      __builtin_memcpy(&word, bytes + at / 8, sizeof word);  // words lie behind the last value
      to[k] = column.base + (word >> at % 8 & mask);
    }
    if (column.divisor == 0) return true;
    for (u32 k = 0; k < rows_.count; ++k) to[k] = column.widened(to[k]);
    return true;
  }

  PENSTOCK_FN void truncate(instruction const& c) const {
    strict(c);
    each([&](u32 k) {
      const double v = detail::as_number(r_.value[c.a][k]);
      const bool fits = v >= -0x1p63 && v < 0x1p63;
      if (!fits && is_there(c, k)) report(out_of_range);
      r_.value[c.to][k] = fits ? static_cast<u64>(static_cast<std::int64_t>(v)) : 0;
    });
  }
  PENSTOCK_FN bool is_there(instruction const& c, u32 k) const {
    return rows_.active[k] != 0 && (c.nullable == 0 || r_.valid[c.to][k] != 0);
  }

  template <op What>
  PENSTOCK_FN void number_arithmetic(instruction const& c) const {
    numbers(c, [](double a, double b) { return What == op::add ? a + b : What == op::subtract ? a - b : a * b; });
  }
  template <op What>
  PENSTOCK_FN void integer_arithmetic(instruction const& c) const {
    strict(c);
    each([&](u32 k) {
      bool wrong = false;
      const auto a = detail::as_integer(r_.value[c.a][k]), b = detail::as_integer(r_.value[c.b][k]);
      r_.value[c.to][k] = static_cast<u64>(detail::arithmetic<What>(a, b, wrong));
      if (wrong && is_there(c, k)) report(overflow);
    });
  }
  template <op What>
  PENSTOCK_FN void sign(instruction const& c) const {
    constexpr bool negates = What == op::negate;
    if (c.kind == value_kind::number) return numbers(c, [](double a, double) { return negates ? -a : fabs(a); });
    strict(c);
    each([&](u32 k) {
      const u64 v = r_.value[c.a][k];
      if (v == u64{1} << 63 && is_there(c, k)) report(overflow);
      r_.value[c.to][k] = negates || v >> 63 != 0 ? 0 - v : v;
    });
  }

  PENSTOCK_FN void shift_bits_left(instruction const& c) const {
    strict(c);
    each([&](u32 k) {
      const u64 a = r_.value[c.a][k], b = r_.value[c.b][k];
      const bool none = b > 63;
      const bool wrong = a >> 63 != 0 || b >> 63 != 0 || (a != 0 && (none || a >> (63 - b) != 0));
      if (wrong && is_there(c, k)) report(overflow);
      r_.value[c.to][k] = none ? 0 : a << b;
    });
  }

  template <op What>
  PENSTOCK_FN void number_rest(instruction const& c) const {
    numbers(c, [](double a, double b) { return What == op::modulo ? detail::floor_modulo(a, b) : ::floor(a / b); });
  }
  template <op What>
  PENSTOCK_FN void integer_rest(instruction const& c) const {
    each([&](u32 k) {
      const auto a = detail::as_integer(r_.value[c.a][k]), b = detail::as_integer(r_.value[c.b][k]);
      const u8 valid = r_.valid[c.a][k] & r_.valid[c.b][k];
      const bool lost = b == -1 && r_.value[c.a][k] == u64{1} << 63;
      if (lost && What == op::floor_divide && valid != 0 && rows_.active[k] != 0) report(overflow);
      const bool none = b == 0 || lost;
      const std::int64_t whole = none ? 0 : detail::floor_division(a, b);
      r_.value[c.to][k] = static_cast<u64>(none ? 0 : What == op::modulo ? a - whole * b : whole);
      r_.valid[c.to][k] = b == 0 ? 0 : valid;
    });
  }

  template <op What>
  PENSTOCK_FN void extreme(instruction const& c) const {
    constexpr bool least = What == op::minimum;
    if (c.kind == value_kind::number) {
      return numbers(c, [](double a, double b) { return detail::less(b, a) == least ? b : a; });
    }
    integers(c, [](std::int64_t a, std::int64_t b) { return (b < a) == least ? b : a; });
  }

  template <op What>
  PENSTOCK_FN void compare(instruction const& c) const {
    if (c.kind == value_kind::number) {
      return truths(c, [](double a, double b) {
        if constexpr (What == op::equal) return detail::equal(a, b);
        if constexpr (What == op::not_equal) return !detail::equal(a, b);
        if constexpr (What == op::less) return detail::less(a, b);
        if constexpr (What == op::less_equal) return !detail::less(b, a);
      });
    }
    integers(c, [](std::int64_t a, std::int64_t b) {
      if constexpr (What == op::equal) return a == b ? 1 : 0;
      if constexpr (What == op::not_equal) return a != b ? 1 : 0;
      if constexpr (What == op::less) return a < b ? 1 : 0;
      if constexpr (What == op::less_equal) return a <= b ? 1 : 0;
    });
  }
  template <class Of>
  PENSTOCK_FN void truths(instruction const& c, Of const& of) const {
    each([&](u32 k) {
      r_.value[c.to][k] = of(detail::as_number(r_.value[c.a][k]), detail::as_number(r_.value[c.b][k])) ? 1 : 0;
    });
    strict(c);
  }

  /// `and` where `settles` is 0, `or` where it is 1: an operand that has this value settles the result, null or not the other.
  template <u64 Settles>
  PENSTOCK_FN void conjunction(instruction const& c) const {
    if (c.nullable == 0) {
      return integers(c, [](std::int64_t a, std::int64_t b) { return Settles == 0 ? a & b : a | b; });
    }
    each([&](u32 k) {
      const u64 a = r_.value[c.a][k], b = r_.value[c.b][k];
      const u8 of_a = r_.valid[c.a][k], of_b = r_.valid[c.b][k];
      const bool settled = (of_a != 0 && a == Settles) || (of_b != 0 && b == Settles);
      r_.value[c.to][k] = settled ? Settles : Settles ^ 1;
      r_.valid[c.to][k] = settled ? 1 : of_a & of_b;
    });
  }

  template <op What>
  PENSTOCK_FN void choose(instruction const& c) const {
    constexpr bool fills = What == op::fill_null;
    each([&](u32 k) {
      const bool first = fills ? r_.valid[c.a][k] != 0 : r_.valid[c.a][k] != 0 && r_.value[c.a][k] != 0;
      const u32 met = fills ? c.a : c.b, other = fills ? c.b : c.c;  // of both, so that no register has an address
      const u64 value = first ? r_.value[met][k] : r_.value[other][k];
      r_.valid[c.to][k] = first ? r_.valid[met][k] : r_.valid[other][k];
      r_.value[c.to][k] = value;
    });
  }

  PENSTOCK_FN void look_up(instruction const& c) const {
    lookup_table const& table = with_.tables[c.number];
    each([&](u32 k) {
      const u64 row = r_.value[c.a][k] - bits_of(c);
      const bool inside = row < table.rows && r_.valid[c.a][k] != 0 && rows_.active[k] != 0;
      const bool there = inside && (table.valid == nullptr || table.valid[row] != 0);
      r_.value[c.to][k] = there ? table.values[row] : 0;
      r_.valid[c.to][k] = there ? 1 : 0;
    });
  }

  PENSTOCK_FN void find_row(instruction const& c) const {
    lookup_table const& table = with_.tables[c.number];
    each([&](u32 k) {
      const u64 key = r_.value[c.a][k];
      const bool asks = r_.valid[c.a][k] != 0 && rows_.active[k] != 0;
      u64 slot = asks ? first_slot(key, table.rows) : 0;
      while (asks && table.valid[slot] != 0 && table.values[slot] != key) slot = (slot + 1) & (table.rows - 1);
      r_.value[c.to][k] = slot;
      r_.valid[c.to][k] = asks && table.valid[slot] != 0 ? 1 : 0;
    });
  }

  template <op What>
  PENSTOCK_FN void part_of_date(instruction const& c) const {
    integers(c, [](std::int64_t days, std::int64_t) -> std::int64_t {
      if (What == op::weekday) return days - 7 * detail::floor_division(days + 3, 7) + 4;
      const detail::date_parts parts = detail::date_of(days);
      return What == op::year ? parts.year : What == op::month ? parts.month : parts.day;
    });
  }

  evaluation const& with_;
  registers<V>& r_;
  row_batch<V> const& rows_;
};

}  // namespace penstock::columns
