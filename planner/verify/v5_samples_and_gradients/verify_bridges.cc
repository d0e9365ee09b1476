// V5 of bridge tables: every sample of a microbatch goes once from its encoder lane to its language lane, in order,
// and its gradient goes once back. One pass over each table.
//
// Not here: that programs exchange what the table says for every microbatch (verify_microbatches.cc), that both ends
// meet (V3), and that a bridge's name and kind are right (V11, verify_derived_fields.cc).

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// One direction of a bridge: samples from the lanes of `source` to those of `destination`, or their gradients.
class TransferTable {
 public:
  TransferTable(const PlanIndex& index, const Bridge& bridge, const Module& source, const Module& destination,
                bool backward, std::vector<Violation>& violations)
      : index_(index), bridge_(bridge), source_(source.grid), destination_(destination.grid), backward_(backward),
        violations_(violations), samples_(index.plan().budget.block_samples) {}

  void Check(const std::vector<Transfer>& transfers) {
    // The encoder speaks with its last stage, the language model with its first.
    const int from_stage = backward_ ? 0 : source_.pp - 1, to_stage = backward_ ? destination_.pp - 1 : 0;
    // By rank of the destination: up to which sample it has got its lane; -1: nothing yet. Rows of the table for one
    // rank come in order of samples.
    std::vector<int64_t> reached(static_cast<size_t>(destination_.ranks()), -1);
    const Transfer* before = nullptr;
    for (const Transfer& transfer : transfers) {
      // A table may have a row for each rank, so the text is made only where it is needed.
      const auto fail = [&](const auto&... wrong) {
        Fail(absl::StrCat("sends samples ", transfer.first_sample, " to ", transfer.end_sample, " from rank ",
                          transfer.from_rank, " to rank ", transfer.to_rank, wrong...));
      };
      if (!source_.contains(transfer.from_rank) || !destination_.contains(transfer.to_rank)) {
        fail(", though these are not ranks of its modules");
        continue;
      }
      if (CoordinateOf(source_, transfer.from_rank, Axis::kPp) != from_stage ||
          CoordinateOf(destination_, transfer.to_rank, Axis::kPp) != to_stage) {
        fail(", not from stage ", from_stage, " to stage ", to_stage);
        continue;
      }
      const LaneSamples has = LaneOf(source_, transfer.from_rank), wants = LaneOf(destination_, transfer.to_rank);
      if (transfer.first_sample < has.first || transfer.end_sample > has.end) {
        fail(", but the sender's lane has samples ", has.first, " to ", has.end);
      }
      int64_t& next = reached[static_cast<size_t>(transfer.to_rank - destination_.first_rank)];
      if (next < 0) next = wants.first;
      if (transfer.first_sample != next || transfer.end_sample <= transfer.first_sample) {
        fail(", but the next sample that its lane needs is ", next);
      }
      next = transfer.end_sample;
      // A table has one form: rows of one receiver are side by side, and two that could be one are one.
      if (before && transfer.to_rank < before->to_rank) fail(", after rows for rank ", before->to_rank);
      if (before && transfer.to_rank == before->to_rank && transfer.from_rank == before->from_rank)
        fail(" in a row of its own, though the row before goes on with it");
      before = &transfer;
    }
    CheckReached(reached, to_stage);
  }

 private:
  // A damaged table may be wrong in millions of rows: no one reads so many messages.
  void Fail(string message) {
    if (++reported_ > kMostReported) return;
    violations_.push_back({"V5", absl::StrCat("bridge ", bridge_.name, backward_ ? " backward " : " ", message),
                           index_.OriginOf(bridge_.origin, -1, nullptr)});
  }

  LaneSamples LaneOf(const Grid& grid, int rank) const {
    return SamplesOfLane(samples_, grid.dp, CoordinateOf(grid, rank, Axis::kDp));
  }

