#include "planner/base/digest/sha256.h"

// SHA256() of OpenSSL 3 first reads the machine's openssl.cnf and loads the providers that it names. These deprecated
// functions only hash (docs/decisions/0002).
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "absl/strings/escaping.h"

namespace planwright {

struct Sha256::State {
  SHA256_CTX context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { SHA256_Init(&state_->context); }
Sha256::~Sha256() = default;

void Sha256::Add(const void* bytes, size_t count) { SHA256_Update(&state_->context, bytes, count); }

std::string Sha256::Hex() {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_Final(digest, &state_->context);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof(digest)});
}

std::string Sha256Hex(std::string_view bytes) {
  Sha256 digest;
  digest.Add(bytes.data(), bytes.size());
  return digest.Hex();
}

}  // namespace planwright
