#include "planner/agents/fleet.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/diagnostics/json_text.h"
#include "planner/launch/held_signals.h"
#include "planner/launch/launch_log.h"
#include "planner/launch/rank_environment.h"
#include "planner/launch/recorder_reader.h"
#include "planner/rendezvous/proof.h"
#include "planner/rendezvous/socket_address.h"
#include "planner/run_files/file_io.h"

namespace planwright {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr size_t kLineOfStrangers = 4096;  // bytes
constexpr size_t kMostStrangers = 256;     // connections that have not proved themselves; the oldest go first
constexpr auto kPatienceWithStrangers = 10s;
constexpr auto kBeat = 1s;

// Two machines have two monotonic clocks; their clocks of the day are closer.
void TranslateClock(std::optional<RecordedInstruction>& at) {
  if (!at || at->wall <= 0) return;
  const auto now = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return time.tv_sec * int64_t{1000000000} + time.tv_nsec;
  };
  at->monotonic = now(CLOCK_MONOTONIC) - (now(CLOCK_REALTIME) - at->wall);
}

}  // namespace

// The ranks of one life on the fleet's nodes.
class FleetProcesses : public Processes {
 public:
  FleetProcesses(Fleet& fleet, const RankProgram& program)
      : fleet_(fleet), world_size_(program.world_size), run_dir_(program.run_dir) {}
  ~FleetProcesses() override { Signal(SIGKILL); }

  void Add(Fleet::Agent* agent, std::vector<int> ranks) {
    nodes_.push_back({agent, std::set<int>(ranks.begin(), ranks.end())});
  }
  // Waits until every agent has started its ranks, or is lost. Unavailable: it could not start one.
  absl::Status WaitForStart(std::chrono::milliseconds patience);

  int count() const override { return world_size_; }
  void Signal(int number) override {
    LogEvent(absl::StrCat("sending signal ", number, " to the ranks of ", nodes_.size(), " nodes"));
    for (const Node& node : nodes_) {
      if (!node.alive.empty()) node.agent->wire.Send({{"kind", "signal"}, {"number", number}});
    }
  }
  std::vector<ProcessEvent> Wait(const std::optional<Clock::time_point>& until) override;
  std::optional<RankPosition> Position(int rank) override {
    if (const auto position = positions_.find(rank); position != positions_.end()) return position->second;
    // Its agent could not tell. The recorder's pages lie in the run directory, which the nodes share.
    std::optional<RankPosition> position = ReadRecorder(run_dir_, rank);
    if (position) {
      for (auto* at : {&position->last, &position->undone, &position->finished}) TranslateClock(*at);
    }
    return position;
  }

 private:
  struct Node {
    Fleet::Agent* agent;
    std::set<int> alive;  // ranks
  };
  void Read(Node& node, std::vector<ProcessEvent>& events);
  void Take(Node& node, const Json& message, std::vector<ProcessEvent>& events);

  Fleet& fleet_;
  const int world_size_;
  const std::string run_dir_;
  HeldSignals signals_;
  std::vector<Node> nodes_;
  std::map<int, std::optional<RankPosition>> positions_;
  bool interrupted_ = false, interrupted_here_ = false;
};

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Open(FleetOptions options) {
  std::unique_ptr<Fleet> fleet(new Fleet(std::move(options)));
  absl::StatusOr<std::string> secret = MakeSecret();
  if (!secret.ok()) return secret.status();
  fleet->secret_ = *std::move(secret);
  const std::string& host = fleet->options_.address;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  if (inet_pton(AF_INET, host.c_str(), &address.sin_addr) != 1)
    return absl::UnavailableError(host + " is no IPv4 address that agents can connect to");
  const int fd = fleet->listens_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen at ", host, ": ", std::strerror(errno)));
  }
  AllowManyFiles();  // a connection for each node
  // Another head of the same run would take its agents away.
  const std::string lock = fleet->options_.file + ".lock";
  fleet->lock_ = open(lock.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fleet->lock_ < 0) return absl::UnavailableError("cannot write " + lock + ": " + std::strerror(errno));
  if (flock(fleet->lock_, LOCK_EX | LOCK_NB) != 0)
    return absl::AlreadyExistsError(fleet->options_.file + " is in use: another launch waits for agents or runs there");
  const Json found = {{"address", host}, {"port", ntohs(address.sin_port)}, {"secret", fleet->secret_}};
  // The file has its mode before it has its text.
  const mode_t before = umask(0077);
  const absl::Status written = WriteFileAtomically(fleet->options_.file, JsonText(found, 1) + "\n");
  umask(before);
  if (!written.ok()) return written;
  fleet->wrote_ = true;
  return fleet;
}

