#include "planner/agents/wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/diagnostics/json_text.h"
#include "planner/rendezvous/proof.h"

namespace planwright {
namespace {

using Json = nlohmann::json;

// Two machines have two monotonic clocks, so what goes over the wire is how long ago something was.
int64_t Now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

Json InstructionJson(const std::optional<RecordedInstruction>& at) {
  if (!at) return nullptr;
  return {{"number", at->number},
          {"state", static_cast<int>(at->state)},
          {"step", at->step},
          {"age", Now() - at->monotonic},
          {"microbatch", at->microbatch},
          {"origin", at->origin},
          {"path", at->path},
          {"text", at->text}};
}

std::optional<RecordedInstruction> InstructionFrom(const Json& json) {
  if (json.is_null()) return std::nullopt;
  RecordedInstruction at;
  at.number = json.at("number").get<uint64_t>();
  at.state = static_cast<RecorderState>(json.at("state").get<int>());
  at.step = json.at("step").get<int64_t>();
  at.monotonic = Now() - json.at("age").get<int64_t>();
  at.microbatch = json.at("microbatch").get<int>();
  at.origin = json.at("origin").get<int>();
  at.path = json.at("path").get<std::string>();
  at.text = json.at("text").get<std::string>();
  return at;
}

// The fields are read with at() and get(), which throw; a message of another program is an error and no crash.
template <typename T>
absl::StatusOr<T> Read(const Json& message, T (*read)(const Json&)) {
  try {
    return read(message);
  } catch (const Json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("a message of another form: ", error.what()));
  }
}

Json PaceJson(const std::vector<RecordedPace>& pace) {
  Json steps = Json::array();
  for (const RecordedPace& one : pace) steps.push_back({one.step, one.busy});
  return steps;
}

}  // namespace

