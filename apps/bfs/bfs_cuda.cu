#include "apps/bfs/bfs_level.hpp"

namespace penstock::apps {

void launch_bfs_level_cuda(executor& on, u64 items, bfs_level<std::int32_t> const& level, u64 most_groups) {
  launch<bfs_group_width>(on, items, level, most_groups);
}

void launch_bfs_level_cuda(executor& on, u64 items, bfs_level<std::int64_t> const& level, u64 most_groups) {
  launch<bfs_group_width>(on, items, level, most_groups);
}

}  // namespace penstock::apps