Fleet::~Fleet() {
  for (Agent& agent : agents_) {
    if (agent.proved && agent.lost.empty()) agent.wire.Send({{"kind", "end"}});
    (void)agent.wire.Flush();
  }
  if (listens_ >= 0) close(listens_);
  if (lock_ < 0) return;
  if (wrote_) unlink(options_.file.c_str());
  close(lock_);
}

std::vector<Fleet::Agent*> Fleet::Proved() {
  std::vector<Agent*> agents;
  for (Agent& agent : agents_) {
    if (agent.proved && agent.lost.empty()) agents.push_back(&agent);
  }
  std::sort(agents.begin(), agents.end(), [](const Agent* a, const Agent* b) { return a->node < b->node; });
  return agents;
}

int Fleet::nodes() {
  Poll(-1, Clock::now());  // some may have been lost since the last life
  return static_cast<int>(Proved().size());
}

absl::Status Fleet::WaitForAgents(int count, std::chrono::milliseconds patience,
                                  const std::function<std::string()>& given_up, int& signal) {
  HeldSignals signals;
  const auto until = Clock::now() + patience;
  for (;;) {
    Poll(signals.fd(), std::min(until, Clock::now() + kBeat));
    const std::vector<Agent*> proved = Proved();
    if (static_cast<int>(proved.size()) >= count) return absl::OkStatus();
    if ((signal = signals.Next()) != 0)
      return absl::AbortedError(absl::StrCat("interrupted by signal ", signal, " while agents were waited for"));
    std::string why = given_up();
    if (why.empty() && Clock::now() >= until) why = absl::StrCat("nobody else within ", patience.count() / 1000, " s");
    if (why.empty()) continue;
    std::vector<std::string> names;
    for (const Agent* agent : proved) names.push_back(agent->name);
    return absl::UnavailableError(absl::StrCat(
        "of ", count, " nodes these came: ", names.empty() ? "none" : absl::StrJoin(names, ", "), "; then ", why));
  }
}

int Fleet::Pause(std::chrono::milliseconds time) {
  HeldSignals signals;
  const auto until = Clock::now() + time;
  for (;;) {
    if (const int number = signals.Next(); number != 0) return number;
    if (Clock::now() >= until) return 0;
    Poll(signals.fd(), until);
  }
}

absl::StatusOr<std::unique_ptr<Processes>> Fleet::Start(const RankProgram& program) {
  auto processes = std::make_unique<FleetProcesses>(*this, program);
  const std::vector<Agent*> agents = Proved();
  const int nodes = NodesOf(program);
  if (static_cast<int>(agents.size()) < nodes)
    return absl::UnavailableError(absl::StrCat("the plan needs ", nodes, " nodes, and ", agents.size(), " are there"));
  for (int node = 0; node < nodes; ++node) {
    // The secret of the store is the one thing that must not be read on the way.
    RankProgram open = program;
    open.variables.erase(kSecretVariable);
    Json message = ProgramJson(open);
    if (const auto secret = program.variables.find(kSecretVariable); secret != program.variables.end()) {
      const absl::StatusOr<Json> sealed = Seal(absl::HexStringToBytes(secret->second), secret_);
      if (!sealed.ok()) return sealed.status();
      message["secret"] = *sealed;
    }
    message["kind"] = "start";
    message["node"] = node;
    message["folder"] = [] {
      char folder[PATH_MAX] = {};
      return std::string(getcwd(folder, sizeof folder) != nullptr ? folder : "/");
    }();
    agents[node]->messages.clear();  // what is left of an earlier life
    agents[node]->wire.Send(message);
    processes->Add(agents[node], RanksOfNode(program, node));
    LogEvent(absl::StrCat("ranks ", absl::StrJoin(RanksOfNode(program, node), ","), " on ", agents[node]->name));
  }
  if (absl::Status status = processes->WaitForStart(60s); !status.ok()) return status;
  return processes;
}