Wire::Wire(int socket) : fd_(socket) {
  fcntl(fd_, F_SETFL, fcntl(fd_, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Wire::Wire(Wire&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), longest_line_(other.longest_line_), in_(std::move(other.in_)),
      out_(std::move(other.out_)) {}

Wire& Wire::operator=(Wire&& other) noexcept {
  if (this == &other) return *this;
  if (fd_ >= 0) close(fd_);
  fd_ = std::exchange(other.fd_, -1);
  longest_line_ = other.longest_line_;
  in_ = std::move(other.in_), out_ = std::move(other.out_);
  return *this;
}

Wire::~Wire() {
  if (fd_ >= 0) close(fd_);
}

void Wire::Send(const Json& message) {
  // A rank may print any bytes, and JSON is UTF-8.
  out_ += JsonText(message);
  out_ += '\n';
}

absl::Status Wire::Flush() {
  while (!out_.empty()) {
    const ssize_t sent = send(fd_, out_.data(), out_.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (sent < 0) return absl::UnavailableError(std::strerror(errno));
    out_.erase(0, sent);
  }
  return absl::OkStatus();
}

absl::Status Wire::Receive(std::vector<Json>& messages) {
  absl::Status ended;
  char bytes[65536];
  for (;;) {
    const ssize_t count = recv(fd_, bytes, sizeof bytes, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    if (count <= 0) {
      ended = absl::UnavailableError(count == 0 ? "the connection was closed" : std::strerror(errno));
      break;
    }
    in_.append(bytes, count);
    if (in_.find('\n') == std::string::npos && in_.size() > longest_line_)
      return absl::InvalidArgumentError("a line that is too long");
  }
  size_t from = 0;
  for (size_t end; (end = in_.find('\n', from)) != std::string::npos; from = end + 1) {
    Json message = Json::parse(in_.begin() + from, in_.begin() + end, nullptr, false);
    if (end - from > longest_line_ || !message.is_object() || !message.contains("kind") || !message["kind"].is_string())
      return absl::InvalidArgumentError("something that is no message");
    messages.push_back(std::move(message));
  }
  in_.erase(0, from);
  return ended;
}

absl::StatusOr<Json> Seal(const std::string& text, const std::string& key) {
  if (text.size() > kProofBytes) return absl::InvalidArgumentError("the text is too long to be sealed");
  const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
  if (!nonce.ok()) return nonce.status();
  const std::string pad = HmacSha256(key, "planwright seal 1" + *nonce);
  std::string sealed = text;
  for (size_t i = 0; i < sealed.size(); ++i) sealed[i] = static_cast<char>(sealed[i] ^ pad[i]);
  return Json{{"nonce", absl::BytesToHexString(*nonce)}, {"bytes", absl::BytesToHexString(sealed)}};
}

absl::StatusOr<std::string> Open(const Json& sealed, const std::string& key) {
  if (!sealed.is_object() || !sealed.value("nonce", Json()).is_string() || !sealed.value("bytes", Json()).is_string())
    return absl::InvalidArgumentError("nothing is sealed");
  const std::string nonce = absl::HexStringToBytes(sealed["nonce"].get<std::string>());
  std::string text = absl::HexStringToBytes(sealed["bytes"].get<std::string>());
  if (text.size() > kProofBytes) return absl::InvalidArgumentError("what is sealed is too long");
  const std::string pad = HmacSha256(key, "planwright seal 1" + nonce);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(text[i] ^ pad[i]);
  return text;
}

Json EventJson(const ProcessEvent& event) {
  return {{"kind", "event"},        {"event", static_cast<int>(event.kind)},
          {"rank", event.rank},     {"exit_status", event.exit_status},
          {"signal", event.signal}, {"is_error", event.is_error},
          {"text", event.text}};
}

absl::StatusOr<ProcessEvent> EventFrom(const Json& message) {
  return Read<ProcessEvent>(message, [](const Json& json) {
    return ProcessEvent{.kind = static_cast<ProcessEvent::Kind>(json.at("event").get<int>()),
                        .rank = json.at("rank").get<int>(),
                        .exit_status = json.at("exit_status").get<int>(),
                        .signal = json.at("signal").get<int>(),
                        .is_error = json.at("is_error").get<bool>(),
                        .text = json.at("text").get<std::string>()};
  });
}

Json PositionJson(const std::optional<RankPosition>& position) {
  if (!position) return nullptr;
  return {{"state", static_cast<int>(position->state)},
          {"exit_code", position->exit_code},
          {"failed", position->failed == 0 ? 0 : Now() - position->failed},
          {"begun", position->begun},
          {"done", position->done},
          {"host", position->host},
          {"message", position->message},
          {"last", InstructionJson(position->last)},
          {"undone", InstructionJson(position->undone)},
          {"finished", InstructionJson(position->finished)},
          {"pace", PaceJson(position->pace)}};
}

absl::StatusOr<std::optional<RankPosition>> PositionFrom(const Json& message) {
  return Read<std::optional<RankPosition>>(message, [](const Json& json) -> std::optional<RankPosition> {
    if (json.is_null()) return std::nullopt;
    RankPosition position;
    position.state = static_cast<RecorderState>(json.at("state").get<int>());
    position.exit_code = json.at("exit_code").get<int>();
    const auto failed = json.at("failed").get<int64_t>();
    position.failed = failed == 0 ? 0 : Now() - failed;
    position.begun = json.at("begun").get<uint64_t>();
    position.done = json.at("done").get<uint64_t>();
    position.host = json.at("host").get<std::string>();
    position.message = json.at("message").get<std::string>();
    for (const Json& one : json.at("pace"))
      position.pace.push_back({one.at(0).get<int64_t>(), one.at(1).get<int64_t>()});
    position.last = InstructionFrom(json.at("last"));
    position.undone = InstructionFrom(json.at("undone"));
    position.finished = InstructionFrom(json.at("finished"));
    return position;
  });
}

Json ProgramJson(const RankProgram& program) {
  return {{"run_dir", program.run_dir},
          {"arguments", program.arguments},
          {"variables", program.variables},
          {"holds_stop_signal", program.holds_stop_signal},
          {"gpus", program.gpus},
          {"world_size", program.world_size},
          {"ranks_per_node", program.ranks_per_node}};
}

absl::StatusOr<RankProgram> ProgramFrom(const Json& message) {
  return Read<RankProgram>(message, [](const Json& json) {
    return RankProgram{.run_dir = json.at("run_dir").get<std::string>(),
                       .arguments = json.at("arguments").get<std::vector<std::string>>(),
                       .variables = json.at("variables").get<Variables>(),
                       .holds_stop_signal = json.at("holds_stop_signal").get<bool>(),
                       .gpus = json.at("gpus").get<bool>(),
                       .world_size = json.at("world_size").get<int>(),
                       .ranks_per_node = json.at("ranks_per_node").get<int>()};
  });
}

}  // namespace planwright
