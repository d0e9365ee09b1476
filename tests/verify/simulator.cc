#include "tests/verify/simulator.h"

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/verify/unrolled_program.h"

namespace planwright::testing {
namespace {

using std::string;
using std::vector;

class World {
 public:
  World(const Plan& plan, const Interleaving& how) : plan_(plan), how_(how), random_(how.seed) {
    Unrolled unrolled = Unroll(plan, how.steps);
    programs_ = std::move(unrolled.programs);
    events_ = unrolled.events;
    ranks_.resize(plan.world_size);
    for (size_t role = 0; role < plan.roles.size(); ++role) {
      for (int rank : Expand(plan.roles[role].ranks)) Place(rank, programs_[role]);
    }
    for (size_t group = 0; group < plan.groups.size(); ++group) {
      for (const vector<int>& members : MembersOf(plan, plan.groups[group])) {
        subgroups_.push_back(members);
        for (int member : members) subgroup_of_[{static_cast<int>(group), member}] = static_cast<int>(subgroups_.size()) - 1;
      }
    }
    for (const Bridge& bridge : plan.bridges) {
      for (bool backward : {false, true}) {
        for (const Transfer& row : backward ? bridge.backward : bridge.forward) {
          rows_[{bridge.name, backward, true, row.from_rank}].push_back(row.to_rank);
          rows_[{bridge.name, backward, false, row.to_rank}].push_back(row.from_rank);
        }
      }
    }
  }

  Outcome Run() {
    for (int rank = 0; rank < plan_.world_size && problem_.empty(); ++rank) {
      Launch(rank);
      Wake(rank);
    }
    while (!awake_.empty() && problem_.empty()) {
      std::swap(awake_[random_() % awake_.size()], awake_.back());
      const auto [rank, stream] = awake_.back();
      awake_.pop_back();
      ranks_[rank].streams[stream].awake = false;
      Try(rank, stream);
    }
    if (problem_.empty()) FindStuck();
    return {problem_.empty(), problem_};
  }

 private:
  struct Stream {
    std::deque<int> queue;  // launched, not done
    bool awake = false, started = false;
  };
  // Collectives of a rank on one communicator: numbered when launched, done one after the other.
  struct Line {
    int launched = 0, done = 0;
  };
  struct Rank {
    const Program* program = nullptr;
    vector<char> done, waited_for;  // by operation
    vector<char> signalled;         // by event
    vector<Stream> streams;
    vector<int> number;             // by operation: place in its line, or of its messages
    size_t launched = 0;
    int blocker = -1;               // the host waits for this one
    std::map<int, Line> lines;      // by subgroup
    std::map<std::tuple<int, int, bool>, int> messages;  // communicator, peer, send: how many were launched
    std::map<int, vector<std::tuple<int, int, bool, int, int>>> posts;  // by operation: communicator, peer, send, number, part
    std::map<int, int> open;        // by operation: messages not met
  };
  struct Meeting {
    vector<int> arrived;
    const Op* first = nullptr;
  };
  struct Message {
    int rank = 0, op = 0;
    bool send = false;
    string content;
  };

  void Place(int rank, const Program& program) {
    Rank& state = ranks_.at(rank);
    state.program = &program;
    const size_t count = program.ops.size();
    state.done.assign(count, false);
    state.waited_for.assign(count, false);
    for (size_t i = 0; i < count; ++i) state.waited_for[i] = static_cast<int>(random_() % 100) < how_.host_waits;
    state.signalled.assign(events_, false);
    state.streams.resize(program.streams);
    state.number.assign(count, 0);
  }

  void Fail(int rank, const Op& op, const string& what) {
    if (!problem_.empty()) return;
    problem_ = absl::StrCat("rank ", rank, " at ", string(OpName(op.instruction->kind)), " over ", op.instruction->group, ": ", what);
  }

  int Communicator(const string& name) { return communicators_.emplace(name, static_cast<int>(communicators_.size())).first->second; }

