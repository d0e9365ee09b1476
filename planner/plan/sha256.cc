#include "planner/plan/sha256.h"

// SHA256() of OpenSSL 3 first reads the machine's openssl.cnf and loads the providers that it names. These deprecated
// functions only hash (docs/decisions/0002).
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include "absl/strings/escaping.h"

namespace planwright {

std::string Sha256Hex(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(digest, &context);
  return absl::BytesToHexString({reinterpret_cast<const char*>(digest), sizeof(digest)});
}

}  // namespace planwright
