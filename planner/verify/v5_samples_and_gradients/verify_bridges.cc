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

class Table {
 public:
  Table(const PlanIndex& index, const Bridge& bridge, const Module& source, const Module& destination, bool backward,
        std::vector<Violation>& violations)
      : index_(index), bridge_(bridge), source_(source.grid), destination_(destination.grid), backward_(backward),
        violations_(violations), samples_(index.plan().budget.block_samples) {}

  void Check(const std::vector<Transfer>& transfers) {
    // The encoder speaks with its last stage, the language model with its first.
    const int from_stage = backward_ ? 0 : source_.pp - 1, to_stage = backward_ ? destination_.pp - 1 : 0;
    std::vector<int64_t> reached(static_cast<size_t>(destination_.ranks()), -1);
    for (const Transfer& transfer : transfers) {
      const string what = absl::StrCat("samples ", transfer.first_sample, " to ", transfer.end_sample, " from rank ",
                                       transfer.from_rank, " to rank ", transfer.to_rank);
      if (!source_.contains(transfer.from_rank) || !destination_.contains(transfer.to_rank)) {
        Fail(absl::StrCat("sends ", what, ", not between ranks of its modules"));
        continue;
      }
      if (CoordinateOf(source_, transfer.from_rank, Axis::kPp) != from_stage ||
          CoordinateOf(destination_, transfer.to_rank, Axis::kPp) != to_stage) {
        Fail(absl::StrCat("sends ", what, ", not between the stages that hold them"));
        continue;
      }
      const LaneSamples has = LaneOf(source_, transfer.from_rank), wants = LaneOf(destination_, transfer.to_rank);
      if (transfer.first_sample < has.first || transfer.end_sample > has.end) {
        Fail(
            absl::StrCat("sends ", what, ", which the sender's lane, ", has.first, " to ", has.end, ", does not have"));
      }
      int64_t& next = reached[static_cast<size_t>(transfer.to_rank - destination_.first_rank)];
      if (next < 0) next = wants.first;
      if (transfer.first_sample != next || transfer.end_sample <= transfer.first_sample) {
        Fail(absl::StrCat("sends ", what, ", whose lane had got all up to sample ", next));
      }
      next = transfer.end_sample;
    }
    CheckReached(reached, to_stage);
  }

 private:
  // A damaged table may be wrong in millions of rows.
  void Fail(string message) {
    if (++told_ > kMostTold) return;
    violations_.push_back({"V5", absl::StrCat("bridge ", bridge_.name, backward_ ? " backward " : " ", message),
                           index_.OriginOf(bridge_.origin, -1, nullptr)});
  }

  LaneSamples LaneOf(const Grid& grid, int rank) const {
    return SamplesOfLane(samples_, grid.dp, CoordinateOf(grid, rank, Axis::kDp));
  }

  // Whoever gets something gets its whole lane; every lane that has samples has a receiver; colocated ranks all receive
  // for themselves, others through one rank of the lane, which passes on what it got.
  void CheckReached(const std::vector<int64_t>& reached, int stage) {
    std::vector<int> receivers(static_cast<size_t>(destination_.dp), 0);
    for (size_t i = 0; i < reached.size(); ++i) {
      if (reached[i] < 0) continue;
      const int rank = destination_.first_rank + static_cast<int>(i);
      const LaneSamples wants = LaneOf(destination_, rank);
      ++receivers[static_cast<size_t>(CoordinateOf(destination_, rank, Axis::kDp))];
      if (reached[i] != wants.end) {
        Fail(absl::StrCat("delivers rank ", rank, " samples up to ", reached[i], " of its lane's ", wants.first, " to ",
                          wants.end));
      }
    }
    const int in_lane = bridge_.kind == "colocated" ? destination_.tp * destination_.cp : 1;
    for (int lane = 0; lane < destination_.dp; ++lane) {
      const LaneSamples wants = SamplesOfLane(samples_, destination_.dp, lane);
      const int found = receivers[static_cast<size_t>(lane)];
      if (found == (wants.first < wants.end ? in_lane : 0)) continue;
      Fail(absl::StrCat("has ", found, " receivers in lane ", lane, " of stage ", stage, " for samples ", wants.first,
                        " to ", wants.end, ", not ", in_lane));
    }
  }

