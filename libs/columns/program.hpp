// The expressions of a query as instructions on registers, which any executor's threads evaluate for a batch of rows.
//
// A value is an integer (int64), a floating-point number (double) or a truth value (0 or 1), or null. Numbers compare as in
// SQL engines: NaN equals NaN and is greater than all others, so that sorting, grouping and zone maps agree.
#pragma once

#include "penstock/core/config.hpp"

namespace penstock::columns {

enum class op : u8 {
  load,      ///< column `number`
  constant,  ///< `bits`
  null,
  copy,
  convert_to_float,
  convert_to_integer,  ///< towards zero; an error outside of int64
  add,
  subtract,
  multiply,
  negate,
  absolute,
  divide,        ///< of floating-point numbers
  floor_divide,  ///< rounds down; of integers null where the divisor is 0
  modulo,        ///< has the sign of the divisor; likewise
  minimum,
  maximum,
  floor,
  ceil,
  square_root,
  equal,
  not_equal,
  less,
  less_equal,
  logic_and,  ///< of three values: false and null is false
  logic_or,
  logic_not,
  is_null,
  is_nan,
  select,     ///< a ? b : c; a null chooses c
  fill_null,  ///< b where a is null
  lookup,     ///< row a - `bits` of table `number`; null outside of it
  find,       ///< the row of table `number`, whose values are keys in slots (key_slots.hpp), that has a; null: none
  sortable,   ///< of a floating-point number the integer that orders as it does; NaN is the greatest
  year,       ///< of days since 1970, as are the following
  month,
  day,
  weekday,  ///< Monday is 1
  bit_and,
  bit_or,
  bit_xor,
  shift_left,   ///< an error where bits are lost, a is negative, or b is none from 0 to 63
  shift_right,  ///< keeps the sign; 0 where b is none from 0 to 63
};

/// Kinds of values that an instruction works on.
enum class value_kind : u8 { integer, number };

/// What a register is stored in when it is evaluated; `a`, `b`, `c`, `to` are registers.
struct instruction {
  op what = op::null;
  value_kind kind = value_kind::integer;
  u8 nullable = 0;  ///< the result may be null
  u8 to = 0, a = 0, b = 0, c = 0;
  u8 unused = 0;
  u32 number = 0;
  u32 also_unused = 0;
  u64 bits = 0;
};
static_assert(sizeof(instruction) == 24);

inline constexpr u32 max_registers = 32;
/// Of a program that is compiled: its literals are parameters, so that another threshold is no other program.
inline constexpr u32 max_literals = 64;

/// Instructions in three parts: what does not depend on the row, the condition (its truth value in register `condition`), and
/// what is done with the rows that meet it.
struct program_view {
  instruction const* code = nullptr;
  u32 constants = 0;  ///< where the first part ends
  u32 filter = 0;     ///< where the condition ends; equal to `constants`: all rows meet it
  u32 end = 0;
  u32 condition = 0;
};

/// The program of code that takes it from memory. Of code that is compiled for one program (compiled_source.hpp) a type with
/// constants of the same names as a query's fields stands in its place, and everything that depends on them is decided then.
struct interpreted {
  static constexpr bool is_compiled = false;
};

/// Calls use(k) for k from 0 to count - 1: a loop, or where `Unrolled` one call behind the other.
template <bool Unrolled, class Use>
PENSTOCK_FORCE_INLINE void each_below(u32 count, Use const& use) {
  if constexpr (Unrolled) {
    PENSTOCK_UNROLL
    for (u32 k = 0; k < count; ++k) use(k);
  } else {
    for (u32 k = 0; k < count; ++k) use(k);
  }
}

/// Why rows have no answer. Bits of a word.
enum row_error : u32 { overflow = 1, out_of_range = 2, bad_group = 4 };

/// A column of few rows in memory, for `lookup`: of a dictionary, or of a table that another is joined with.
struct lookup_table {
  u64 const* values = nullptr;
  u8 const* valid = nullptr;  ///< nullptr: all are
  u64 rows = 0;
};

}  // namespace penstock::columns
