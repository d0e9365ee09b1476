#include "planner/run/agents/fleet.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/base/text/utf8.h"
#include "planner/run/agents/wire.h"
#include "planner/run/launch/held_signals.h"
#include "planner/run/launch/launch_log.h"
#include "planner/run/launch/rank_environment.h"
#include "planner/wire/connection/proof.h"
#include "planner/wire/records/recorder_reader.h"

namespace planwright {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

constexpr auto kPatienceWithStrangers = 10s;
// How much one agent may send that is not read. What comes then stays in its connection, and later on its node.
constexpr size_t kMostUnread = kLongestLine;  // bytes

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
      : fleet_(fleet), world_size_(program.world_size), run_dir_(program.run_dir) {
    ++fleet_.lives_;
  }
  ~FleetProcesses() override {
    Signal(SIGKILL);
    --fleet_.lives_;
  }

  void Add(Fleet::Agent* agent, std::vector<int> ranks) {
    nodes_.push_back({agent, std::set<int>(ranks.begin(), ranks.end())});
  }
  // Waits until every agent has started its ranks, or is lost. Unavailable: it could not start one.
  absl::Status WaitForStart(std::chrono::milliseconds patience);

  int count() const override { return world_size_; }
  void Signal(int number) override {
    LogEvent(absl::StrCat("sending signal ", number, " to the ranks of ", nodes_.size(), " nodes"));
    for (const Node& node : nodes_) {
      if (!node.alive.empty()) fleet_.Send(*node.agent, {{"kind", "signal"}, {"number", number}});
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
  // True: the run is asked to end.
  bool TakeSignals();
  void Read(Node& node, std::vector<ProcessEvent>& events);
  void Take(Node& node, const Json& message, std::vector<ProcessEvent>& events);

  Fleet& fleet_;
  const int world_size_;
  const std::string run_dir_;
  HeldSignals signals_;
  std::vector<Node> nodes_;
  std::map<int, std::optional<RankPosition>> positions_;
  std::vector<int> came_;  // signals that Wait has not told yet
  bool interrupted_ = false, interrupted_here_ = false;
};

absl::StatusOr<std::unique_ptr<Fleet>> Fleet::Open(FleetOptions options) {
  std::unique_ptr<Fleet> fleet(new Fleet(std::move(options)));
  absl::StatusOr<std::string> secret = MakeSecret();
  if (!secret.ok()) return secret.status();
  fleet->secret_ = *std::move(secret);
  const std::string& host = fleet->options_.address;
  absl::StatusOr<std::unique_ptr<ProvenServer>> server = ProvenServer::Listen(host, 0,
                                                                              {.purpose = kAgentsPurpose,
                                                                               .secret = fleet->secret_,
                                                                               .patience = kPatienceWithStrangers,
                                                                               .most_in = kLongestLine + kBytesOfATurn,
                                                                               .most_unsent = kLongestLine});
  if (!server.ok())
    return absl::UnavailableError(absl::StrCat("cannot listen at ", host, ": ", server.status().message()));
  fleet->server_ = *std::move(server);
  // Another head of the same run would take its agents away.
  const std::string lock = fleet->LockPath();
  for (struct stat about{}; about.st_nlink == 0;) {  // 0 also of a lock that another head removes as it ends
    fleet->lock_ = Descriptor(OpenToWrite(AT_FDCWD, lock, O_CREAT | O_RDWR, 0600));
    if (fleet->lock_.get() < 0) return WriteFailed("cannot write " + lock, errno);
    if (flock(fleet->lock_.get(), LOCK_EX | LOCK_NB) != 0) {
      return absl::AlreadyExistsError(fleet->options_.file +
                                      " is in use: another launch waits for agents or runs there");
    }
    if (fstat(fleet->lock_.get(), &about) != 0) return WriteFailed("cannot read " + lock, errno);
  }
  const Json found = {{"address", host}, {"port", fleet->server_->port()}, {"secret", fleet->secret_}};
  if (absl::Status written = WriteFileAtomically(fleet->options_.file, JsonText(found, 1) + "\n", 0600); !written.ok())
    return written;
  fleet->wrote_ = true;
  return fleet;
}

Fleet::~Fleet() {
  for (const Agent* agent : Joined()) Send(*agent, {{"kind", "end"}});
  if (!wrote_) return;
  unlink(options_.file.c_str());
  unlink(LockPath().c_str());  // while it is held
}

std::vector<Fleet::Agent*> Fleet::Joined() {
  std::vector<Agent*> agents;
  for (Agent& agent : agents_) {
    if (agent.node >= 0 && agent.lost.empty()) agents.push_back(&agent);
  }
  std::sort(agents.begin(), agents.end(), [](const Agent* a, const Agent* b) { return a->node < b->node; });
  return agents;
}

void Fleet::Send(const Agent& agent, const Json& message) { server_->Send(agent.id, LineOf(message)); }

int Fleet::nodes() {
  Poll(-1, Clock::now());  // some may have been lost since the last life
  return static_cast<int>(Joined().size());
}

absl::Status Fleet::WaitForAgents(int count, std::chrono::milliseconds patience,
                                  const std::function<std::string()>& given_up, int& signal) {
  HeldSignals signals;
  const auto until = Clock::now() + patience;
  for (;;) {
    Poll(signals.fd(), std::min(until, Clock::now() + kBeat));
    const std::vector<Agent*> joined = Joined();
    if (static_cast<int>(joined.size()) >= count) return absl::OkStatus();
    if ((signal = signals.Next()) != 0)
      return absl::AbortedError(absl::StrCat("interrupted by signal ", signal, " while agents were waited for"));
    std::string why = given_up();
    if (why.empty() && Clock::now() >= until) why = absl::StrCat("nobody else within ", patience.count() / 1000, " s");
    if (why.empty()) continue;
    std::vector<std::string> names;
    for (const Agent* agent : joined) names.push_back(agent->name);
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
  const std::vector<Agent*> agents = Joined();
  const int nodes = NodesOf(program);
  if (static_cast<int>(agents.size()) < nodes)
    return absl::UnavailableError(absl::StrCat("the plan needs ", nodes, " nodes, and ", agents.size(), " are there"));
  for (int node = 0; node < nodes; ++node) {
    // The secret of the store must not be read on the way: an agent makes it of what it knows (SecretOfLife).
    RankProgram open = program;
    open.variables.erase(kSecretVariable);
    Json message = ProgramJson(open);
    message["kind"] = "start";
    message["node"] = node;
    message["folder"] = [] {
      char folder[PATH_MAX] = {};
      return std::string(getcwd(folder, sizeof folder) != nullptr ? folder : "/");
    }();
    TakeMessagesOf(*agents[node]);  // what is left of an earlier life
    Send(*agents[node], message);
    processes->Add(agents[node], RanksOfNode(program, node));
    LogEvent(absl::StrCat("ranks ", absl::StrJoin(RanksOfNode(program, node), ","), " on ", agents[node]->name));
  }
  if (absl::Status status = processes->WaitForStart(60s); !status.ok()) return status;
  return processes;
}

void Fleet::Poll(int extra_fd, Clock::time_point until) {
  const auto now = Clock::now();
  stood_still_ = now - std::exchange(polled_, now);
  if (options_.each_turn) options_.each_turn();
  if (now >= next_beat_) {
    for (const Agent* agent : Joined()) Send(*agent, {{"kind", "beat"}});
    next_beat_ = now + kBeat;
  }
  pollfd fds[] = {{server_->fd(), POLLIN, 0}, {extra_fd, POLLIN, 0}};
  auto due = std::min({until, next_beat_, server_->due().value_or(until)});
  if (std::exchange(came_late_, false)) due = now;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(due - now);
  poll(fds, std::size(fds), static_cast<int>(std::clamp<int64_t>(left.count(), 0, INT_MAX)));
  // Heard before silence is judged: this program may have slept itself.
  server_->Serve(*this);
  for (Agent& agent : agents_) {
    // Who is not listened to cannot be heard.
    if (!agent.lost.empty() || agent.unread >= kMostUnread) continue;
    if (Clock::now() - agent.heard <= options_.silence) continue;
    agent.lost = absl::StrCat("nothing was heard from it for ", options_.silence.count() / 1000.0, " s");
    // A node that was cut off and is back finds a closed connection, and ends its ranks at once.
    server_->Close(agent.id);
  }
  std::erase_if(agents_, [](const Agent& agent) { return agent.node < 0 && !agent.lost.empty(); });
}

void Fleet::Proved(ProvenServer::Id id, const std::string& address) {
  agents_.push_back(
      {.id = id, .node = -1, .name = address, .lost = "", .heard = Clock::now(), .messages = {}, .unread = 0});
}

std::string Fleet::Take(ProvenServer::Id id, std::string& in) {
  const auto at = std::find_if(agents_.begin(), agents_.end(), [&](const Agent& agent) { return agent.id == id; });
  Agent& agent = *at;
  agent.heard = Clock::now();
  if (agent.unread >= kMostUnread) return "";
  const size_t before = in.size();
  const absl::Status taken = TakeMessages(in, agent.messages);
  agent.unread += before - in.size();
  if (agent.node < 0 && !agent.messages.empty()) {
    const std::string refusal = Greet(agent, agent.messages.front());
    agent.messages.erase(agent.messages.begin());
    if (!refusal.empty()) {
      Send(agent, {{"kind", "refused"}, {"text", refusal}});
      return refusal;
    }
  }
  std::erase_if(agent.messages, [&](const Json& message) { return lives_ == 0 || message["kind"] == "beat"; });
  if (agent.messages.empty()) agent.unread = 0;
  return std::string(taken.message());
}

// The first message of an agent says where it is. Returns why it is not wanted; empty: it is.
std::string Fleet::Greet(Agent& agent, const Json& hello) {
  const Json node = hello.value("node", Json()), host = hello.value("host", Json());
  int number = node.is_number_integer() ? node.get<int>() : -1;
  std::set<int> taken;
  for (const Agent* other : Joined()) taken.insert(other->node);
  if (number >= 0 && taken.contains(number)) return absl::StrCat("node ", number, " has an agent already");
  if (number < 0) {
    number = 0;
    while (taken.contains(number)) ++number;
  }
  agent.node = number;
  if (host.is_string()) agent.name = absl::StrCat(Printable(host.get<std::string>()), " (", agent.name, ")");
  Send(agent, {{"kind", "welcome"}, {"silence", options_.silence.count()}});
  LogEvent(absl::StrCat("agent of node ", agent.node, ": ", agent.name));
  return "";
}

void Fleet::Closed(ProvenServer::Id id, const std::string& why) {
  const auto agent = std::find_if(agents_.begin(), agents_.end(), [&](const Agent& one) { return one.id == id; });
  if (agent->node < 0) {  // it never joined
    agents_.erase(agent);
    return;
  }
  agent->lost = why;
  if (stood_still_ > options_.silence) {
    absl::StrAppend(&agent->lost, ", after this program had stood still for ",
                    std::chrono::ceil<std::chrono::seconds>(stood_still_).count(), " s");
  }
}

std::vector<Json> Fleet::TakeMessagesOf(Agent& agent) {
  std::vector<Json> messages = std::exchange(agent.messages, {});
  if (std::exchange(agent.unread, 0) < kMostUnread) return messages;
  server_->Retake(agent.id, *this);  // what did not fit
  came_late_ = true;
  return messages;
}

absl::Status FleetProcesses::WaitForStart(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  std::vector<Node*> waiting;
  for (Node& node : nodes_) waiting.push_back(&node);
  while (!waiting.empty()) {
    fleet_.Poll(signals_.fd(), until);
    // The run shall end: Wait tells it. A node that has not answered gets the request behind the one to start.
    if (TakeSignals()) return absl::OkStatus();
    for (auto node = waiting.begin(); node != waiting.end();) {
      std::vector<Json>& messages = (*node)->agent->messages;
      const auto answer = std::find_if(messages.begin(), messages.end(), [](const Json& message) {
        return message["kind"] == "started" || message["kind"] == "failed";
      });
      const bool answered = answer != messages.end();
      if (answered && (*answer)["kind"] == "failed")
        return absl::UnavailableError(absl::StrCat((*node)->agent->name, ": ", TextOf(*answer, "text")));
      if (answered) {
        messages.erase(messages.begin(), answer + 1);
      } else if ((*node)->agent->unread >= kMostUnread) {
        fleet_.TakeMessagesOf(*(*node)->agent);  // of an earlier life: dropped
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
    if (came_.empty()) fleet_.Poll(signals_.fd(), until.value_or(Clock::now() + kBeat));
    TakeSignals();
    for (const int number : std::exchange(came_, {}))
      events.push_back({.kind = ProcessEvent::Kind::kInterrupt, .signal = number});
    for (Node& node : nodes_) Read(node, events);
    if (until && Clock::now() >= *until) break;
  }
  return events;
}

bool FleetProcesses::TakeSignals() {
  for (int number; (number = signals_.Next()) != 0;) {
    // What was sent to all programs of the run, here and on its nodes, is one request.
    const bool of_an_agents_request = !std::exchange(interrupted_here_, true) && interrupted_;
    interrupted_ = true;
    if (!of_an_agents_request) came_.push_back(number);
  }
  return !came_.empty();
}

void FleetProcesses::Read(Node& node, std::vector<ProcessEvent>& events) {
  for (const Json& message : fleet_.TakeMessagesOf(*node.agent)) Take(node, message, events);
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
    const Json rank = message.value("rank", Json());
    if (position.ok() && rank.is_number_integer() && rank >= 0 && rank < world_size_) positions_[rank] = *position;
    return;
  }
  // Its answer to the request to start came after this program was interrupted.
  if (kind == "failed") node.agent->lost = TextOf(message, "text");
  if (kind != "event") return;  // a beat, or `started`
  absl::StatusOr<ProcessEvent> event = EventFrom(message);
  if (!event.ok()) {
    node.agent->lost = std::string(event.status().message());
    return;
  }
  if (event->kind == ProcessEvent::Kind::kInterrupt) {
    const bool known = std::exchange(interrupted_, true), ends = event->signal == SIGTERM;
    // Slurm may send a signal to every agent, and to the head; together they are one.
    if (!known) events.push_back(*event);
    if (ends) events.push_back({.kind = ProcessEvent::Kind::kEndComes});
    return;
  } else if (event->kind == ProcessEvent::Kind::kEnded) {
    if (node.alive.erase(event->rank) == 0) return;
    LogEvent(absl::StrCat("rank ", event->rank, " on ", node.agent->name,
                          event->signal != 0 ? absl::StrCat(" ended by signal ", event->signal)
                                             : absl::StrCat(" ended with exit status ", event->exit_status)));
  }
  events.push_back(*std::move(event));
}

}  // namespace planwright
