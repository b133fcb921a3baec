// Arrays in HBM and the same ones behind a cache, for real warps.
#pragma once

#include "device/array_test_body.hpp"

#include "penstock/controller/software_controller.hpp"
#include "support/cache_fixture.hpp"
#include "support/run_on_device.cuh"

namespace penstock::test {

inline const u32 array_warps = scaled_warps(64);
inline constexpr u64 array_bytes = 1 << 20;

/// The same bytes in HBM and behind a cache.
struct array_bed {
  explicit array_bed(cache_shape shape) : media(shape.media_bytes) {
    shape.timeout_ns = scaled_time(shape.timeout_ns);
    software_options options;
    options.threads = 2;
    software = std::make_unique<software_controller>(options);
    software->add_namespace(media.bytes());
    fixture = std::make_unique<cache_fixture>(*on, *software, 1, shape);
    copy = {on->memory(), memory_kind::local, shape.media_bytes};
    on->memory().write(copy.data(), media.bytes().data(), shape.media_bytes);
  }
  template <class T>
  array_view<T> resident() {
    return {reinterpret_cast<T const*>(copy.data()), copy.size() / sizeof(T)};
  }
  template <class T>
  array_view<T> stored() {
    return fixture->cache().array<T>(0, 0, copy.size() / sizeof(T));
  }

  stamped_media media;
  std::unique_ptr<executor> on = open_executor("cuda");
  std::unique_ptr<software_controller> software;
  buffer<u8> copy;
  std::unique_ptr<cache_fixture> fixture;
};

}  // namespace penstock::test
