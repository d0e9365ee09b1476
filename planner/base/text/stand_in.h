// What lies in the place of a file that was not fetched: people find it only when somebody tries to read it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace planwright {

inline constexpr size_t kStandInBytes = 64;  // of the begin of a file are enough to know one

// "a pointer of Git LFS, not the file: ..." with what to do; empty: it is none. `begin`: of the file.
std::string StandInFor(std::string_view begin);

}  // namespace planwright
