// A connected socket that does not block, with the bytes that came and are not used yet, and those that wait to be
// sent.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "planner/wire/connection/descriptor.h"

namespace planwright {

// The most that is read from one connection before others get their turn.
inline constexpr size_t kBytesOfATurn = size_t{1} << 16;

class ByteStream {
 public:
  ByteStream() = default;
  explicit ByteStream(Descriptor socket) : socket_(std::move(socket)) {}

  int fd() const { return socket_.get(); }
  // What came and is not used yet: who uses bytes takes them away from the front.
  std::string& in() { return in_; }
  const std::string& in() const { return in_; }
  // So many bytes were added that the kernel has not taken yet.
  size_t unsent() const { return out_.size() - sent_; }

  void Add(std::string_view bytes) { out_.append(bytes); }
  // Sends what waits, as far as that is possible now. Unavailable: the connection is lost.
  absl::Status Flush();
  // Appends what has come to in(): at most `most` bytes, and at most kBytesOfATurn. Unavailable: the connection is lost
  // or closed.
  absl::Status Receive(size_t most);

 private:
  Descriptor socket_;
  std::string in_, out_;
  size_t sent_ = 0;  // of `out_`
};

}  // namespace planwright
