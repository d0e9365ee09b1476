#include "executor/optimizer/philox_draws.h"

#include <string>

#include "planner/base/random/philox.h"

namespace planwright::executor {

Draws PhiloxDraws(uint64_t seed) {
  return {.uniform =
              [seed](const std::string& name, int64_t first, int64_t count, double* out) {
                const Philox draws(seed, name);
                for (int64_t i = 0; i < count; ++i) out[i] = draws.Uniform(static_cast<uint64_t>(first + i));
              },
          .normal =
              [seed](const std::string& name, int64_t first, int64_t count, double* out) {
                const Philox draws(seed, name);
                for (int64_t i = 0; i < count; ++i) out[i] = draws.Normal(static_cast<uint64_t>(first + i));
              },
          .normal_bf16 =
              [seed](const std::string& name, double scale, int64_t first, int64_t count, uint16_t* out) {
                Philox(seed, name).NormalsBf16(static_cast<uint64_t>(first), count, scale, out);
              }};
}

}  // namespace planwright::executor
