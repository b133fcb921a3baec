#include "libs/kernels/user_kernel.hpp"
#include "penstock/host/error.hpp"

#include <algorithm>

namespace penstock::kernels {
namespace {

/// One after the other: each array is lent around the launch of the rest.
class lending {
 public:
  lending(user_kernel& kernel, std::span<kernel_argument> arguments, launch_shape const& shape)
      : kernel_(kernel), arguments_(arguments), shape_(shape) {
    for (kernel_argument const& each : arguments) descriptors_ += each.array != nullptr ? 1 : 0;
    lent_.reserve(descriptors_);
  }

  started_launch run() {
    lend_from(0);
    std::reverse(calls_.begin(), calls_.end());  // the last array's is over first
    return {std::move(calls_), nullptr, in_time_};
  }

 private:
  void lend_from(std::size_t k) {
    if (k == arguments_.size()) {
      in_time_ = kernel_.start(parameters_, lent_, shape_);
      return;
    }
    kernel_argument& argument = arguments_[k];
    if (argument.array == nullptr) {
      check_size(k);
      parameters_.push_back(argument.bytes.data());
      return lend_from(k + 1);
    }
    array_descriptor& to = lent_.emplace_back();
    to.dimensions = static_cast<u32>(argument.shape.size());
    std::copy(argument.shape.begin(), argument.shape.end(), to.shape);
    parameters_.push_back(&to);
    calls_.push_back(
        argument.array->lend(to, argument.element_bytes, argument.stores, shape_.stream, [&] { lend_from(k + 1); }));
  }

  // A structure comes as bytes, of which nothing else says what they are.
  void check_size(std::size_t k) const {
    const u64 wanted = kernel_.parameter_bytes(k), given = arguments_[k].bytes.size();
    if (wanted == 0 || wanted == given) return;
    throw_bad_input("launch", "a kernel",
                    "argument " + std::to_string(k + 1) + " has " + std::to_string(given) + " bytes, and its parameter " +
                        std::to_string(wanted) + ": give as many");
  }

  user_kernel& kernel_;
  std::span<kernel_argument> arguments_;
  launch_shape const& shape_;
  std::size_t descriptors_ = 0;
  std::vector<array_descriptor> lent_;
  std::vector<void*> parameters_;
  std::vector<row_call> calls_;
  bool in_time_ = true;
};

}  // namespace

started_launch launch(user_kernel& kernel, std::span<kernel_argument> arguments, launch_shape const& shape) {
  started_launch started = lending(kernel, arguments, shape).run();
  if (started.calls.empty()) started.end = kernel.end_on(shape.stream);
  return started;
}

}  // namespace penstock::kernels
