#include "planner/run/agents/agent.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/run/agents/wire.h"
#include "planner/run/launch/local_processes.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/wire/connection/proven_client.h"
#include "planner/wire/fork/end_signal.h"
#include "planner/wire/records/run_timeout.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using namespace std::chrono_literals;

// From kEndSignal to SIGKILL where the head is lost, and for the last words of an agent that a signal ends.
constexpr auto kGrace = 1200ms;
constexpr auto kRetry = 200ms;
constexpr auto kHandshake = 10s;
// What the ranks of this node print waits in their pipes while so many bytes wait for the head.
constexpr size_t kMostUnsent = kLongestLine;

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
  const absl::StatusOr<std::string> text = ReadWholeFile(path, kHeadJson.bytes);
  if (!text.ok()) return text.status();
  const Json json = ParseJson(*text, kHeadJson).value_or(Json());
  try {
    return HeadFile{json.at("address").get<std::string>(), json.at("secret").get<std::string>(),
                    json.at("port").get<int>()};
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(path + " does not say where a head is");
  }
}

// While this lives, a thread tells the head that this agent is there, and nobody else uses the stream.
class BeatsMeanwhile {
 public:
  explicit BeatsMeanwhile(ByteStream& stream) : stream_(stream) {
    // Signals are for the ranks' processes, which hold them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([this] { Beat(); });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~BeatsMeanwhile() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

 private:
  void Beat() {
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, kBeat, [this] { return done_; })) {
      if (stream_.unsent() <= kMostUnsent) stream_.Add(LineOf({{"kind", "beat"}}));
      (void)stream_.Flush();  // a lost connection is noticed when the next message is read
    }
  }

  ByteStream& stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

class Agent {
 public:
  explicit Agent(const AgentOptions& options) : options_(options) {}

  // Both sides prove that they know the secret; then this one says where it is.
  absl::Status Join() {
    const absl::StatusOr<HeadFile> head = ReadHeadFile(options_.file);
    if (!head.ok()) return head.status();
    absl::StatusOr<ByteStream> stream =
        ConnectOnce(head->address, head->port, kAgentsPurpose, head->secret, kHandshake);
    // The file may be that of an earlier head, whose port another program has by now: it is read again.
    if (!stream.ok()) {
      return absl::UnavailableError(
          absl::StrCat("the head at ", head->address, ":", head->port, ": ", stream.status().message()));
    }
    stream_ = *std::move(stream);
    secret_ = head->secret;
    Send({{"kind", "hello"}, {"node", options_.node}, {"host", OwnHost()}});
    const absl::StatusOr<Json> welcome = Next();
    if (!welcome.ok()) return welcome.status();
    if ((*welcome)["kind"] == "refused")
      return absl::FailedPreconditionError("the head refuses this agent: " + Printable(TextOf(*welcome, "text")));
    const Json silence = welcome->value("silence", Json());
    if (silence.is_number_integer()) silence_ = std::chrono::milliseconds(silence.get<int64_t>());
    heard_ = Clock::now();
    return absl::OkStatus();
  }

  absl::Status Serve() {
    while (!done_) {
      Beat();
      Wait();
      const absl::Status status = Receive();
      if (!messages_.empty()) heard_ = Clock::now();
      // Judged before what follows, which may take long: what came meanwhile is not read yet.
      const bool silent = Clock::now() - heard_ > silence_;
      for (const Json& message : std::exchange(messages_, {})) Take(message);
      if (processes_ && stream_.unsent() <= kMostUnsent) Report();
      if (done_) break;
      if (interrupted_ != 0) {
        (void)SendAll(stream_, "", Clock::now() + kGrace);  // how the ranks ended
        processes_.reset();  // from here on the signal is not held any more, and ends this program
        raise(interrupted_);
      }
      if (!status.ok()) return Lost(std::string(status.message()));
      if (absl::Status flushed = stream_.Flush(); !flushed.ok()) return Lost(std::string(flushed.message()));
      if (silent) return Lost(absl::StrCat("nothing was heard from it for ", silence_.count() / 1000.0, " s"));
    }
    return absl::OkStatus();
  }

 private:
  void Send(const Json& message) { stream_.Add(LineOf(message)); }

  // Reads one turn of what has come.
  absl::Status Receive() {
    absl::Status status = stream_.Receive(kBytesOfATurn);
    const absl::Status taken = TakeMessages(stream_.in(), messages_);
    return status.ok() ? taken : status;
  }

  // The next message, within the time of a handshake. What came behind it stays for later.
  absl::StatusOr<Json> Next() {
    const auto until = Clock::now() + kHandshake;
    if (absl::Status sent = SendAll(stream_, "", until); !sent.ok()) return sent;
    while (messages_.empty()) {
      if (absl::Status ready = WaitForSocket(stream_.fd(), POLLIN, until); !ready.ok()) return ready;
      if (absl::Status status = Receive(); !status.ok() && messages_.empty()) return status;
    }
    Json message = std::move(messages_.front());
    messages_.erase(messages_.begin());
    return message;
  }

