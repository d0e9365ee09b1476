// Fuzz target: reads any bytes as the statement of a model, and checks it.
#include <cstdint>
#include <string>

#include "tests/plan/statement/any_statement.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planwright::testing::TryStatement(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