  // The host goes on through the program until it has to wait.
  void Launch(int rank) {
    Rank& state = ranks_[rank];
    while (state.launched < state.program->ops.size() && problem_.empty()) {
      if (state.blocker >= 0 && !state.done[state.blocker]) return;
      const int index = static_cast<int>(state.launched++);
      const Op& op = state.program->ops[index];
      if (op.instruction->kind == OpKind::kExchange) {
        for (size_t part = 0; part < op.instruction->parts.size(); ++part) Number(rank, index, static_cast<int>(part));
      } else if (op.body < 0 && OpClassOf(op.instruction->kind) == OpClass::kCommunication) {
        const auto subgroup = subgroup_of_.find({op.group, rank});
        if (subgroup == subgroup_of_.end()) return Fail(rank, op, "is in no such group");
        if (subgroups_[subgroup->second].size() > 1 && !plan_.groups[op.group].used) return Fail(rank, op, "has no communicator");
        if (op.instruction->kind == OpKind::kBroadcast) {
          const int64_t root = op.instruction->integer("root");
          if (root < 0 || root >= static_cast<int64_t>(subgroups_[subgroup->second].size())) return Fail(rank, op, "has no such root");
        }
        state.number[index] = state.lines[subgroup->second].launched++;
      }
      if (state.waited_for[index]) state.blocker = index;
      Stream& stream = state.streams[op.stream];
      stream.queue.push_back(index);
    }
  }

  // The messages of a part, in launch order.
  void Number(int rank, int index, int number) {
    Rank& state = ranks_[rank];
    const Op& op = state.program->ops[index];
    const ExchangePart& part = op.instruction->parts[number];
    vector<int> peers;
    if (!part.bridge.empty()) {
      if (!plan_.FindBridge(part.bridge)) return Fail(rank, op, "names no bridge");
      const auto rows = rows_.find({part.bridge, part.backward, part.send, rank});
      if (rows != rows_.end()) peers = rows->second;
      const Group* members = plan_.FindGroup(part.bridge);
      for (int peer : peers) {
        if (!members || !members->used || !std::count(members->ranks.begin(), members->ranks.end(), rank) ||
            !std::count(members->ranks.begin(), members->ranks.end(), peer)) {
          return Fail(rank, op, absl::StrCat("has no communicator with rank ", peer));
        }
      }
    } else {
      const Group* group = plan_.FindGroup(part.group);
      if (!group || !group->used()) return Fail(rank, op, "names no group that is used");
      const auto subgroup = subgroup_of_.find({static_cast<int>(group - plan_.groups.data()), rank});
      if (subgroup == subgroup_of_.end() || group->axes.size() != 1) return Fail(rank, op, "is in no such line of stages");
      const vector<int>& line = subgroups_[subgroup->second];
      const int place = static_cast<int>(std::find(line.begin(), line.end(), rank) - line.begin()) + part.shift;
      if (part.shift == 0 || place < 0 || place >= static_cast<int>(line.size())) return Fail(rank, op, "has nobody on the other side");
      peers = {line[place]};
    }
    const int communicator = Communicator(part.bridge.empty() ? part.group : part.bridge);
    for (int peer : peers) {
      state.posts[index].push_back({communicator, peer, part.send, state.messages[{communicator, peer, part.send}]++, number});
    }
  }

  void Wake(int rank) {
    Rank& state = ranks_[rank];
    for (size_t i = 0; i < state.streams.size(); ++i) {
      Stream& stream = state.streams[i];
      if (stream.awake || stream.started || stream.queue.empty()) continue;
      stream.awake = true;
      awake_.push_back({rank, static_cast<int>(i)});
    }
  }

  void Done(int rank, int index) {
    Rank& state = ranks_[rank];
    const Op& op = state.program->ops[index];
    state.done[index] = true;
    for (int event : op.signals) {
      if (state.signalled[event]) return Fail(rank, op, "signals an event twice");
      state.signalled[event] = true;
    }
    Stream& stream = state.streams[op.stream];
    stream.queue.pop_front();
    stream.started = false;
    Launch(rank);
    Wake(rank);
  }