  // A rank that gets something gets its whole lane, and every lane that has samples has a receiver. Colocated ranks all
  // receive for themselves (docs/layouts/bridges.md#colocated); else one rank of the lane receives, its leader, and
  // broadcasts what it got (docs/layouts/bridges.md#leaders).
  void CheckReached(const std::vector<int64_t>& reached, int stage) {
    std::vector<int> receivers(static_cast<size_t>(destination_.dp), 0);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (reached[i] < 0) continue;
      const int rank = destination_.first_rank + static_cast<int>(i);
      const LaneSamples wants = LaneOf(destination_, rank);
      ++receivers[static_cast<size_t>(CoordinateOf(destination_, rank, Axis::kDp))];
      if (reached[i] != wants.end) {
        Fail(absl::StrCat("gives rank ", rank, " samples up to ", reached[i], ", but its lane has ", wants.first,
                          " to ", wants.end));
      }
    }
    const int in_lane = bridge_.kind == "colocated" ? destination_.tp * destination_.cp : 1;
    for (int lane = 0; lane < destination_.dp; ++lane) {
      const LaneSamples wants = SamplesOfLane(samples_, destination_.dp, lane);
      const int found = receivers[static_cast<size_t>(lane)];
      if (found == (wants.first < wants.end ? in_lane : 0)) continue;
      Fail(absl::StrCat("has ", found, " receivers in lane ", lane, " of stage ", stage, " for samples ", wants.first,
                        " to ", wants.end, ", not ", wants.first < wants.end ? in_lane : 0));
    }
  }

  const PlanIndex& index_;
  const Bridge& bridge_;
  const Grid &source_, &destination_;
  const bool backward_;
  std::vector<Violation>& violations_;
  const int64_t samples_;
  static constexpr int kMostReported = 100;
  int reported_ = 0;
};

// What programs do with a bridge: they exchange what the table moves between ranks, and broadcast it from the rank that
// received it.
class BridgeUse {
 public:
  BridgeUse(const PlanIndex& index, const Bridge& bridge, const SampleList& list, std::vector<Violation>& violations)
      : index_(index), bridge_(bridge), list_(list), violations_(violations) {}

  void Check() {
    const Module *from = index_.module(bridge_.from), *to = index_.module(bridge_.to);
    bool exchanged[2] = {false, false};  // forward, backward
    for (const Role& role : index_.plan().roles) {
      for (const Instruction& op : list_.Of(role)) {
        for (const ExchangePart& part : op.parts) {
          if (part.shift == 0 && part.bridge == bridge_.name) exchanged[part.backward ? 1 : 0] = true;
        }
      }
    }
    for (bool backward : {false, true}) {
      const bool wanted = backward ? from->trained() && !list_.evaluates : true;
      if (exchanged[backward ? 1 : 0] || !wanted) continue;
      for (const Transfer& transfer : backward ? bridge_.backward : bridge_.forward) {
        if (transfer.from_rank == transfer.to_rank) continue;  // colocated: the value is there already
        Fail(bridge_.origin, absl::StrCat("moves rows from rank ", transfer.from_rank, " to rank ", transfer.to_rank,
                                          ", but no program exchanges them"));
        break;
      }
    }
    for (const Role& role : index_.plan().roles) {
      for (bool backward : {false, true}) {
        CheckEnd(role, *from, *to, backward, true);
        CheckEnd(role, *from, *to, backward, false);
      }
    }
    if (bridge_.kind == "colocated") return;  // nothing is broadcast
    CheckRoots(*to, false, bridge_.forward);
    CheckRoots(*from, true, bridge_.backward);
  }

 private:
  void Fail(int origin, string message) {
    violations_.push_back(
        {"V5", absl::StrCat("bridge ", bridge_.name, " ", message), index_.OriginOf(origin, bridge_.origin, nullptr)});
  }

