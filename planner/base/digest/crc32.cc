#include "planner/base/digest/crc32.h"

#include <zlib.h>

namespace planwright {

uint32_t Crc32(uint32_t sum, std::string_view bytes) {
  return static_cast<uint32_t>(crc32_z(sum, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

}  // namespace planwright
