// How long work reports how far it is.
#pragma once

#include "penstock/core/config.hpp"

#include <functional>
#include <string>

namespace penstock {

/// Called on the thread that does the work with what is being done, how much of it is done, and how much there is. What it
/// throws stops the work.
using progress_fn = std::function<void(std::string const& what, u64 done, u64 total)>;

}  // namespace penstock
