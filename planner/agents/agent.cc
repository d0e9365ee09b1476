#include "planner/agents/agent.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "planner/agents/wire.h"
#include "planner/launch/local_processes.h"
#include "planner/launch/rank_environment.h"
#include "planner/rendezvous/proof.h"
#include "planner/run_files/file_io.h"
#include "planner/run_files/run_timeout.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr auto kBeat = 1s;
constexpr auto kGrace = 1200ms;  // from SIGTERM to SIGKILL, where the head is lost
constexpr auto kRetry = 200ms;
constexpr auto kHandshake = 10s;
constexpr size_t kLongestFile = 4096;

std::string OwnHost() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

struct HeadFile {
  std::string address, secret;
  int port = 0;
};

absl::StatusOr<HeadFile> ReadHeadFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kLongestFile);
  if (!text.ok()) return text.status();
  const Json json = Json::parse(*text, nullptr, false);
  try {
    return HeadFile{json.at("address").get<std::string>(), json.at("secret").get<std::string>(),
                    json.at("port").get<int>()};
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(path + " does not say where a head is");
  }
}

absl::StatusOr<Wire> Connect(const HeadFile& head) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(head.port));
  if (inet_pton(AF_INET, head.address.c_str(), &address.sin_addr) != 1)
    return absl::InvalidArgumentError(head.address + " is no IPv4 address");
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::UnavailableError(std::strerror(errno));
  Wire wire(fd);
  int error = 0;
  socklen_t size = sizeof error;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    pollfd writable = {fd, POLLOUT, 0};
    if (errno != EINPROGRESS) {
      error = errno;
    } else if (poll(&writable, 1, 5000) != 1) {
      error = ETIMEDOUT;
    } else {
      getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
  }
  if (error != 0) return absl::UnavailableError(absl::StrCat(head.address, ":", head.port, ": ", std::strerror(error)));
  return wire;
}

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options) {}

  // Both sides prove that they know the secret.
  absl::Status Join() {
    const absl::StatusOr<HeadFile> head = ReadHeadFile(options_.file);
    if (!head.ok()) return head.status();
    absl::StatusOr<Wire> wire = Connect(*head);
    if (!wire.ok()) return wire.status();
    wire_ = *std::move(wire);
    secret_ = head->secret;
    const absl::StatusOr<Json> greeting = Next();
    if (!greeting.ok()) return greeting.status();
    const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
    if (!nonce.ok()) return nonce.status();
    const std::string other = absl::HexStringToBytes(TextOf(*greeting, "nonce"));
    if ((*greeting)["kind"] != "head" || other.size() != kNonceBytes)
      return absl::InvalidArgumentError(head->address + " answers, but is no head of a run");
    if (greeting->value("protocol", Json()) != kAgentProtocol)
      return absl::InvalidArgumentError("the head is of another version of Planwright");
    wire_.Send({{"kind", "hello"},
                {"nonce", absl::BytesToHexString(*nonce)},
                {"proof", absl::BytesToHexString(ClientProof(head->secret, *nonce, other))},
                {"node", options_.node},
                {"host", OwnHost()}});
    const absl::StatusOr<Json> welcome = Next();
    if (!welcome.ok()) return welcome.status();
    if ((*welcome)["kind"] == "refused")
      return absl::FailedPreconditionError("the head refuses this agent: " + TextOf(*welcome, "text"));
    if (!SameProof(absl::HexStringToBytes(TextOf(*welcome, "proof")), ServerProof(head->secret, *nonce, other)))
      return absl::InvalidArgumentError(head->address + " does not know the secret of the run");
    const Json silence = welcome->value("silence", Json());
    if (silence.is_number_integer()) silence_ = std::chrono::milliseconds(silence.get<int64_t>());
    heard_ = Clock::now();
    return absl::OkStatus();
  }

  absl::Status Serve() {
    while (!done_) {
      Beat();
      Wait();
      const absl::Status status = wire_.Receive(messages_);
      if (!messages_.empty()) heard_ = Clock::now();
      for (const Json& message : std::exchange(messages_, {})) Take(message);
      if (processes_) Report();
      if (done_) break;
      if (!status.ok()) return Lost(std::string(status.message()));
      if (absl::Status flushed = wire_.Flush(); !flushed.ok()) return Lost(std::string(flushed.message()));
      if (Clock::now() - heard_ > silence_)
        return Lost(absl::StrCat("nothing was heard from it for ", silence_.count() / 1000.0, " s"));
    }
    return absl::OkStatus();
  }

 private:
  static std::string TextOf(const Json& message, const char* key) {
    const Json value = message.value(key, Json());
    return value.is_string() ? value.get<std::string>() : "";
  }

  // The next message, within the time of a handshake. What came behind it stays for later.
  absl::StatusOr<Json> Next() {
    const auto until = Clock::now() + kHandshake;
    absl::Status status;
    while (messages_.empty() && status.ok() && Clock::now() < until) {
      if (status = wire_.Flush(); !status.ok()) break;
      pollfd readable = {wire_.fd(), POLLIN, 0};
      poll(&readable, 1, 100);
      status = wire_.Receive(messages_);
    }
    if (messages_.empty()) return status.ok() ? absl::UnavailableError("no answer") : status;
    Json message = std::move(messages_.front());
    messages_.erase(messages_.begin());
    return message;
  }

  void Beat() {
    if (Clock::now() < next_beat_) return;
    next_beat_ = Clock::now() + kBeat;
    wire_.Send({{"kind", "beat"}});
    (void)wire_.Flush();  // a lost connection is noticed when the next message is read
  }

  void Wait() {
    std::vector<pollfd> fds = {{wire_.fd(), static_cast<short>(POLLIN | (wire_.wants_to_write() ? POLLOUT : 0)), 0}};
    if (processes_) {
      for (int fd : processes_->Descriptors()) fds.push_back({fd, POLLIN, 0});
    }
    if (!messages_.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - Clock::now());
    poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left.count(), 0)));
  }

  void Take(const Json& message) {
    const std::string kind = TextOf(message, "kind");
    if (kind == "end") done_ = true;
    if (kind == "start") StartRanks(message);
    const Json number = message.value("number", Json());
    if (kind == "signal" && processes_ && number.is_number_integer()) processes_->Signal(number.get<int>());
  }

  void StartRanks(const Json& message) {
    processes_.reset();  // ranks of an earlier life would be in the way of this one
    const auto fail = [&](const std::string& text) { wire_.Send({{"kind", "failed"}, {"text", text}}); };
    absl::StatusOr<RankProgram> program = ProgramFrom(message);
    if (program.ok() && message.contains("secret")) {
      const absl::StatusOr<std::string> secret = Open(message["secret"], secret_);
      if (!secret.ok()) return fail("the head sent no secret of the store that can be read");
      program->variables[kSecretVariable] = absl::BytesToHexString(*secret);
    }
    const Json node = message.value("node", Json());
    if (!program.ok() || !node.is_number_integer()) return fail("the head sent another kind of program");
    // Paths in a recipe may be relative to the folder in which the head was started.
    const std::string folder = TextOf(message, "folder");
    if (chdir(folder.c_str()) != 0) return fail("no folder " + folder + ": " + std::strerror(errno));
    const std::vector<int> ranks = RanksOfNode(*program, node.get<int>());
    absl::StatusOr<std::unique_ptr<LocalProcesses>> processes =
        LocalProcesses::Start(CommandsOf(*program, ranks), ranks, program->run_dir);
    if (!processes.ok()) return fail(std::string(processes.status().message()));
    processes_ = *std::move(processes);
    wire_.Send({{"kind", "started"}});
  }

  void Report() {
    for (const ProcessEvent& event : processes_->Poll()) {
      // Where a rank was is known for good when it has ended.
      if (event.kind == ProcessEvent::Kind::kEnded)
        wire_.Send(
            {{"kind", "position"}, {"rank", event.rank}, {"position", PositionJson(processes_->Position(event.rank))}});
      wire_.Send(EventJson(event));
    }
  }

  absl::Status Lost(const std::string& why) {
    if (processes_) {
      processes_->Signal(SIGTERM);
      const auto until = Clock::now() + kGrace;
      while (processes_->alive() > 0 && Clock::now() < until) processes_->Wait(until);
      processes_.reset();  // kills what is left
    }
    return absl::UnavailableError("the head is lost: " + why);
  }

  const AgentOptions options_;
  Wire wire_;
  std::vector<Json> messages_;  // that came and are not read yet
  std::string secret_;
  std::unique_ptr<LocalProcesses> processes_;
  std::chrono::milliseconds silence_{20000};
  Clock::time_point heard_{}, next_beat_{};
  bool done_ = false;
};

}  // namespace

absl::Status RunAgent(const AgentOptions& options) {
  const absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout();
  if (!timeout.ok()) return timeout.status();
  // The file may not be there yet, or still be that of the head before: a file system of several nodes shows changes
  // late.
  const auto until = Clock::now() + *timeout;
  std::string told;
  for (;;) {
    Agent agent(options);
    const absl::Status joined = agent.Join();
    if (joined.ok()) return agent.Serve();
    if (Clock::now() >= until || absl::IsFailedPrecondition(joined)) return joined;
    if (options.waits && joined.message() != told) options.waits(told = std::string(joined.message()));
    std::this_thread::sleep_for(kRetry);
  }
}

}  // namespace planwright
