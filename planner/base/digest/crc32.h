// CRC-32, by zlib: finds that bytes are other ones than they were, but for one in four billion, and keeps nobody from
// making others with the same sum.
#pragma once

#include <cstdint>
#include <string_view>

namespace planwright {

// Of the bytes behind those that `sum` is of; 0: of none.
uint32_t Crc32(uint32_t sum, std::string_view bytes);

}  // namespace planwright
