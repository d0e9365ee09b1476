// How the two ends of a connection show each other that they know the secret of the run, without sending it: each
// proves it with an HMAC-SHA256 over a fresh nonce of both (docs/rendezvous.md#protocol).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

inline constexpr size_t kNonceBytes = 32, kProofBytes = 32;

// RFC 2104, 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view message);

// The proofs of the two ends differ, so neither can be sent back as an answer.
std::string ServerProof(std::string_view secret, std::string_view client_nonce, std::string_view server_nonce);
std::string ClientProof(std::string_view secret, std::string_view client_nonce, std::string_view server_nonce);

// Takes as long for any two texts of one length, wherever they differ.
bool SameProof(std::string_view one, std::string_view other);

// From the kernel, fit for secrets. Unavailable if it has none.
absl::StatusOr<std::string> RandomBytes(size_t count);

// A secret for one run: 256 random bits, in hex.
absl::StatusOr<std::string> MakeSecret();

}  // namespace planwright