  void Beat() {
    if (Clock::now() < next_beat_) return;
    next_beat_ = Clock::now() + kBeat;
    if (stream_.unsent() <= kMostUnsent) Send({{"kind", "beat"}});
    (void)stream_.Flush();  // a lost connection is noticed when the next message is read
  }

  void Wait() {
    std::vector<pollfd> fds = {{stream_.fd(), static_cast<short>(POLLIN | (stream_.unsent() > 0 ? POLLOUT : 0)), 0}};
    if (processes_ && stream_.unsent() <= kMostUnsent) {
      for (int fd : processes_->Descriptors()) fds.push_back({fd, POLLIN, 0});
    }
    if (!messages_.empty()) return;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next_beat_ - Clock::now());
    poll(fds.data(), fds.size(), static_cast<int>(std::max<int64_t>(left.count(), 0)));
  }

  void Take(const Json& message) {
    const std::string kind = TextOf(message, "kind");
    if (kind == "end") done_ = true;
    if (kind == "start") {
      Json answer;
      {
        // The program and the logs may lie on a file system that is slow, or stands still.
        const BeatsMeanwhile beats(stream_);
        answer = StartRanks(message);
      }
      Send(answer);
    }
    const Json number = message.value("number", Json());
    if (kind == "signal" && processes_ && number.is_number_integer()) processes_->Signal(number.get<int>());
  }

  // Returns the answer. This thread starts them, as ranks die with the thread that started them.
  Json StartRanks(const Json& message) {
    processes_.reset();  // ranks of an earlier life would be in the way of this one
    const auto fail = [&](const std::string& text) { return Json{{"kind", "failed"}, {"text", text}}; };
    absl::StatusOr<RankProgram> program = ProgramFrom(message);
    if (program.ok()) {
      if (const auto life = program->variables.find(kLifeVariable); life != program->variables.end())
        program->variables[kSecretVariable] = SecretOfLife(secret_, life->second);
    }
    const Json node = message.value("node", Json());
    if (!program.ok() || !node.is_number_integer()) return fail("the head sent another kind of program");
    // Paths in a recipe may be relative to the folder in which the head was started.
    const std::string folder = TextOf(message, "folder");
    if (chdir(folder.c_str()) != 0) return fail("no folder " + folder + ": " + std::strerror(errno));
    const std::vector<int> ranks = RanksOfNode(*program, node.get<int>());
    absl::StatusOr<std::unique_ptr<LocalProcesses>> processes =
        LocalProcesses::Start(CommandsOf(*program, ranks), ranks, program->run_dir, program->forks);
    if (!processes.ok()) return fail(std::string(processes.status().message()));
    processes_ = *std::move(processes);
    return {{"kind", "started"}};
  }

  void Report() {
    for (const ProcessEvent& event : processes_->Poll()) {
      // Between two lives the head has nobody to ask, and this program is what is meant.
      if (event.kind == ProcessEvent::Kind::kInterrupt && processes_->alive() == 0) interrupted_ = event.signal;
      // Where a rank was is known for good when it has ended.
      if (event.kind == ProcessEvent::Kind::kEnded)
        Send(
            {{"kind", "position"}, {"rank", event.rank}, {"position", PositionJson(processes_->Position(event.rank))}});
      Send(EventJson(event));
    }
  }

  absl::Status Lost(const std::string& why) {
    if (processes_) {
      processes_->Signal(kEndSignal);
      const auto until = Clock::now() + kGrace;
      while (processes_->alive() > 0 && Clock::now() < until) processes_->Wait(until);
      processes_.reset();  // kills what is left
    }
    return absl::UnavailableError("the head is lost: " + why);
  }

  const AgentOptions options_;
  ByteStream stream_;
  std::vector<Json> messages_;  // that came and are not read yet
  std::string secret_;
  std::unique_ptr<LocalProcesses> processes_;
  std::chrono::milliseconds silence_{20000};
  Clock::time_point heard_{}, next_beat_{};
  bool done_ = false;
  int interrupted_ = 0;  // the signal by which this agent shall end
};

}  // namespace

absl::Status RunAgent(const AgentOptions& options) {
  const absl::StatusOr<std::chrono::milliseconds> timeout = RunTimeout();
  if (!timeout.ok()) return timeout.status();
  // The file may not be there yet, or still be that of the head before: a file system of several nodes shows changes
  // late.
  const auto begin = Clock::now(), until = begin + *timeout;
  std::string told;
  for (;;) {
    Agent agent(options);
    const absl::Status joined = agent.Join();
    if (joined.ok()) return agent.Serve();
    if (Clock::now() >= until || absl::IsFailedPrecondition(joined)) return joined;
    const std::filesystem::path folder = std::filesystem::path(options.file).parent_path();
    std::error_code error;
    if (options.file_is_written && Clock::now() >= begin + kSharedFolderPatience &&
        !std::filesystem::exists(folder, error)) {
      return absl::FailedPreconditionError(absl::StrCat(
          OwnHost(), " does not see ", folder.string(),
          ", where the head has written: the run directory must be on a file system that all nodes share"));
    }
    if (options.waits && joined.message() != told) options.waits(told = std::string(joined.message()));
    std::this_thread::sleep_for(kRetry);
  }
}

}  // namespace planwright
