// `penstock::array<T>`: a parameter of a kernel of the user's own. `a[i]` reads an element wherever it lies; an `array<const
// T>` is only read. Trivially copyable; passed by value.
//
// T is a scalar or a vector type (float4) of 1, 2, 4, 8 or 16 bytes.
#pragma once

#include "penstock/kernels/calls.hpp"

namespace penstock {
namespace kernels {

template <class T>
struct without_const {
  using type = T;
  static constexpr bool is_const = false;
};
template <class T>
struct without_const<T const> {
  using type = T;
  static constexpr bool is_const = true;
};

template <bool Is, class A, class B>
struct chosen {
  using type = A;
};
template <class A, class B>
struct chosen<false, A, B> {
  using type = B;
};

template <class T>
inline constexpr bool is_floating = false;
template <>
inline constexpr bool is_floating<float> = true;
template <>
inline constexpr bool is_floating<double> = true;

template <class To, class From>
PENSTOCK_KERNEL_FN To bits_of(From const& from) {
  static_assert(sizeof(To) <= sizeof(From) || sizeof(From) <= sizeof(To));
  To to{};
  memcpy(&to, &from, sizeof(To) < sizeof(From) ? sizeof(To) : sizeof(From));
  return to;
}

}  // namespace kernels

template <class T>
class array {
 public:
  using value_type = typename kernels::without_const<T>::type;
  static constexpr bool is_read_only = kernels::without_const<T>::is_const;
  static_assert(sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 || sizeof(T) == 16,
                "penstock::array<T>: T has 1, 2, 4, 8 or 16 bytes");

