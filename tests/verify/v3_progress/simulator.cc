#include "tests/verify/v3_progress/simulator.h"

#include <algorithm>
#include <map>
#include <random>
#include <stdexcept>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/verify/v3_progress/unrolled_program.h"

namespace planwright::testing {
namespace {

using std::string;
using std::vector;

// What all interleavings of a plan share.
struct World {
  World(const Plan& plan, int steps) : plan(plan), programs(Unroll(plan, steps)) {
    for (const Group& group : plan.groups) {
      vector<int>& of_ranks = subgroup_of.emplace_back(plan.world_size, -1);
      for (const vector<int>& members : MembersOf(plan, group)) {
        subgroups.push_back(members);
        for (int member : members) of_ranks.at(member) = static_cast<int>(subgroups.size()) - 1;
      }
    }
    // By rank, the other ends of its rows, in the order of the table.
    for (const Bridge& bridge : plan.bridges) {
      for (bool backward : {false, true}) {
        for (const Transfer& row : backward ? bridge.backward : bridge.forward) {
          rows[{bridge.name, backward, true, row.from_rank}].push_back(row.to_rank);
          rows[{bridge.name, backward, false, row.to_rank}].push_back(row.from_rank);
        }
      }
    }
  }
  // -1: the rank is in no subgroup of it, or there is no such group.
  int SubgroupOf(int group, int rank) const { return group < 0 ? -1 : subgroup_of[group][rank]; }

  const Plan& plan;
  vector<Program> programs;  // by role
  vector<vector<int>> subgroups;
  vector<vector<int>> subgroup_of;                                  // by group, by rank
  std::map<std::tuple<string, bool, bool, int>, vector<int>> rows;  // bridge, backward, send, rank: peers
};

class SimulatedWorld {
 public:
  SimulatedWorld(const World& world, const Interleaving& how)
      : world_(world), plan_(world.plan), how_(how), random_(how.seed) {
    ranks_.resize(plan_.world_size);
    for (size_t role = 0; role < plan_.roles.size(); ++role) {
      for (int rank : Expand(plan_.roles[role].ranks)) Place(rank, world.programs[role]);
    }
  }

  Outcome Run() {
    for (int rank = 0; rank < plan_.world_size; ++rank) Wake(rank);
    while (!awake_.empty() && problem_.empty()) {
      // Any rank that may go on is drawn, so every order of events is possible.
      std::swap(awake_[random_() % awake_.size()], awake_.back());
      const int rank = awake_.back();
      awake_.pop_back();
      ranks_[rank].awake = false;
      StartNext(rank);
    }
    if (problem_.empty()) FindStuck();
    return {problem_.empty(), problem_};
  }

 private:
  struct Rank {
    const Program* program = nullptr;
    vector<char> done;    // by operation
    vector<int> waits;    // of one operation after the other: earlier ones that must be done
    vector<size_t> ends;  // by operation: of its part of `waits`
    size_t met = 0;       // so many of `waits` are done; those of operations that have started are
    size_t next = 0;      // the next operation to start
    bool awake = false;
    std::map<std::tuple<int, int, bool>, int> messages;  // by communicator, peer, send: how many were posted
    // by operation, its messages: communicator, peer, send, number, part
    std::map<int, vector<std::tuple<int, int, bool, int, int>>> posts;
    std::map<int, int> open;  // by operation: messages that are not met yet
  };
  // Members that have arrived at the next collective of a communicator.
  struct Meeting {
    vector<std::pair<int, int>> arrived;  // rank, operation
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
    for (size_t i = 0; i < count; ++i) {
      DrawWaits(program, static_cast<int>(i), state.waits);
      state.ends.push_back(state.waits.size());
    }
  }

  // What an operation waits for: always the last one before it on its stream; of the last kSeen operations either all
  // or a few.
  void DrawWaits(const Program& program, int index, vector<int>& waits) {
    const bool all = static_cast<int>(random_() % 100) < how_.host_waits;
    bool after_own = false;  // whether the last one on its stream is in `waits`
    for (int before = index - 1; before >= 0 && (before >= index - kSeen || !after_own); --before) {
      const bool own = !after_own && program.ops[before].stream == program.ops[index].stream;
      if (own || (before >= index - kSeen && (all || random_() % kSeen == 0))) waits.push_back(before);
      after_own = after_own || own;
    }
  }

  void Fail(int rank, const Op& op, const string& what) {
    if (!problem_.empty()) return;
    problem_ = absl::StrCat("rank ", rank, " at ", string(OpName(op.instruction->kind)), " over ",
                            op.instruction->group, ": ", what);
  }

  int Communicator(const string& name) {
    return communicators_.emplace(name, static_cast<int>(communicators_.size())).first->second;
  }

