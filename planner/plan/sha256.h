// Digests of plans and recipes, by OpenSSL.
#pragma once

#include <string>
#include <string_view>

namespace planwright {

// SHA-256 of `bytes`, 64 lower-case hex digits.
std::string Sha256Hex(std::string_view bytes);

}  // namespace planwright
