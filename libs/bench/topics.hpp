// The topics of `penstock bench`, by name: options come as text, measurements go out.
#pragma once

#include "libs/bench/measurement.hpp"
#include "libs/bench/stamped_store.hpp"

#include <map>
#include <string>
#include <vector>

namespace penstock::bench {

using option_texts = std::map<std::string, std::string>;

struct topic {
  std::string name;
  std::string what;                            ///< one line for people
  std::map<std::string, std::string> options;  ///< name -> one line
  std::vector<measurement> (*run)(option_texts const& given, progress_fn const& progress, found_fn const& found);
};

std::vector<topic> const& topics();

/// Runs one topic; `found` is told each measurement as it comes. Throws penstock::error: bad_input for a topic, an option or a
/// value that there is not; what the topic throws.
std::vector<measurement> run_topic(std::string const& name, option_texts const& given, progress_fn const& progress = {},
                                   found_fn const& found = {});

}  // namespace penstock::bench
