#include "planner/wire/rendezvous/store_protocol.h"

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

template <typename Number>
void AppendNumber(std::string& bytes, Number number) {
  for (size_t i = 0; i < sizeof number; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
}

// Takes a number from the front; the caller has checked that it is there.
template <typename Number>
Number TakeNumber(std::string_view& bytes) {
  Number number = 0;
  for (size_t i = 0; i < sizeof number; ++i) number |= Number{static_cast<uint8_t>(bytes[i])} << (8 * i);
  bytes.remove_prefix(sizeof number);
  return number;
}

constexpr size_t kLengthBytes = 4, kHeadBytes = 1 + 8 + 4;  // kind, number, count of fields

absl::StatusOr<StoreMessage> Parse(std::string_view bytes) {
  StoreMessage message;
  message.kind = TakeNumber<uint8_t>(bytes);
  message.number = static_cast<int64_t>(TakeNumber<uint64_t>(bytes));
  const size_t count = TakeNumber<uint32_t>(bytes);
  if (count > bytes.size() / kLengthBytes)
    return absl::InvalidArgumentError(absl::StrCat(count, " fields in ", bytes.size(), " bytes"));
  message.fields.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (bytes.size() < kLengthBytes) return absl::InvalidArgumentError("a field has no length");
    const size_t size = TakeNumber<uint32_t>(bytes);
    if (size > bytes.size())
      return absl::InvalidArgumentError(absl::StrCat("a field of ", size, " bytes in ", bytes.size()));
    message.fields.emplace_back(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  if (!bytes.empty()) return absl::InvalidArgumentError(absl::StrCat(bytes.size(), " bytes after the last field"));
  return message;
}

}  // namespace

absl::StatusOr<std::string> FrameOf(const StoreMessage& message) {
  size_t size = kHeadBytes;
  for (const std::string& field : message.fields) size += kLengthBytes + field.size();
  if (size > kMostFrameBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a message for the store has ", size, " bytes, of at most ", kMostFrameBytes));
  }
  std::string bytes;
  bytes.reserve(kLengthBytes + size);
  AppendNumber(bytes, static_cast<uint32_t>(size));
  AppendNumber(bytes, message.kind);
  AppendNumber(bytes, static_cast<uint64_t>(message.number));
  AppendNumber(bytes, static_cast<uint32_t>(message.fields.size()));
  for (const std::string& field : message.fields) {
    AppendNumber(bytes, static_cast<uint32_t>(field.size()));
    bytes += field;
  }
  return bytes;
}

absl::StatusOr<std::optional<StoreMessage>> TakeFrame(std::string& bytes) {
  if (bytes.size() < kLengthBytes) return std::nullopt;
  std::string_view rest = bytes;
  const size_t size = TakeNumber<uint32_t>(rest);
  if (size < kHeadBytes || size > kMostFrameBytes)
    return absl::InvalidArgumentError(absl::StrCat("a message of ", size, " bytes"));
  if (rest.size() < size) return std::nullopt;
  absl::StatusOr<StoreMessage> message = Parse(rest.substr(0, size));
  if (!message.ok()) return message.status();
  bytes.erase(0, kLengthBytes + size);
  return *std::move(message);
}

}  // namespace planwright
