// What goes over a connection to the store of a run (docs/rendezvous.md#protocol). A message is a frame: its length,
// and so many bytes. Numbers are little-endian. Every length is checked before memory is taken for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/wire/connection/proof.h"

namespace planwright {

inline constexpr Purpose kStorePurpose = {"planwright store", "PWASK\r\n\2", "PWSTORE\2", "the store"};

inline constexpr size_t kMostFrameBytes = size_t{32} << 20;  // of a message, without the four bytes of its length

// Operations mean what they mean in c10d::Store. Keys and values are any bytes.
enum class StoreOp : uint8_t {
  kSet = 1,         // key, value, key, value...: sets all of them together
  kGet = 2,         // keys: waits until all exist; replies with their values
  kWait = 3,        // keys: waits until all exist
  kCompareSet = 4,  // key, expected, desired: replies with the value that the key has then
  kAdd = 5,         // key, and `number`: replies with the sum as `number`
  kCheck = 6,       // keys: `number` is 1 if all exist
  kDelete = 7,      // key: `number` is 1 if it existed
  kCount = 8,       // `number` of keys
  kAppend = 9,      // key, value
  kCancel = 10,     // ends a kGet or kWait that waits; has no reply of its own
};

enum class StoreReply : uint8_t {
  kDone = 1,
  kCancelled = 2,
  kRefused = 3,  // the request makes no sense, or the store is full; the field says which
};

// A request (`kind` is a StoreOp) or a reply (a StoreReply).
struct StoreMessage {
  uint8_t kind = 0;
  int64_t number = 0;
  std::vector<std::string> fields;

  bool operator==(const StoreMessage&) const = default;
};

// The frame of a message. ResourceExhausted if it is longer than kMostFrameBytes.
absl::StatusOr<std::string> FrameOf(const StoreMessage& message);

// Takes the first frame from `bytes` if all of it is there; nullopt: more bytes must come. InvalidArgument if no bytes
// could make it a message.
absl::StatusOr<std::optional<StoreMessage>> TakeFrame(std::string& bytes);

}  // namespace planwright
