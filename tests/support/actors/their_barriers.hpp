// The actor that times its group's barrier, with cooperative groups' barrier of a grid.
#pragma once

#if defined(__CUDACC_RTC__)
#include <cooperative_groups.h>
#endif

#include <support/actors/barriers.hpp>
