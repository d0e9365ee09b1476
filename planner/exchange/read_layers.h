// Which layers a model has, by the lines `layers` of a dialect.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "planner/exchange/config_keys.h"
#include "planner/state/dialect/dialect.h"

namespace planwright {

struct SaidLayers {
  std::string letters;  // of too many layers none
  int64_t count = 0;
  std::string path;    // of the key; empty: no key says it, which is a problem
  bool right = false;  // nothing is wrong with them
};

// What the last of the lines says whose key is there. Problems of `keys`: there is none, or others say another thing.
// `number_of`: of a name in conditions of `place` that is not the block's number; of "i in LIST" with that number.
SaidLayers ReadLayers(const Dialect& dialect, const ModelStatement& statement, ConfigKeys& keys,
                      const std::function<double(std::string_view name, int64_t block)>& number_of);

}  // namespace planwright
