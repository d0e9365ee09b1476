#include "planner/run/agents/wire.h"

#include <ctime>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/json/json_text.h"

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

std::string LineOf(const Json& message) {
  // A rank may print any bytes, and JSON is UTF-8.
  return JsonText(message) + '\n';
}

absl::Status TakeMessages(std::string& in, std::vector<Json>& messages) {
  size_t from = 0;
  for (size_t end; (end = in.find('\n', from)) != std::string::npos; from = end + 1) {
    absl::StatusOr<Json> message = ParseJson(std::string_view(in).substr(from, end - from), kAgentLineJson);
    if (!message.ok()) return message.status();
    if (!message->is_object() || !message->contains("kind") || !(*message)["kind"].is_string())
      return absl::InvalidArgumentError("something that is no message");
    messages.push_back(*std::move(message));
  }
  in.erase(0, from);
  if (in.size() > kLongestLine) return absl::InvalidArgumentError("a line that is too long");
  return absl::OkStatus();
}

std::string TextOf(const Json& message, const char* key) {
  const Json value = message.value(key, Json());
  return value.is_string() ? value.get<std::string>() : "";
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
          {"outlives_sigterm", program.outlives_sigterm},
          {"gpus", program.gpus},
          {"forks", program.forks},
          {"world_size", program.world_size},
          {"ranks_per_node", program.ranks_per_node}};
}

absl::StatusOr<RankProgram> ProgramFrom(const Json& message) {
  return Read<RankProgram>(message, [](const Json& json) {
    return RankProgram{.run_dir = json.at("run_dir").get<std::string>(),
                       .arguments = json.at("arguments").get<std::vector<std::string>>(),
                       .variables = json.at("variables").get<Variables>(),
                       .holds_stop_signal = json.at("holds_stop_signal").get<bool>(),
                       .outlives_sigterm = json.at("outlives_sigterm").get<bool>(),
                       .gpus = json.at("gpus").get<bool>(),
                       .forks = json.at("forks").get<bool>(),
                       .world_size = json.at("world_size").get<int>(),
                       .ranks_per_node = json.at("ranks_per_node").get<int>()};
  });
}

}  // namespace planwright
