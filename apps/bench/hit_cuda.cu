#include "apps/bench/hit_dispatch.hpp"

namespace penstock::bench {

kernel_facts run_hit_cuda(executor& on, hit_job const& job, hit_data const& data) { return run_hit(on, job, data); }
void prepare_hit_cuda(executor& on, hit_job const& job, hit_data const& data) {
  const walk_lines<access_kind::view> walk{data};
  const touch_lines<access_kind::view> touch{data};
  const read_elements<access_kind::view, pattern_kind::linear> linear{data};
  if (job.shape == hit_shape::walk) prepare_launch<32, element_blocks>(on, walk);
  if (job.shape == hit_shape::touch) prepare_launch<1, element_blocks>(on, touch);
  if (job.shape == hit_shape::elements) prepare_launch<1, element_blocks>(on, linear);
}
void list_frames_cuda(executor& on, u64 lines, list_frames const& body) { launch<1>(on, lines, body); }

}  // namespace penstock::bench
