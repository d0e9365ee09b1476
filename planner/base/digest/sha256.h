// SHA-256, by OpenSSL: the digests of plans and recipes.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace planwright {

// 64 lower-case hex digits.
std::string Sha256Hex(std::string_view bytes);

// The same of bytes that come in parts.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  void Add(const void* bytes, size_t count);
  std::string Hex();  // of all that was added; ends the use of the object

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace planwright