  // Lists the messages of a part in the order in which they start, and numbers them for matching.
  void ListMessages(int rank, int index, int number) {
    Rank& state = ranks_[rank];
    const Op& op = state.program->ops[index];
    const ExchangePart& part = op.instruction->parts[number];
    vector<int> peers;
    if (!part.bridge.empty()) {
      if (!plan_.FindBridge(part.bridge)) return Fail(rank, op, "names no bridge");
      const auto rows = world_.rows.find({part.bridge, part.backward, part.send, rank});
      if (rows != world_.rows.end()) peers = rows->second;
      const Group* members = plan_.FindGroup(part.bridge);
      for (int peer : peers) {
        if (!members || !HasStream(*members, *op.instruction) ||
            !std::count(members->ranks.begin(), members->ranks.end(), rank) ||
            !std::count(members->ranks.begin(), members->ranks.end(), peer)) {
          return Fail(rank, op, absl::StrCat("has no communicator with rank ", peer));
        }
      }
    } else {
      const Group* group = plan_.FindGroup(part.group);
      if (!group || !HasStream(*group, *op.instruction)) return Fail(rank, op, "names no group that is used");
      const int subgroup = world_.SubgroupOf(static_cast<int>(group - plan_.groups.data()), rank);
      if (subgroup < 0 || group->axes.size() != 1) return Fail(rank, op, "is in no such line of stages");
      const vector<int>& line = world_.subgroups[subgroup];
      const int index = static_cast<int>(std::find(line.begin(), line.end(), rank) - line.begin()) + part.shift;
      if (part.shift == 0 || index < 0 || index >= static_cast<int>(line.size()))
        return Fail(rank, op, "has nobody on the other side");
      peers = {line[index]};
    }
    const int communicator = Communicator(absl::StrCat(part.bridge.empty() ? part.group : part.bridge, " ", op.stream));
    for (int peer : peers) {
      state.posts[index].push_back(
          {communicator, peer, part.send, state.messages[{communicator, peer, part.send}]++, number});
    }
  }

  static bool HasStream(const Group& group, const Instruction& instruction) {
    return std::count(group.streams.begin(), group.streams.end(), instruction.stream) > 0;
  }

  // If all that the rank's next operation waits for is done, it may start at any time from now on.
  void Wake(int rank) {
    Rank& state = ranks_[rank];
    if (state.awake || state.next == state.done.size()) return;
    const size_t end = state.ends[state.next];
    while (state.met < end && state.done[state.waits[state.met]]) ++state.met;
    if (state.met < end) return;
    state.awake = true;
    awake_.push_back(rank);
  }

  void Done(int rank, int index) {
    ranks_[rank].done[index] = true;
    Wake(rank);
  }

  // Starts the next communication of a rank that was awake.
  void StartNext(int rank) {
    Rank& state = ranks_[rank];
    const int index = static_cast<int>(state.next++);
    state.program->ops[index].instruction->kind == OpKind::kExchange ? Exchange(rank, index) : Collect(rank, index);
    Wake(rank);
  }

  void Collect(int rank, int index) {
    const Op& op = ranks_[rank].program->ops[index];
    const int subgroup = world_.SubgroupOf(op.group, rank);
    if (subgroup < 0) return Fail(rank, op, "is in no such group");
    const vector<int>& members = world_.subgroups[subgroup];
    if (members.size() > 1 && !HasStream(plan_.groups[op.group], *op.instruction))
      return Fail(rank, op, "has no communicator");
    if (op.instruction->kind == OpKind::kBroadcast) {
      const int64_t root = op.instruction->integer("root");
      if (root < 0 || root >= static_cast<int64_t>(members.size())) return Fail(rank, op, "has no such root");
    }
    Meeting& meeting = meetings_[{subgroup, op.stream}];
    if (meeting.arrived.empty()) meeting.first = &op;
    if (meeting.first->content != op.content)
      return Fail(rank, op, absl::StrCat(op.content, " meets ", meeting.first->content));
    meeting.arrived.push_back({rank, index});
    if (meeting.arrived.size() < members.size()) return;
    const auto arrived = std::move(meeting.arrived);
    meeting.arrived.clear();
    for (const auto& [member, at] : arrived) Done(member, at);
  }

  void Exchange(int rank, int index) {
    Rank& state = ranks_[rank];
    const Op& op = state.program->ops[index];
    for (size_t part = 0; part < op.instruction->parts.size() && problem_.empty(); ++part)
      ListMessages(rank, index, static_cast<int>(part));
    if (!problem_.empty()) return;
    state.open[index] = 1;  // so that it is not done before all parts are posted
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
      if (met.content != op.contents[part])
        return Fail(rank, op, absl::StrCat(op.contents[part], " meets ", met.content));
      if (--ranks_[met.rank].open[met.op] == 0) Done(met.rank, met.op);
    }
    if (--state.open[index] == 0) Done(rank, index);
  }

  // Nothing can start any more: an operation that is not done will never be done.
  void FindStuck() {
    for (int rank = 0; rank < plan_.world_size; ++rank) {
      const Rank& state = ranks_[rank];
      for (size_t i = 0; i < state.done.size(); ++i) {
        if (!state.done[i]) return Fail(rank, state.program->ops[i], "is never done");
      }
    }
  }

  const World& world_;
  const Plan& plan_;
  static constexpr int kSeen = 12;  // how far back a wait is drawn
  const Interleaving how_;
  std::mt19937_64 random_;
  vector<Rank> ranks_;
  std::map<string, int> communicators_;
  std::map<std::pair<int, int>, Meeting> meetings_;           // subgroup, stream
  std::map<std::tuple<int, int, int, int>, Message> posted_;  // communicator, from, to, number
  vector<int> awake_;
  string problem_;
};

}  // namespace

Outcome Simulate(const Plan& plan, const vector<Interleaving>& interleavings, int steps) {
  try {
    const World world(plan, steps);
    for (const Interleaving& interleaving : interleavings) {
      Outcome outcome = SimulatedWorld(world, interleaving).Run();
      if (!outcome.completed) return outcome;
    }
    return {.completed = true};
  } catch (const std::runtime_error& error) {
    return {false, error.what()};
  }
}

}  // namespace planwright::testing
