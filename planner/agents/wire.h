// What a head and its agents say to each other (docs/agents.md#protocol): a line of JSON for each message, with a field
// `kind`, over one TCP connection.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"
#include "planner/launch/processes.h"
#include "planner/launch/rank_program.h"

namespace planwright {

inline constexpr int kAgentProtocol = 1;

// One end of a connection. Nothing blocks: what cannot be sent yet waits in memory.
class Wire {
 public:
  Wire() = default;
  // Takes over a connected socket and makes it non-blocking.
  explicit Wire(int socket);
  Wire(Wire&& other) noexcept;
  Wire& operator=(Wire&& other) noexcept;
  ~Wire();

  int fd() const { return fd_; }
  bool wants_to_write() const { return !out_.empty(); }
  // Until the other end has proved itself, its lines are short.
  void set_longest_line(size_t bytes) { longest_line_ = bytes; }

  void Send(const nlohmann::json& message);
  // Sends what waits, as far as that is possible now. Unavailable: the connection is lost.
  absl::Status Flush();
  // Appends the messages that have come. Unavailable: the connection is lost or closed; InvalidArgument: what came is
  // no message.
  absl::Status Receive(std::vector<nlohmann::json>& messages);

 private:
  int fd_ = -1;
  size_t longest_line_ = size_t{8} << 20;
  std::string in_, out_;
};

// A text that only who knows `key` can read: it is joined with an HMAC of a fresh nonce, which is used once. Texts of
// up to kProofBytes bytes; longer ones are InvalidArgument.
absl::StatusOr<nlohmann::json> Seal(const std::string& text, const std::string& key);
absl::StatusOr<std::string> Open(const nlohmann::json& sealed, const std::string& key);

nlohmann::json EventJson(const ProcessEvent& event);
nlohmann::json PositionJson(const std::optional<RankPosition>& position);
nlohmann::json ProgramJson(const RankProgram& program);
// InvalidArgument if a field is missing or has another type.
absl::StatusOr<ProcessEvent> EventFrom(const nlohmann::json& message);
absl::StatusOr<std::optional<RankPosition>> PositionFrom(const nlohmann::json& message);
absl::StatusOr<RankProgram> ProgramFrom(const nlohmann::json& message);

}  // namespace planwright
