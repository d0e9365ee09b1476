// SHA-256, by OpenSSL: the digests of plans and recipes.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// 64 lower-case hex digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace planwright