  /// What `a[i]` of a writable array is: reads as T, and takes an assignment. `a[i] += v` reads and then stores, as in plain
  /// memory; `fetch_add` is atomic. Used where it is made and nowhere else: `auto x = a[i]` would be another name for the
  /// element, so x can be neither read nor assigned; write `T x = a[i]`.
  class reference {
   public:
    PENSTOCK_KERNEL_FN operator value_type() const&& { return array_.read(i_); }
    PENSTOCK_KERNEL_FN value_type operator=(value_type v) const&& { return put(v); }
    // NOLINTNEXTLINE(performance-noexcept-move-constructor): it stores, and moves nothing
    PENSTOCK_KERNEL_FN value_type operator=(reference&& other) && {
      return put(static_cast<value_type>(static_cast<reference&&>(other)));
    }
    PENSTOCK_KERNEL_FN value_type operator+=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) + v)); }
    PENSTOCK_KERNEL_FN value_type operator-=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) - v)); }
    PENSTOCK_KERNEL_FN value_type operator*=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) * v)); }
    PENSTOCK_KERNEL_FN value_type operator/=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) / v)); }
    PENSTOCK_KERNEL_FN value_type operator%=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) % v)); }
    PENSTOCK_KERNEL_FN value_type operator&=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) & v)); }
    PENSTOCK_KERNEL_FN value_type operator|=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) | v)); }
    PENSTOCK_KERNEL_FN value_type operator^=(value_type v) const&& { return put(static_cast<value_type>(array_.read(i_) ^ v)); }
    PENSTOCK_KERNEL_FN value_type operator<<=(value_type v) const&& {
      return put(static_cast<value_type>(array_.read(i_) << v));
    }
    PENSTOCK_KERNEL_FN value_type operator>>=(value_type v) const&& {
      return put(static_cast<value_type>(array_.read(i_) >> v));
    }
    PENSTOCK_KERNEL_FN value_type operator++() const&& { return put(static_cast<value_type>(array_.read(i_) + 1)); }
    PENSTOCK_KERNEL_FN value_type operator--() const&& { return put(static_cast<value_type>(array_.read(i_) - 1)); }
    PENSTOCK_KERNEL_FN value_type operator++(int) const&& {
      const value_type old = array_.read(i_);
      put(static_cast<value_type>(old + 1));
      return old;
    }
    PENSTOCK_KERNEL_FN value_type operator--(int) const&& {
      const value_type old = array_.read(i_);
      put(static_cast<value_type>(old - 1));
      return old;
    }

   private:
    friend class array;
    PENSTOCK_KERNEL_FN reference(array const& of, kernels::u64 i) : array_(of), i_(i) {}
    PENSTOCK_KERNEL_FN value_type put(value_type v) const {
      array_.write(i_, v);
      return v;
    }
    array const& array_;
    kernels::u64 i_;
  };

  /// Elements.
  PENSTOCK_KERNEL_FN kernels::u64 size() const { return of_.bytes / sizeof(T); }
  PENSTOCK_KERNEL_FN kernels::u32 dimensions() const { return of_.dimensions; }
  /// Of dimension d, the outermost first.
  PENSTOCK_KERNEL_FN kernels::u64 shape(kernels::u32 d) const { return of_.shape[d]; }

  /// Element i. Errors: T{}, and the failure is raised by the host at the next synchronisation. REQUIRES: i < size(), which is
  /// checked where the kernel is compiled with PENSTOCK_CHECK_BOUNDS.
  PENSTOCK_KERNEL_FN typename kernels::chosen<is_read_only, value_type, reference>::type operator[](kernels::u64 i) const {
    if constexpr (is_read_only) {
      return read(i);
    } else {
      return reference(*this, i);
    }
  }
  /// Element (i, j) of a matrix, (i, j, k) of an array of three dimensions, and so on.
  template <class... Index>
  PENSTOCK_KERNEL_FN typename kernels::chosen<is_read_only, value_type, reference>::type operator()(Index... index) const {
    const kernels::u64 each[] = {static_cast<kernels::u64>(index)...};
    kernels::u64 i = each[0];
    for (kernels::u32 d = 1; d < sizeof...(Index); ++d) i = i * of_.shape[d] + each[d];
#if defined(PENSTOCK_CHECK_BOUNDS)
    bool inside = true;
    for (kernels::u32 d = 0; d < sizeof...(Index); ++d) inside = inside && each[d] < of_.shape[d];
    if (!inside && i < size()) i += size();  // out of range, too
#endif
    return (*this)[i];
  }

  PENSTOCK_KERNEL_FN value_type read(kernels::u64 i) const {
    if (!has(i)) return value_type{};
    if (of_.memory != nullptr) return static_cast<value_type const*>(of_.memory)[i];
    return kernels::bits_of<value_type>(kernels::read<sizeof(T)>(&of_, at(i)));
  }

  /// Stores element i.
  PENSTOCK_KERNEL_FN void write(kernels::u64 i, value_type v) const {
    check_writable();
    if (!has(i)) return;
    if (of_.memory != nullptr) {
      static_cast<value_type*>(of_.memory)[i] = v;
    } else {
      kernels::store(&of_, at(i), sizeof(T), kernels::bits_of<kernels::piece>(v));
    }
  }

  /// Adds to element i atomically, and returns what it was. Numbers of 4 or 8 bytes.
  PENSTOCK_KERNEL_FN value_type fetch_add(kernels::u64 i, value_type v) const {
    return change(i, kernels::is_floating<value_type> ? kernels::change_kind::add_float : kernels::change_kind::add, v, {});
  }
  /// Makes element i the lesser of itself and v atomically, and returns what it was.
  PENSTOCK_KERNEL_FN value_type fetch_min(kernels::u64 i, value_type v) const {
    constexpr auto kind = kernels::is_floating<value_type> ? kernels::change_kind::min_float
                          : value_type(-1) < value_type(0) ? kernels::change_kind::min_signed
                                                           : kernels::change_kind::min_unsigned;
    return change(i, kind, v, {});
  }
  PENSTOCK_KERNEL_FN value_type fetch_max(kernels::u64 i, value_type v) const {
    return fetch_update(i, [=](value_type old) { return old < v ? v : old; });
  }
  PENSTOCK_KERNEL_FN value_type exchange(kernels::u64 i, value_type v) const {
    return fetch_update(i, [=](value_type) { return v; });
  }
  /// Makes element i what f(element i) is, atomically, and returns what it was: `a.fetch_update(i, [](int x) { return x | 4;
  /// })`.
  template <class F>
  PENSTOCK_KERNEL_FN value_type fetch_update(kernels::u64 i, F const& f) const {
    for (value_type old = read(i);;) {
      const value_type wanted = f(old);
      if (same_bits(wanted, old)) {
        kernels::try_again();
        return old;
      }
      const value_type seen = compare_exchange(i, old, wanted);
      if (same_bits(seen, old)) return old;
      old = seen;
      if (!has(i)) return old;
    }
  }
  /// Stores `desired` in element i if its bytes are those of `expected`, and returns what it was.
  PENSTOCK_KERNEL_FN value_type compare_exchange(kernels::u64 i, value_type expected, value_type desired) const {
    return change(i, kernels::change_kind::compare_exchange, desired, expected);
  }

  /// Asks for the line of element i and does not wait.
  PENSTOCK_KERNEL_FN void prefetch(kernels::u64 i) const {
    if (of_.memory == nullptr && has(i)) kernels::prefetch(&of_, at(i));
  }

  /// Copies `count` elements from `first` on to memory that all threads of the warp reach; each stores a part of them. Every
  /// line is looked up once, and the missing ones are requested together. All threads of the warp call it; __syncwarp() comes
  /// before they use each other's parts.
  PENSTOCK_KERNEL_FN void warp_read(kernels::u64 first, kernels::u64 count, value_type* to) const {
    if (count == 0 || !has(first) || !has(first + count - 1)) return;
    kernels::read_span(&of_, of_.memory != nullptr ? first * sizeof(T) : at(first), count * sizeof(T), to);
  }

 private:
  PENSTOCK_KERNEL_FN static bool same_bits(value_type a, value_type b) {
    return kernels::bits_of<kernels::u64>(a) == kernels::bits_of<kernels::u64>(b);
  }
  PENSTOCK_KERNEL_FN kernels::u64 at(kernels::u64 i) const { return of_.origin + i * sizeof(T); }
  PENSTOCK_KERNEL_FN bool has([[maybe_unused]] kernels::u64 i) const {
#if defined(PENSTOCK_CHECK_BOUNDS)
    if (i >= size()) {
      kernels::out_of_range(&of_, i == ~kernels::u64{0} ? i - 1 : i);  // all ones: there was none
      return false;
    }
#endif
    return true;
  }
  PENSTOCK_KERNEL_FN static constexpr void check_writable() {
    static_assert(!is_read_only, "this kernel takes a penstock::array<const T>: declare penstock::array<T> to write");
  }
  PENSTOCK_KERNEL_FN value_type change(kernels::u64 i, kernels::change_kind kind, value_type v, value_type expected) const {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "atomics take elements of 4 or 8 bytes");
    check_writable();
    if (!has(i)) return value_type{};
    const kernels::u64 address = of_.memory != nullptr ? i * sizeof(T) : at(i);
    return kernels::bits_of<value_type>(kernels::change(&of_, address, sizeof(T), kind, kernels::bits_of<kernels::u64>(v),
                                                        kernels::bits_of<kernels::u64>(expected)));
  }

  kernels::array_descriptor of_;
};

/// Whether the launch has passed its deadline: asked for in loops that wait for something.
PENSTOCK_KERNEL_FN bool stopped() { return kernels::stopped(); }

/// The block's dynamic shared memory, of as many bytes as the launch asks for.
template <class T>
PENSTOCK_KERNEL_FN T* dynamic_shared() {
  return static_cast<T*>(kernels::dynamic_shared());
}

/// Calls f(i) for each i below `count`, spread over all threads of the launch: on a GPU neighbours take neighbours, on the CPU
/// each thread takes a run.
template <class F>
PENSTOCK_KERNEL_FN void for_each_index(kernels::u64 count, F const& f) {
  const kernels::u64 in_block = static_cast<kernels::u64>(blockDim.x) * blockDim.y * blockDim.z;
  const kernels::u64 block = blockIdx.x + static_cast<kernels::u64>(gridDim.x) * (blockIdx.y + gridDim.y * blockIdx.z);
  const kernels::u64 threads = in_block * gridDim.x * gridDim.y * gridDim.z;
  const kernels::u64 self = block * in_block + threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const kernels::index_range mine = kernels::share_of(count, self, threads);
  for (kernels::u64 i = mine.first; i < mine.last; i += mine.step) f(i);
}

}  // namespace penstock
