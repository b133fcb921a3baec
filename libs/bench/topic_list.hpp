// The topics, one function each, by the file that reads their options.
#pragma once

#include "libs/bench/topics.hpp"

namespace penstock::bench {

// cache_topics.cpp
topic hit_topic();
topic miss_topic();
topic latency_topic();
topic write_topic();
topic own_topic();
topic files_topic();
topic grep_topic();
topic gpufs_topic();

// app_topics.cpp
topic collage_topic();
topic image_search_topic();

// drive_topics.cpp
topic io_topic();
topic model_topic();

// check_topics.cpp
topic litmus_topic();
topic soak_topic();
topic cliffs_topic();

}  // namespace penstock::bench