void Fleet::Poll(int extra_fd, Clock::time_point until) {
  const auto now = Clock::now();
  const auto stood_still = now - std::exchange(polled_, now);
  if (now >= next_beat_) {
    for (Agent* agent : Proved()) agent->wire.Send({{"kind", "beat"}});
    next_beat_ = now + kBeat;
  }
  std::vector<pollfd> fds = {{listens_, POLLIN, 0}, {extra_fd, POLLIN, 0}};
  for (Agent& agent : agents_) {
    if (agent.lost.empty()) {
      if (const absl::Status status = agent.wire.Flush(); !status.ok()) agent.lost = std::string(status.message());
    }
    const short wants = static_cast<short>(POLLIN | (agent.wire.wants_to_write() ? POLLOUT : 0));
    fds.push_back({agent.lost.empty() ? agent.wire.fd() : -1, wants, 0});
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::min(until, next_beat_) - now);
  poll(fds.data(), fds.size(), static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX)));
  // Heard before silence is judged: this program may have slept itself.
  size_t at = 2;
  for (Agent& agent : agents_) {
    const pollfd& fd = fds[at++];
    if (!agent.lost.empty() || fd.revents == 0) continue;
    const absl::Status status = agent.wire.Receive(agent.messages);
    agent.heard = Clock::now();
    if (!agent.proved && !agent.messages.empty()) Prove(agent);
    if (!status.ok()) agent.lost = std::string(status.message());
    if (!status.ok() && stood_still > options_.silence)
      absl::StrAppend(&agent.lost, ", after this program had stood still for ",
                      std::chrono::ceil<std::chrono::seconds>(stood_still).count(), " s");
  }
  for (Agent& agent : agents_) {
    if (agent.proved && agent.lost.empty() && Clock::now() - agent.heard > options_.silence)
      agent.lost = absl::StrCat("nothing was heard from it for ", options_.silence.count() / 1000.0, " s");
    // A node that was cut off and is back finds a closed connection, and ends its ranks at once.
    if (!agent.lost.empty()) agent.wire = Wire();
  }
  if (fds[0].revents != 0) Accept();
  DropStrangers();
}