  // Starts what stands at the head of the stream, if it may.
  void Try(int rank, int stream_number) {
    Rank& state = ranks_[rank];
    Stream& stream = state.streams[stream_number];
    if (stream.queue.empty()) return;
    const int index = stream.queue.front();
    const Op& op = state.program->ops[index];
    for (int event : op.waits) {
      if (!state.signalled[event]) return;
    }
    for (int i = op.body; i >= 0 && i < index; ++i) {
      if (!state.done[i]) return;
    }
    if (op.instruction->kind == OpKind::kExchange) return Exchange(rank, index);
    if (op.body >= 0 || OpClassOf(op.instruction->kind) != OpClass::kCommunication) return Done(rank, index);
    Collect(rank, index);
  }

  void Collect(int rank, int index) {
    Rank& state = ranks_[rank];
    const Op& op = state.program->ops[index];
    const int subgroup = subgroup_of_.at({op.group, rank});
    Line& line = state.lines[subgroup];
    if (line.done != state.number[index]) return;  // an earlier one on this communicator is not done: its end wakes us
    state.streams[op.stream].started = true;
    Meeting& meeting = meetings_[subgroup];
    if (meeting.arrived.empty()) meeting.first = &op;
    if (meeting.first->content != op.content) return Fail(rank, op, absl::StrCat(op.content, " meets ", meeting.first->content));
    meeting.arrived.push_back(rank);
    if (meeting.arrived.size() < subgroups_[subgroup].size()) return;
    const vector<int> members = std::move(meeting.arrived);
    meeting.arrived.clear();
    for (int member : members) {
      Rank& other = ranks_[member];
      ++other.lines[subgroup].done;
      for (Stream& candidate : other.streams) {
        if (!candidate.started) continue;
        const int head = candidate.queue.front();
        const Op& at = other.program->ops[head];
        if (at.group != op.group || other.number[head] != state.number[index] || other.done[head]) continue;
        Done(member, head);
        break;
      }
    }
  }

  void Exchange(int rank, int index) {
    Rank& state = ranks_[rank];
    const Op& op = state.program->ops[index];
    state.streams[op.stream].started = true;
    state.open[index] = 1;  // not done before all parts are posted
    for (const auto& [communicator, peer, send, number, part] : state.posts[index]) {
      const std::tuple key(communicator, send ? rank : peer, send ? peer : rank, number);
      const auto other = posted_.find(key);
      if (other == posted_.end()) {
        posted_[key] = {rank, index, send, op.contents[part]};
        ++state.open[index];
        continue;
      }
      const Message met = other->second;
      posted_.erase(other);
      if (met.content != op.contents[part]) return Fail(rank, op, absl::StrCat(op.contents[part], " meets ", met.content));
      if (--ranks_[met.rank].open[met.op] == 0) Done(met.rank, met.op);
    }
    if (--state.open[index] == 0) Done(rank, index);
  }

  void FindStuck() {
    for (int rank = 0; rank < plan_.world_size; ++rank) {
      const Rank& state = ranks_[rank];
      for (size_t i = 0; i < state.done.size(); ++i) {
        if (!state.done[i]) return Fail(rank, state.program->ops[i], "is never done");
      }
    }
  }

  const Plan& plan_;
  const Interleaving how_;
  std::mt19937_64 random_;
  vector<Program> programs_;
  int events_ = 0;
  vector<Rank> ranks_;
  vector<vector<int>> subgroups_;
  std::map<std::pair<int, int>, int> subgroup_of_;  // group, rank
  std::map<std::tuple<string, bool, bool, int>, vector<int>> rows_;
  std::map<string, int> communicators_;
  std::map<int, Meeting> meetings_;
  std::map<std::tuple<int, int, int, int>, Message> posted_;  // communicator, from, to, number
  vector<std::pair<int, int>> awake_;
  string problem_;
};

}  // namespace

Outcome Simulate(const Plan& plan, const Interleaving& interleaving) {
  try {
    return World(plan, interleaving).Run();
  } catch (const std::runtime_error& error) {
    return {false, error.what()};
  }
}

}  // namespace planwright::testing