  const PlanIndex& index_;
  const Bridge& bridge_;
  const Grid &source_, &destination_;
  const bool backward_;
  std::vector<Violation>& violations_;
  const int64_t samples_;
  static constexpr int kMostTold = 100;
  int told_ = 0;
};

// Programs that do not exchange may only hand on what stays on its rank; broadcasts start at the rank that received.
class BridgeUse {
 public:
  BridgeUse(const PlanIndex& index, const Bridge& bridge, std::vector<Violation>& violations)
      : index_(index), bridge_(bridge), violations_(violations) {}

  void Check() {
    const Module *from = index_.module(bridge_.from), *to = index_.module(bridge_.to);
    bool exchanged[2] = {false, false};
    for (const Role& role : index_.plan().roles) {
      for (const Instruction& op : role.step) {
        for (const ExchangePart& part : op.parts) {
          if (part.shift == 0 && part.bridge == bridge_.name) exchanged[part.backward ? 1 : 0] = true;
        }
      }
    }
    for (bool backward : {false, true}) {
      const bool wanted = backward ? from->trained() : true;
      if (exchanged[backward ? 1 : 0] || !wanted) continue;
      for (const Transfer& transfer : backward ? bridge_.backward : bridge_.forward) {
        if (transfer.from_rank == transfer.to_rank) continue;
        Fail(bridge_.origin, absl::StrCat("has rows for rank ", transfer.to_rank, " on rank ", transfer.from_rank,
                                          ", but no program exchanges them"));
        break;
      }
    }
    if (bridge_.kind == "colocated") return;
    CheckRoots(*to, false, bridge_.forward);
    CheckRoots(*from, true, bridge_.backward);
  }

 private:
  void Fail(int origin, string message) {
    violations_.push_back(
        {"V5", absl::StrCat("bridge ", bridge_.name, " ", message), index_.OriginOf(origin, bridge_.origin, nullptr)});
  }

  // Receivers of one role sit at one place of the broadcast's group: its root.
  void CheckRoots(const Module& module, bool backward, const std::vector<Transfer>& transfers) {
    for (const Role& role : index_.plan().roles) {
      if (!Runs(role, module)) continue;
      std::vector<string> received;
      for (const Instruction& op : role.step) {
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
    const bool roots =
        op.inputs.size() > 1 && std::find(received.begin(), received.end(), op.inputs[1]) != received.end();
    if (!roots || transfers.empty()) return;
    const Group* group = index_.group(op.group);
    const int64_t* place = op.FindInteger("root");
    if (!group || !place || group->module != module.name) {
      return Fail(op.origin, absl::StrCat("is broadcast by role ", role.name, " over no group of ", module.name));
    }
    std::vector<Axis> lane;  // all ranks of a lane get what its leader received
    for (Axis axis : {Axis::kTp, Axis::kCp}) {
      if (module.grid.size(axis) > 1) lane.push_back(axis);
    }
    if (index_.WideAxes(*group) != lane) {
      return Fail(op.origin,
                  absl::StrCat("is broadcast by role ", role.name, " over ", group->name, ", which is not the lane"));
    }
    const int index = IndexInGroup(module.grid, group->view, group->axes, transfers.front().to_rank);
    if (index == *place) return;
    Fail(op.origin,
         absl::StrCat("is received by member ", index, " of ", group->name, ", but broadcast from member ", *place));
  }

  const PlanIndex& index_;
  const Bridge& bridge_;
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
    Table(index, bridge, *from, *to, false, violations).Check(bridge.forward);
    Table(index, bridge, *to, *from, true, violations).Check(bridge.backward);
    BridgeUse(index, bridge, violations).Check();
  }
  return violations;
}

}  // namespace planwright
