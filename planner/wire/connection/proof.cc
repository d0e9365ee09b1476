#include "planner/wire/connection/proof.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/base/digest/sha256.h"

namespace planwright {
namespace {

std::string Digest(std::string_view first, std::string_view second) {
  Sha256 digest;
  digest.Add(first.data(), first.size());
  digest.Add(second.data(), second.size());
  return absl::HexStringToBytes(digest.Hex());
}

std::string ProofOf(const Purpose& purpose, std::string_view end, std::string_view secret,
                    std::string_view client_nonce, std::string_view server_nonce) {
  std::string text(purpose.name);
  return HmacSha256(secret, text.append(end).append(client_nonce).append(server_nonce));
}

}  // namespace

// Written here, because HMAC() of OpenSSL reads the machine's openssl.cnf (docs/decisions/0002).
std::string HmacSha256(std::string_view key, std::string_view message) {
  constexpr size_t kBlock = 64;
  std::string block(key.size() > kBlock ? Digest(key, "") : key);
  block.resize(kBlock, '\0');
  std::string inner = block, outer = block;
  for (char& byte : inner) byte = static_cast<char>(byte ^ 0x36);
  for (char& byte : outer) byte = static_cast<char>(byte ^ 0x5c);
  return Digest(outer, Digest(inner, message));
}

std::string ServerProof(const Purpose& purpose, std::string_view secret, std::string_view client_nonce,
                        std::string_view server_nonce) {
  return ProofOf(purpose, " server 2", secret, client_nonce, server_nonce);
}

std::string ClientProof(const Purpose& purpose, std::string_view secret, std::string_view client_nonce,
                        std::string_view server_nonce) {
  return ProofOf(purpose, " client 2", secret, client_nonce, server_nonce);
}

bool SameProof(std::string_view one, std::string_view other) {
  if (one.size() != other.size()) return false;
  unsigned differs = 0;
  for (size_t i = 0; i < one.size(); ++i) differs |= static_cast<unsigned char>(one[i] ^ other[i]);
  return differs == 0;
}

absl::StatusOr<std::string> RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t done = 0; done < count;) {
    const ssize_t got = getrandom(bytes.data() + done, count - done, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return absl::UnavailableError(absl::StrCat("no random bytes: ", std::strerror(errno)));
    done += static_cast<size_t>(got);
  }
  return bytes;
}

absl::StatusOr<std::string> MakeSecret() {
  absl::StatusOr<std::string> bytes = RandomBytes(32);
  if (!bytes.ok()) return bytes.status();
  return absl::BytesToHexString(*bytes);
}

}  // namespace planwright
