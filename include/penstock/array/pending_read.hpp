// An element that was asked for and is taken later: between `read_async` and `wait` a thread goes on computing.
//
// A token holds neither pin nor claim. What was not there when it was asked is brought in by a fill without an owner; `wait` is
// a read like any other, which joins that fill, finds the line, or, if the line has come and gone, asks for it again with a
// pin. So a token that is dropped leaves nothing behind, tokens count in no budget of pins (PROTOCOLS.md, W4), and `wait` makes
// the progress that a read makes.
#pragma once

#include "penstock/array/line_reader.hpp"
#include "penstock/array/piece_of.hpp"

namespace penstock {

/// Made by array_view::read_async. One per thread, also where a group has asked; the array's view outlives it.
template <class T>
class pending_read {
  static_assert(sizeof(T) == piece_bytes<T>, "an element must lie on one line");

 public:
  /// Whether the value is here already: it was a hit, or no lane wanted it.
  PENSTOCK_FN bool here() const { return here_; }

  /// The element. The first call waits for it, and moves the queues meanwhile; later ones give the same value.
  /// Errors: as array_view::operator[].
  PENSTOCK_FORCE_INLINE T wait() {
    const bool parted = reader_->kind != array_kind::resident && reader_->is_parted();
    look_again();
    const bool want = !here_;
    keep(want, reader_->complete_here(parted, want, here_, address_, value_));
    return std::bit_cast<T>(value_);
  }

  /// The same for all lanes of a group together, each with a token of its own: where lanes part ways before they wait, this
  /// keeps the whole group at work on a miss. Lanes that wanted nothing get T{}. Collective.
  template <thread_group G>
  PENSTOCK_FN T wait(G const& g) {
    look_again();
    const bool want = !here_;
    keep(want, reader_->complete(g, want, here_, address_, value_));
    return std::bit_cast<T>(value_);
  }

 private:
  template <class>
  friend class array_view;
  using piece = piece_of<sizeof(T)>;

  PENSTOCK_FN pending_read(line_reader const& reader, u64 address) : reader_(&reader), address_(address) {}

  PENSTOCK_FORCE_INLINE bool try_now() {
    hit_line at;
    return reader_->find(address_, at) && reader_->try_read(at, reader_->within(address_), value_);
  }
  PENSTOCK_FORCE_INLINE void look_again() {
    if (!here_) here_ = try_now();
  }
  // A token that is taken already is not read again: its line may hold something else by now.
  PENSTOCK_FORCE_INLINE void keep(bool want, piece late) {
    if (want) take(late);
  }
  PENSTOCK_FN void take(piece read) {
    value_ = read;
    here_ = true;
  }

  line_reader const* reader_;
  u64 address_;
  piece value_{};
  bool here_ = false;
};

}  // namespace penstock