void Fleet::Accept() {
  for (;;) {
    sockaddr_in from{};
    socklen_t size = sizeof from;
    const int fd = accept4(listens_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    Agent& agent = agents_.emplace_back();
    agent.wire = Wire(fd);
    agent.wire.set_longest_line(kLineOfStrangers);
    char text[INET_ADDRSTRLEN] = {};
    inet_ntop(AF_INET, &from.sin_addr, text, sizeof text);
    agent.name = text;
    agent.since = agent.heard = Clock::now();
    const absl::StatusOr<std::string> nonce = RandomBytes(kNonceBytes);
    if (!nonce.ok()) {
      agent.lost = std::string(nonce.status().message());
      continue;
    }
    agent.nonce = *nonce;
    agent.wire.Send({{"kind", "head"}, {"protocol", kAgentProtocol}, {"nonce", absl::BytesToHexString(agent.nonce)}});
  }
}

void Fleet::Prove(Agent& agent) {
  const Json hello = std::move(agent.messages.front());
  agent.messages.erase(agent.messages.begin());
  const std::string nonce =
      absl::HexStringToBytes(hello.value("nonce", Json("")).is_string() ? hello.value("nonce", "") : "");
  const std::string proof = hello.value("proof", Json("")).is_string() ? hello.value("proof", "") : "";
  if (nonce.size() != kNonceBytes ||
      !SameProof(absl::HexStringToBytes(proof), ClientProof(secret_, nonce, agent.nonce))) {
    agent.lost = "it does not know the secret of this run";
    return;
  }
  const Json node = hello.value("node", Json()), host = hello.value("host", Json());
  agent.node = node.is_number_integer() ? node.get<int>() : -1;
  std::set<int> taken;
  for (const Agent* other : Proved()) taken.insert(other->node);
  if (agent.node < 0) {
    agent.node = 0;
    while (taken.contains(agent.node)) ++agent.node;
  } else if (taken.contains(agent.node)) {
    agent.lost = absl::StrCat("node ", agent.node, " has an agent already");
    agent.wire.Send({{"kind", "refused"}, {"text", agent.lost}});
    (void)agent.wire.Flush();
    return;
  }
  agent.proved = true;
  agent.wire.set_longest_line(size_t{8} << 20);
  if (host.is_string()) agent.name = absl::StrCat(host.get<std::string>(), " (", agent.name, ")");
  agent.wire.Send({{"kind", "welcome"},
                   {"proof", absl::BytesToHexString(ServerProof(secret_, nonce, agent.nonce))},
                   {"silence", options_.silence.count()}});
  LogEvent(absl::StrCat("agent of node ", agent.node, ": ", agent.name));
}

void Fleet::DropStrangers() {
  size_t strangers = 0;
  for (Agent& agent : agents_) strangers += !agent.proved;
  for (auto agent = agents_.begin(); agent != agents_.end();) {
    const bool late = Clock::now() - agent->since > kPatienceWithStrangers;
    if (!agent->proved && (late || !agent->lost.empty() || strangers > kMostStrangers)) {
      --strangers;
      agent = agents_.erase(agent);
    } else {
      ++agent;
    }
  }
}

absl::Status FleetProcesses::WaitForStart(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<Node*> waiting;
  for (Node& node : nodes_) waiting.push_back(&node);
  while (!waiting.empty()) {
    fleet_.Poll(-1, until);
    for (auto node = waiting.begin(); node != waiting.end();) {
      std::vector<Json>& messages = (*node)->agent->messages;
      const auto answer = std::find_if(messages.begin(), messages.end(), [](const Json& message) {
        return message["kind"] == "started" || message["kind"] == "failed";
      });
      const bool answered = answer != messages.end();
      if (answered && (*answer)["kind"] == "failed")
        return absl::UnavailableError(absl::StrCat((*node)->agent->name, ": ", answer->value("text", "")));
      if (answered) {
        messages.erase(messages.begin(), answer + 1);
      } else if (Clock::now() >= until) {
        (*node)->agent->lost = absl::StrCat("it did not start its ranks within ", patience.count() / 1000, " s");
      }
      // A node that is lost now is a failure of the run like one that is lost later: its ranks are unreachable.
      if (answered || !(*node)->agent->lost.empty()) {
        node = waiting.erase(node);
      } else {
        ++node;
      }
    }
  }
  return absl::OkStatus();
}

std::vector<ProcessEvent> FleetProcesses::Wait(const std::optional<Clock::time_point>& until) {
  std::vector<ProcessEvent> events;
  while (events.empty()) {
    fleet_.Poll(signals_.fd(), until.value_or(Clock::now() + kBeat));
    for (int number; (number = signals_.Next()) != 0;) {
      // What was sent to all programs of the run, here and on its nodes, is one request.
      const bool of_an_agents_request = !std::exchange(interrupted_here_, true) && interrupted_;
      interrupted_ = true;
      if (!of_an_agents_request) events.push_back({.kind = ProcessEvent::Kind::kInterrupt, .signal = number});
    }
    for (Node& node : nodes_) Read(node, events);
    if (until && Clock::now() >= *until) break;
  }
  return events;
}

void FleetProcesses::Read(Node& node, std::vector<ProcessEvent>& events) {
  for (const Json& message : std::exchange(node.agent->messages, {})) Take(node, message, events);
  if (node.agent->lost.empty()) return;
  if (!node.alive.empty()) LogEvent(node.agent->name + " is lost: " + node.agent->lost);
  for (int rank : std::exchange(node.alive, {})) {
    events.push_back(
        {.kind = ProcessEvent::Kind::kUnreachable, .rank = rank, .text = node.agent->name + ": " + node.agent->lost});
  }
}

void FleetProcesses::Take(Node& node, const Json& message, std::vector<ProcessEvent>& events) {
  const std::string kind = message["kind"];
  if (kind == "position") {
    const absl::StatusOr<std::optional<RankPosition>> position = PositionFrom(message.value("position", Json()));
    if (position.ok()) positions_[message.value("rank", -1)] = *position;
    return;
  }
  if (kind != "event") return;  // a beat
  absl::StatusOr<ProcessEvent> event = EventFrom(message);
  if (!event.ok()) {
    node.agent->lost = std::string(event.status().message());
    return;
  }
  if (event->kind == ProcessEvent::Kind::kInterrupt) {
    // Slurm may send a signal to every agent, and to the head; together they are one.
    if (std::exchange(interrupted_, true)) return;
  } else if (event->kind == ProcessEvent::Kind::kEnded) {
    if (node.alive.erase(event->rank) == 0) return;
    LogEvent(absl::StrCat("rank ", event->rank, " on ", node.agent->name,
                          event->signal != 0 ? absl::StrCat(" ended by signal ", event->signal)
                                             : absl::StrCat(" ended with exit status ", event->exit_status)));
  }
  events.push_back(*std::move(event));
}

}  // namespace planwright
