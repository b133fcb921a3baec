// A driver over a modelled function, for tests of one with the other.
#pragma once

#include "support/host_driver.hpp"
#include "support/modelled_function.hpp"
#include "support/stamped_media.hpp"

#include "penstock/host/error.hpp"
#include "penstock/pcie/pcie_controller.hpp"

#include <gtest/gtest.h>

namespace penstock::test_support {

inline constexpr u64 media_bytes = u64{1} << 20;
inline constexpr pcie_options quick = {.queues = 4, .admin_timeout_ns = 100 * one_millisecond_ns};

class driver_test : public testing::Test {
 protected:
  void make(modelled_function_options const& options = {}) {
    function_ = std::make_unique<modelled_function>(media_.bytes(), options);
    memory_under_test() = &function_->memory();
    free_at_first_ = function_->arena().bytes_free();
  }
  void open(pcie_options const& options = quick) { drive_ = std::make_unique<pcie_controller>(*function_, options); }

  void TearDown() override {
    drive_.reset();
    memory_under_test() = nullptr;
    if (function_ == nullptr) return;
    for (std::string const& complaint : function_->complaints()) ADD_FAILURE() << "the controller notes: " << complaint;
    EXPECT_EQ(leaks_, function_->arena().bytes_free() != free_at_first_) << "memory of the device was not given back";
  }

  void expect_it_serves() {
    host_queue queue(*drive_, 1, 8, 8);
    data_buffer buffer(16384);
    for (u64 k = 0; k < 20; ++k) {
      ASSERT_EQ(queue.run(buffer.read(1, k * 3)), nvme::code::success);
      ASSERT_EQ(std::memcmp(buffer.data(), media_.bytes().data() + k * 3 * 512, buffer.bytes()), 0);
    }
    EXPECT_EQ(queue.strays(), 0u);
  }

  /// What a call is refused with; empty if it is not.
  template <class Call>
  std::string refusal(Call const& call) {
    const u64 start = now_ns();
    std::string said;
    try {
      call();
    } catch (error const& e) {
      said = e.what();
      EXPECT_NE(said.find("model:00.0"), std::string::npos) << "which drive? " << said;
      EXPECT_EQ(said.find('\n'), std::string::npos);
    }
    EXPECT_LT(now_ns() - start, 8 * one_second_ns) << "CAP.TO and an admin command's time, once more after a reset";
    return said;
  }

  test::stamped_media media_{media_bytes};
  std::unique_ptr<modelled_function> function_;
  std::unique_ptr<pcie_controller> drive_;
  u64 free_at_first_ = 0;
  bool leaks_ = false;
};

}  // namespace penstock::test_support
