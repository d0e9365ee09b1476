// Blocks of Philox4x32 with 10 rounds: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
// (2011), by Random123, the library of these authors. `philox4x32(counter, key)` is always inline and has no branches,
// so the compiler works on several counters at once, as long as nothing copies its arrays into others. Only this room
// includes it.
#pragma once

#include <Random123/philox.h>

#include <cstdint>

namespace planwright {

// The counter of draw `index` of a name, and the key of a seed (philox.h).
inline philox4x32_ctr_t PhiloxCounter(uint64_t name_hash, uint64_t index) {
  return {{static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), static_cast<uint32_t>(name_hash),
           static_cast<uint32_t>(name_hash >> 32)}};
}
inline philox4x32_key_t PhiloxKey(uint64_t seed) {
  return {{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}};
}

}  // namespace planwright
