// One array in one file, behind a cache of its own: the short way from a path to an array_view. Several arrays in one cache,
// other controllers or volumes: line_cache.hpp.
#pragma once

#include "penstock/controller/software_controller.hpp"
#include "penstock/host/npy.hpp"
#include "penstock/runtime/line_cache.hpp"

#include <optional>
#include <type_traits>

namespace penstock {

/// What a file without a header holds.
struct raw_layout {
  u32 item_bytes = 0;
  u64 offset = 0;  ///< bytes before element 0
  u64 elements = 0;
};

struct stored_array_options {
  cache_options cache;
  io_engine engine = io_engine::automatic;
  bool direct = false;              ///< bypasses the page cache (O_DIRECT)
  u32 controller_threads = 0;       ///< CUDA: threads that serve the file, 0 for all cores but two; CPU: always in place
  std::optional<raw_layout> raw{};  ///< none: the file is .npy
  bool writable = false;            ///< one writer at a time has the file, in whatever process: a second is refused
};

/// Owns controller, cache and queues. Not copyable; outlives its views.
class stored_array {
 public:
  /// Throws penstock::error with path, reason and remedy: no such file, malformed or Fortran-ordered .npy, a shape or layout
  /// that needs more bytes than the file has, options that cannot be.
  stored_array(executor& on, std::string const& path, stored_array_options const& options = {});

  /// All elements, in C order. Throws penstock::error (bad_input) when T is not what the file holds.
  template <class T>
  array_view<T> view() const {
    check_type(sizeof(T), kind_of<T>());
    return cache_.array<T>(0, contents_.layout.offset, contents_.layout.elements);
  }

  /// The same through a view of the program's own: as line_cache::array_through.
  template <class T, class View>
  cached_array<T, View> view_through(View const* through) const {
    check_type(sizeof(T), kind_of<T>());
    return cache_.array_through<T>(through, 0, contents_.layout.offset, contents_.layout.elements);
  }

  /// The same to write. Throws bad_input also when the array was not opened as writable. What is written is in the file once
  /// `flush` has returned, or this object has gone.
  template <class T>
  writable_view<T> writable() const {
    check_type(sizeof(T), kind_of<T>());
    return cache_.writable<T>(0, contents_.layout.offset, contents_.layout.elements);
  }

  /// As line_cache::flush.
  void flush() { cache_.flush(); }

  u64 size() const { return contents_.layout.elements; }
  line_cache& cache() { return cache_; }
  line_cache const& cache() const { return cache_; }
  /// How reads are served: software_controller::engine.
  std::string engine() const { return controller_.engine(); }

 private:
  template <class T>
  static constexpr char kind_of() {
    if constexpr (std::is_same_v<T, bool>) return 'b';
    if constexpr (std::is_floating_point_v<T>) return 'f';
    if constexpr (std::is_integral_v<T>) return std::is_signed_v<T> ? 'i' : 'u';
    return 0;  // a struct: only its size is checked
  }
  struct contents {
    raw_layout layout;
    char kind = 0;  ///< NumPy's; 0: raw
  };
  static contents read_contents(std::string const& path, std::optional<raw_layout> const& raw);
  void check_type(u64 item_bytes, char kind) const;
  dataset_spec make_dataset(stored_array_options const& options);

  std::string path_;
  contents contents_;
  software_controller controller_;
  line_cache cache_;
};

}  // namespace penstock
