// A query as kernels take it: its arrays in the executor's memory, and what its launches cost.
#pragma once

#include "libs/columns/table_state.hpp"
#include "penstock/core/clock.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

namespace penstock::columns {

inline double seconds_since(u64 begun_ns) { return static_cast<double>(now_ns() - begun_ns) * 1e-9; }

/// Arrays of a query, brought to the executor's memory by one copy into room that is kept for the next.
class query_arrays {
 public:
  template <class T>
  u64 add(std::vector<T> const& from) {
    const u64 at = bytes_.size();
    bytes_.resize(round_up(at + std::max<u64>(from.size(), 1) * sizeof(T), 16));
    if (!from.empty()) std::memcpy(bytes_.data() + at, from.data(), from.size() * sizeof(T));
    return at;
  }
  /// In place of what was added at `at`, as many.
  template <class T>
  void set(u64 at, std::vector<T> const& to) {
    if (!to.empty()) std::memcpy(bytes_.data() + at, to.data(), to.size() * sizeof(T));
  }
  template <class T>
  T* place(buffer<std::byte> const& room, u64 at) const {
    return reinterpret_cast<T*>(room.data() + at);
  }
  void make_room(executor& on, buffer<std::byte>& room) const {
    if (room.size() < bytes_.size()) room = {on.memory(), local, 2 * bytes_.size()};
  }
  void copy(buffer<std::byte>& room) const { room.write(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// What a query needs in the executor's memory, as long as it runs.
/// REQUIRES: the program outlives it.
class prepared_query {
 public:
  prepared_query(column_table::state& table, query_program const& program, bool line_aware)
      : t_(table), on_(*table.on), program_(program), begun_ns_(now_ns()) {
    query_arrays arrays;
    const u64 errors = arrays.add(std::vector<u32>{0}), dense = arrays.add(program.dense), sparse = arrays.add(program.sparse),
              scanned = arrays.add(program.scanned);
    std::vector<std::pair<u64, u64>> places;
    for (auto const& each : program.tables) {
      if (each.kept != nullptr && each.kept->of.get() != &t_) {
        throw_bad_input("query", "a table", "what it is joined with was kept for another table");
      }
      places.emplace_back(arrays.add(each.values), arrays.add(each.valid));
    }
    some_ = t_.zones_to_look_at(program);
    const u64 listed = some_ ? arrays.add(*some_) : 0;
    if (!some_) prepare_notes(program);
    keys_ = ranges_of(noted_);
    const u64 ranges = arrays.add(keys_), residual = arrays.add(program.residual);
    std::vector<lookup_table> tables(places.size());
    const u64 lookups = arrays.add(tables);
    buffer<std::byte>& room = t_.arrays;
    arrays.make_room(on_, room);
    for (u64 k = 0; k < places.size(); ++k) {
      auto const& given = program.tables[k];
      tables[k] = {arrays.place<u64>(room, places[k].first), arrays.place<u8>(room, places[k].second), given.values.size()};
      if (given.kept != nullptr) tables[k] = {given.kept->values.data(), given.kept->valid.data(), given.kept->values.size()};
    }
    arrays.set(lookups, tables);
    arrays.copy(room);
    errors_ = arrays.place<u32>(room, errors);
    view_.table = t_.view();
    view_.with = {arrays.place<lookup_table>(room, lookups), errors_};
    view_.dense = {arrays.place<instruction>(room, dense), program.constants, program.filter,
                   static_cast<u32>(program.dense.size()), program.condition};
    view_.sparse = {arrays.place<instruction>(room, sparse), 0, program.sparse_filter, static_cast<u32>(program.sparse.size()),
                    0};
    view_.scanned = arrays.place<u16>(room, scanned);
    view_.scanned_count = static_cast<u32>(program.scanned.size());
    view_.zones = some_ ? arrays.place<u32>(room, listed) : nullptr;
    view_.line_aware = line_aware;
    view_.ranges = arrays.place<column_range>(room, ranges);
    view_.ranges_count = static_cast<u32>(keys_.size());
    view_.residual = {arrays.place<instruction>(room, residual), 0, 0, static_cast<u32>(program.residual.size()),
                      program.residual_condition};
    moved_before_ = t_.media.bytes_moved();
  }

  query_view const& view() const { return view_; }
  /// How many zones are looked at, and which.
  u64 zones() const { return some_ ? some_->size() : t_.places.size(); }
  u32 zone(u64 z) const { return some_ ? (*some_)[z] : static_cast<u32>(z); }

  template <class Body>
  void run(u64 items, Body const& body) {
    if (account_.set_up_seconds == 0) account_.set_up_seconds = seconds_since(begun_ns_);
    compiled_launch<Body> compiled(*this, body);
    if (t_.media.is_modelled()) compiled.is_there() ? compiled.prepare() : prepare(on_, body);
    const u64 begun = now_ns();
    t_.media.start();
    try {
      compiled.is_there() ? compiled.run(items) : columns::run(on_, items, body, t_.media.limits());
    } catch (...) {
      t_.media.stop();
      throw;
    }
    t_.media.stop();
    const double seconds = seconds_since(begun);
    account_.run_seconds += seconds;
    account_.passes.push_back({name_of(body), compiled.is_there(), seconds});
    t_.media.check();
    if (!compiled.is_there()) compiled.offer(seconds);
  }

  query_account end(u64 rows_met) {
    keep_notes();
    u32 errors = 0;
    on_.memory().read(&errors, errors_, sizeof errors);
    account_.errors = errors;
    account_.zones = t_.places.size();
    account_.zones_skipped = t_.places.size() - zones();
    account_.rows_met = rows_met;
    account_.bytes_moved = t_.media.bytes_moved() - moved_before_;
    account_.seconds = seconds_since(begun_ns_);
    return account_;
  }

 private:
  /// A body's kernel, if it was compiled. Rows by their numbers are few, and are interpreted.
  template <class Body>
  class compiled_launch {
   public:
    compiled_launch(prepared_query& query, Body const& body) : q_(query), body_(body) {
      if (!can_be() || q_.on_.kind() != executor_kind::cuda) return;
      const compiled_source source = source_as_it_is();
      if (source.text.empty()) return;
      kernel_ = q_.t_.compiled.find(*q_.t_.compiler, source);
      std::copy(source.literals.begin(), source.literals.end(), body_.query.with.literals);
    }

    bool is_there() const { return kernel_ != nullptr; }
    void prepare() { q_.t_.compiled.prepare(*kernel_, &body_); }
    void run(u64 items) { q_.t_.compiled.run(*kernel_, &body_, items, q_.t_.media.limits()); }

    /// What the next run of the query would be compiled from: nothing is noted then.
    void offer(double seconds) const {
      if (!can_be() || seconds < q_.t_.least_seconds) return;
      query_view view = body_.query;
      view.notes = {};
      const compiled_source source = source_with(view, q_.ranges_of({}));
      if (!source.text.empty()) q_.t_.compiler->interpreted(source.text, source.is_resident, seconds);
    }

   private:
    bool can_be() const { return !std::is_same_v<Body, take_rows> && q_.t_.compiler != nullptr; }
    compiled_source source_as_it_is() const { return source_with(body_.query, q_.keys_); }
    compiled_source source_with(query_view const& view, std::vector<column_range> const& ranges) const {
      if constexpr (std::is_same_v<Body, take_rows>) {
        return {};
      } else {
        return source_of({q_.program_, view, ranges, q_.t_.facts}, body_);
      }
    }

    prepared_query& q_;
    Body body_;  ///< with the literals
    kernels::user_kernel* kernel_ = nullptr;
  };

  static char const* name_of(aggregate_zones const&) { return "aggregate"; }
  static char const* name_of(mark_zones const&) { return "mark"; }
  static char const* name_of(emit_zones const&) { return "emit"; }
  static char const* name_of(take_rows const&) { return "take"; }
  static char const* name_of(group_zones const&) { return "group"; }

  /// None where a column has values that are no keys, or is noted and has no range: what is noted is of all rows of a zone.
  std::vector<column_range> ranges_of(std::vector<u32> const& noted) const {
    std::vector<column_range> keys;
    for (zone_bound const& bound : program_.ranges) {
      const auto note = std::find(noted.begin(), noted.end(), bound.column);
      const u32 number = note == noted.end() ? column_range::no_note : static_cast<u32>(note - noted.begin());
      column_layout const& column = t_.plan.columns[bound.column];
      if (!has_range_keys(column.how)) return {};
      column_view view;
      view.how = column.how;
      view.packed_bits = column.packed_bits;
      view.base = column.base;
      view.divisor = column.divisor;
      keys.push_back(as_keys(view, {bound.column, number, bound.low, bound.high}));
    }
    const bool all_noted = std::all_of(noted.begin(), noted.end(), [&](u32 column) {
      return std::any_of(keys.begin(), keys.end(), [&](column_range const& key) { return key.column == column; });
    });
    return all_noted ? keys : std::vector<column_range>{};
  }
  void prepare_notes(query_program const& program) {
    for (auto const& note : program.notes) {
      if (!t_.maps[note.column].empty() || view_.notes.count == zone_notes::most) continue;
      ranges_.emplace_back(on_.memory(), local, t_.places.size());
      noted_.push_back(note.column);
      const u32 n = view_.notes.count++;
      view_.notes.registers[n] = note.from;
      view_.notes.numbers[n] = note.number ? 1 : 0;
      view_.notes.ranges[n] = ranges_.back().data();
    }
  }
  void keep_notes() {
    for (u64 n = 0; n < noted_.size(); ++n) t_.maps[noted_[n]] = read_all(ranges_[n]);
    noted_.clear();
  }

  column_table::state& t_;
  executor& on_;
  query_program const& program_;
  u64 begun_ns_;
  u32* errors_ = nullptr;
  std::optional<std::vector<u32>> some_;
  std::vector<buffer<zone_range>> ranges_;
  std::vector<u32> noted_;
  std::vector<column_range> keys_;  ///< of the view's ranges
  query_view view_;
  query_account account_;
  u64 moved_before_ = 0;
};

}  // namespace penstock::columns
