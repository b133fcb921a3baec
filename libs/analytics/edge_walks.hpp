// The ways to hand edges to groups. All algorithms have all of them: what an algorithm does with an edge is its visitor's.
#pragma once

#include "libs/analytics/tile_walk.hpp"
#include "libs/analytics/vertex_walk.hpp"
