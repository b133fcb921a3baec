// What launches that a CUDA graph has captured need for as long as the graph may run.
#pragma once

#include <memory>

namespace penstock {

/// CUDA: whether what goes to the stream is captured into a graph: it runs later, perhaps many times. Throws penstock::error.
bool is_captured(int gpu, void* stream);
/// CUDA: keeps `kept` until the graph that the stream is captured into, and every executable made of it, has been destroyed;
/// then until drop_kept(). Throws penstock::error. REQUIRES: is_captured(gpu, stream).
void keep_for_graph(int gpu, void* stream, std::shared_ptr<void> kept);

/// Lets go of what graphs kept that have been destroyed: they are on a thread of CUDA's, which must not call CUDA. Called where
/// arrays and folders are opened.
void drop_kept();

}  // namespace penstock
