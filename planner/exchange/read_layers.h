// Which layers a model has, by the lines `layers` of a dialect.
#pragma once

#include <cstdint>
#include <string>

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
SaidLayers ReadLayers(const Dialect& dialect, const ModelStatement& statement, ConfigKeys& keys);

}  // namespace planwright