  // A role that sends or receives over the bridge has rows in the table for each of its ranks whose lane has samples.
  // Colocated ranks all receive, and may find in their own lane what they would send.
  void CheckEnd(const Role& role, const Module& from, const Module& to, bool backward, bool send) {
    const auto is_end = [&](const ExchangePart& part) {
      return part.bridge == bridge_.name && part.backward == backward && part.send == send;
    };
    const auto has_end = [&](const Instruction& op) { return std::any_of(op.parts.begin(), op.parts.end(), is_end); };
    const std::vector<Instruction>& list = list_.Of(role);
    const bool uses = std::any_of(list.begin(), list.end(), has_end);
    if (!uses || (send && bridge_.kind == "colocated")) return;
    const Module& module = send == backward ? to : from;
    std::vector<bool> in_table(static_cast<size_t>(index_.plan().world_size));
    for (const Transfer& transfer : backward ? bridge_.backward : bridge_.forward) {
      const int rank = send ? transfer.from_rank : transfer.to_rank;
      if (rank >= 0 && rank < index_.plan().world_size) in_table[static_cast<size_t>(rank)] = true;
    }
    const int64_t samples = index_.plan().budget.block_samples;
    for (const RankRange& range : role.ranks) {
      for (int i = 0, rank = range.first; i < range.count; ++i, rank += range.stride) {
        if (in_table[static_cast<size_t>(rank)]) continue;
        if (module.grid.contains(rank)) {
          const LaneSamples lane = SamplesOfLane(samples, module.grid.dp, CoordinateOf(module.grid, rank, Axis::kDp));
          if (lane.first == lane.end) continue;
        }
        return Fail(bridge_.origin, absl::StrCat("has no rows ", send ? "from" : "for", " rank ", rank, ", but role ",
                                                 role.name, send ? " sends" : " receives", " over it"));
      }
    }
  }

  // All ranks of a role have the same program, so the receivers must have the same index in the groups that they
  // broadcast over: the root.
  void CheckRoots(const Module& module, bool backward, const std::vector<Transfer>& transfers) {
    for (const Role& role : index_.plan().roles) {
      if (!Runs(role, module)) continue;
      std::vector<string> received;
      for (const Instruction& op : list_.Of(role)) {
        for (const ExchangePart& part : op.parts) {
          if (!part.send && part.bridge == bridge_.name && part.backward == backward && part.shift == 0)
            received.push_back(part.value);
        }
        if (op.kind == OpKind::kBroadcast) CheckRoot(module, role, op, received, transfers);
      }
    }
  }

  void CheckRoot(const Module& module, const Role& role, const Instruction& op, const std::vector<string>& received,
                 const std::vector<Transfer>& transfers) {
    const bool sends =
        op.inputs.size() > 1 && std::find(received.begin(), received.end(), op.inputs[1]) != received.end();
    if (!sends || transfers.empty()) return;
    const Group* group = index_.group(op.group);
    const int64_t* root = op.FindInteger("root");
    if (!group || !root || group->module != module.name) {
      return Fail(op.origin, absl::StrCat("is broadcast by role ", role.name, " over ", op.group,
                                          ", without a root or not a group of ", module.name));
    }
    std::vector<Axis> lane;  // the axes along which ranks of a lane differ
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (module.grid.size(axis) > 1) lane.push_back(axis);
    }
    if (index_.WideAxes(*group) != lane) {
      return Fail(op.origin, absl::StrCat("is broadcast by role ", role.name, " over ", group->name,
                                          ", whose members are not the ranks of a lane"));
    }
    const int receiver = IndexInGroup(module.grid, group->view, group->axes, transfers.front().to_rank);
    if (receiver == *root) return;
    Fail(op.origin,
         absl::StrCat("is received by member ", receiver, " of ", group->name, ", but broadcast from member ", *root));
  }

  const PlanIndex& index_;
  const Bridge& bridge_;
  const SampleList& list_;
  std::vector<Violation>& violations_;
};

}  // namespace

std::vector<Violation> VerifyBridges(const PlanIndex& index) {
  std::vector<Violation> violations;
  const Budget& budget = index.plan().budget;
  if (budget.microbatches < 1) return violations;  // V8
  for (const Bridge& bridge : index.plan().bridges) {
    const Module *from = index.module(bridge.from), *to = index.module(bridge.to);
    if (!from || !to) continue;  // V2
    TransferTable(index, bridge, *from, *to, false, violations).Check(bridge.forward);
    TransferTable(index, bridge, *to, *from, true, violations).Check(bridge.backward);
    for (const SampleList& list : SampleListsOf(index.plan())) BridgeUse(index, bridge, list, violations).Check();
  }
  return violations;
}

}  // namespace planwright
