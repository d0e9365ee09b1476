// How the two ends of a connection show each other that they know a secret, without sending it: each proves it with an
// HMAC-SHA256 over a fresh nonce of both (docs/rendezvous.md#protocol).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace planwright {

inline constexpr size_t kNonceBytes = 32, kProofBytes = 32, kMagicBytes = 8;

// What a connection is for. What is proved for one purpose proves nothing for another one.
struct Purpose {
  std::string_view name;                        // begins each text of which a proof is made
  std::string_view client_magic, server_magic;  // the first kMagicBytes of each end; the last one is the version
  std::string_view server;                      // for messages: "the store"
};

// What the server sends when the client has proved itself: from then on it is no stranger who may have to make room.
inline constexpr char kWelcome = 1;

// RFC 2104, 32 bytes.
std::string HmacSha256(std::string_view key, std::string_view message);

// The proofs of the two ends differ, so neither can be sent back as an answer.
std::string ServerProof(const Purpose& purpose, std::string_view secret, std::string_view client_nonce,
                        std::string_view server_nonce);
std::string ClientProof(const Purpose& purpose, std::string_view secret, std::string_view client_nonce,
                        std::string_view server_nonce);

// Takes as long for any two texts of one length, wherever they differ.
bool SameProof(std::string_view one, std::string_view other);

// From the kernel, fit for secrets. Unavailable if it has none.
absl::StatusOr<std::string> RandomBytes(size_t count);

// A secret for one run: 256 random bits, in hex.
absl::StatusOr<std::string> MakeSecret();

}  // namespace planwright
