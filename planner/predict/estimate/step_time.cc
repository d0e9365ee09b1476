#include "planner/predict/estimate/step_time.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "absl/strings/match.h"
#include "planner/plan/link/communication_partners.h"
#include "planner/plan/link/program_parts.h"
#include "planner/predict/estimate/checkpoint_copies.h"
#include "planner/predict/estimate/instruction_times.h"
#include "planner/predict/estimate/operation_times.h"
#include "planner/predict/estimate/time_use.h"
#include "planner/predict/simulate/simulate_step.h"

namespace planwright {
namespace {

// The programs of a plan, with classes of ranks in the place of roles.
struct Programs {
  struct OneProgram {
    OneProgram(LinkedBlocks& blocks, const Role& role) : program(blocks, role), waits(program) {}
    const LinkedProgram program;
    const StreamWaits waits;
  };

  explicit Programs(const Plan& plan) : blocks(plan), costs(blocks), classes(ClassesOf(plan)), uses(plan) {
    for (const RankClass& ranks : classes) {
      const Role& role = plan.roles[static_cast<size_t>(ranks.role)];
      auto& known = linked[ranks.role];
      if (!known) known = std::make_unique<OneProgram>(blocks, role);
      by_class.push_back(&known->program);
      waits.push_back(&known->waits);
      Role& part = roles.emplace_back();
      part.name = role.name, part.modules = role.modules, part.ranks = ranks.ranks;
    }
  }

  LinkedBlocks blocks;
  const InstructionCosts costs;
  const std::vector<RankClass> classes;
  CommunicationUses uses;
  std::map<int, std::unique_ptr<OneProgram>> linked;  // by role
  std::vector<const LinkedProgram*> by_class;
  std::vector<const StreamWaits*> waits;  // by class
  std::vector<Role> roles;                // by class, without instructions
};

// By call: the index in the role's own list of the call around it; -1: it is that list.
std::vector<int> OuterIndices(const LinkedProgram& program) {
  std::vector<int> outer;
  for (const LinkedCall& call : program.calls()) {
    const bool list = call.parent < 0;
    outer.push_back(list ? -1
                    : program.calls()[static_cast<size_t>(call.parent)].parent < 0
                        ? call.index
                        : outer[static_cast<size_t>(call.parent)]);
  }
  return outer;
}

// The calls of the role's own list are its actions: one for each stage, direction and microbatch.
std::vector<StageAction> ActionsOf(const LinkedProgram& program, int rank) {
  std::vector<StageAction> actions;
  const LinkedBlocks& blocks = program.blocks();
  for (const LinkedInstruction& call : program.step_list().body) {
    if (call.called < 0) continue;
    const LinkedBlock& called = blocks.block(call.called);
    const Module* module = called.module < 0 ? nullptr : &blocks.plan().modules[static_cast<size_t>(called.module)];
    if (!module || !module->grid.contains(rank)) continue;
    actions.push_back({.module = module->name,
                       .stage = CoordinateOf(module->grid, rank, Axis::kPp),
                       .microbatch = call.source->microbatch,
                       .index = call.index,
                       .backward = absl::StrContains(called.block->name, ".backward"),
                       .start = -1});
  }
  return actions;
}

// When entries and actions run. An action lasts as long as what it does on the main stream.
void PlaceEntries(const LinkedProgram& program, const SimulatedRole& simulated, InstructionTimes& times,
                  RoleTime& role) {
  role.actions = ActionsOf(program, role.ranks.front().first);
  std::map<int, int> action_at;  // by index
  for (size_t i = 0; i < role.actions.size(); ++i) action_at[role.actions[i].index] = static_cast<int>(i);
  const std::vector<int> outer = OuterIndices(program);
  role.entries.reserve(simulated.entries.size());
  double reached = 0;
  for (size_t i = 0; i < simulated.entries.size(); ++i) {
    const LinkedEntry& entry = program.entries()[program.step().first + i];
    const SimulatedEntry& at = simulated.entries[i];
    const InstructionTime& time = times.of(entry);
    role.flops += time.flops;
    const auto action = action_at.find(outer[entry.call]);
    PlannedTime& planned = role.entries.emplace_back();
    planned = {.start = at.start,
               .length = at.end - at.start,
               .waited = at.start - at.arrived,
               .action = action == action_at.end() ? -1 : action->second,
               .known = time.known};
    if (entry.instruction->stream != 0) continue;
    reached = at.end;
    if (planned.action < 0) continue;
    StageAction& of = role.actions[static_cast<size_t>(planned.action)];
    if (of.start < 0) of.start = at.start;
    of.end = std::max(of.end, at.end);
  }
  for (StageAction& action : role.actions) {
    if (action.start < 0) action.start = action.end = reached;  // it does nothing
  }
}

// Sums of costs over all ranks.
class CostTable {
 public:
  CostTable(const Programs& programs, const StepTime& step) : programs_(programs), step_(step) {
    for (const RoleTime& role : step.roles) ranks_ += static_cast<double>(role.count());
  }

  void Add(size_t index, const TimeUse& use, InstructionTimes& times) {
    const LinkedProgram& program = *programs_.by_class[index];
    const double weight = static_cast<double>(step_.roles[index].count()) / ranks_;
    std::vector<StepCost*> by_number(static_cast<size_t>(program.instructions()));
    for (size_t i = 0; i < use.shown.size(); ++i) {
      if (!(use.shown[i] > 0)) continue;
      const LinkedEntry& entry = program.entries()[program.step().first + i];
      const InstructionTime& time = times.of(entry);
      auto& known = by_number[static_cast<size_t>(entry.instruction->number)];
      if (!known) known = &CostOf(PartOf(program, entry), OpName(entry.instruction->source->kind));
      StepCost& cost = *known;
      cost.communication = entry.instruction->op_class == OpClass::kCommunication;
      Add(weight * (use.shown[i] - std::min(use.shown[i], time.spread)), time.known, cost);
    }
    const RoleTime& role = step_.roles[index];
    Add(weight * role.waiting, Known::kEstimated, CostOf(role.role->name, "waiting"));
    Add(weight * role.launching, Known::kEstimated, CostOf(role.role->name, "launching"));
  }

  std::vector<StepCost> Sorted() const {
    std::vector<StepCost> sorted;
    for (const auto& [key, cost] : costs_) {
      if (cost.seconds > 0) sorted.push_back(cost);
    }
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const StepCost& a, const StepCost& b) { return a.seconds > b.seconds; });
    return sorted;
  }

 private:
  StepCost& CostOf(const std::string& part, std::string_view kind) {
    StepCost& cost = costs_[{part, std::string(kind)}];
    cost.part = part, cost.kind = kind;
    return cost;
  }
  static void Add(double seconds, Known known, StepCost& cost) {
    cost.seconds += seconds;
    cost.by_known[static_cast<size_t>(known)] += seconds;
  }

  const Programs& programs_;
  const StepTime& step_;
  double ranks_ = 0;
  std::map<std::pair<std::string, std::string>, StepCost> costs_;
};

// Goes back from the end of the step: what each entry came after, or the member of a communication that came last.
std::vector<PathPart> PathOf(const Programs& programs, const SimulatedStep& simulated, double length) {
  StepEntry at{-1, 0};
  for (size_t r = 0; r < simulated.roles.size(); ++r) {
    const std::vector<SimulatedEntry>& entries = simulated.roles[r].entries;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (at.role < 0 || entries[i].end > simulated.roles[static_cast<size_t>(at.role)].entries[at.entry].end)
        at = {static_cast<int>(r), static_cast<uint32_t>(i)};
    }
  }
  if (at.role < 0) return {};
  const auto entry_at = [&](const StepEntry& of) -> const SimulatedEntry& {
    return simulated.roles[static_cast<size_t>(of.role)].entries[of.entry];
  };
  std::map<std::pair<int, int>, std::pair<double, StepEntry>> parts;  // by role and number; -1: launching
  double reached = length;
  const auto add = [&](int number, double until) {
    std::pair<double, StepEntry>& part = parts[{at.role, number}];
    part.first += std::max(0.0, reached - until), part.second = at;
    reached = std::min(reached, until);
  };
  const auto linked_at = [&](const StepEntry& of) -> const LinkedEntry& {
    const LinkedProgram& program = *programs.by_class[static_cast<size_t>(of.role)];
    return program.entries()[program.step().first + of.entry];
  };
  add(-1, entry_at(at).end);
  for (;;) {
    add(linked_at(at).instruction->number, entry_at(at).start);
    if (entry_at(at).last.role >= 0) at = entry_at(at).last;
    const int after = entry_at(at).after;
    add(-1, after < 0 ? 0 : entry_at({at.role, static_cast<uint32_t>(after)}).end);
    if (after < 0) break;
    at.entry = static_cast<uint32_t>(after);
  }
  std::map<std::tuple<int, std::string, std::string>, double> named;
  for (const auto& [key, part] : parts) {
    const LinkedProgram& program = *programs.by_class[static_cast<size_t>(key.first)];
    const LinkedEntry& entry = linked_at(part.second);
    key.second < 0 ? named[{key.first, programs.roles[static_cast<size_t>(key.first)].name, "launching"}] += part.first
                   : named[{key.first, PartOf(program, entry), std::string(OpName(entry.instruction->source->kind))}] +=
                     part.first;
  }
  std::vector<PathPart> path;
  for (const auto& [key, seconds] : named) {
    if (seconds > 0) path.push_back({std::get<0>(key), std::get<1>(key), std::get<2>(key), seconds});
  }
  std::stable_sort(path.begin(), path.end(),
                   [](const PathPart& a, const PathPart& b) { return a.seconds > b.seconds; });
  return path;
}

// What ranks with the mean number of rows in their experts are done earlier, they wait for the rank with the most.
void TakeSpread(const LinkedProgram& program, InstructionTimes& times, int self, TimeUse& use) {
  for (size_t i = 0; i < use.shown.size(); ++i) {
    const LinkedEntry& entry = program.entries()[program.step().first + i];
    const double spread = std::min(use.shown[i], times.of(entry).spread);
    if (!(spread > 0)) continue;
    (entry.instruction->op_class == OpClass::kCommunication ? use.communication : use.busy) -= spread;
    use.waiting += spread;
    use.waited_for[static_cast<size_t>(self)] += spread;
  }
}

// The simulation of a plan's programs, and what it was given.
struct Simulation {
  std::vector<InstructionTimes> times;  // of each class
  std::vector<RoleTimes> given;
  HostModel host;
  CommunicationPartners partners;
  CommunicationMatches matches;
  SimulatedStep step;

  Simulation(Programs& programs, const Rates& rates, const ExpertRows* rows);
};

std::vector<RoleTimes> GivenTimes(const Programs& programs, const Rates& rates, HostModel host,
                                  std::vector<InstructionTimes>& times) {
  std::vector<RoleTimes> given;
  for (size_t c = 0; c < programs.classes.size(); ++c) {
    const LinkedProgram& program = *programs.by_class[c];
    RoleTimes& role = given.emplace_back();
    role.entries.reserve(program.step().end - program.step().first);
    for (size_t i = program.step().first; i < program.step().end; ++i) {
      const LinkedEntry& entry = program.entries()[i];
      role.entries.push_back(times[c].KindOf(entry));
      if (role.entries.back() < role.kinds.size()) continue;
      const InstructionTime& time = times[c].of(entry);
      // A host that runs an instruction itself comes to it first.
      const bool runs = host == HostModel::kRunsMainStream;
      role.kinds.push_back({.before = runs ? time.launch : 0,
                            .launch = runs ? 0 : time.launch,
                            .run = time.seconds - time.announce,
                            .beside = rates.Beside(entry.instruction->source->kind),
                            .announce = time.announce,
                            .network = time.network});
    }
  }
  return given;
}

std::vector<InstructionTimes> TimesOf(Programs& programs, const Rates& rates, const ExpertRows* rows) {
  std::vector<InstructionTimes> times;
  times.reserve(programs.classes.size());
  for (size_t c = 0; c < programs.classes.size(); ++c)
    times.emplace_back(*programs.by_class[c], programs.costs, rates, programs.uses, programs.classes[c], rows);
  return times;
}

Simulation::Simulation(Programs& programs, const Rates& rates, const ExpertRows* rows)
    : times(TimesOf(programs, rates, rows)), host(HostModelOf(programs.blocks.plan())),
      partners(programs.blocks.plan(), programs.roles), matches(programs.by_class, partners) {
  given = GivenTimes(programs, rates, host, times);
  step = SimulateStep(programs.by_class, programs.waits, matches, given, host);
}

}  // namespace

int64_t RoleTime::count() const {
  int64_t count = 0;
  for (const RankRange& range : ranks) count += range.count;
  return count;
}

StepTime TimeStep(const Plan& plan) { return TimeStep(plan, RatesOf(plan)); }

StepTime TimeStep(const Plan& plan, const Rates& rates, const ExpertRows* rows) {
  StepTime step{.seconds = rates.known()};
  Programs programs(plan);
  Simulation simulation(programs, rates, rows);
  const SimulatedStep& simulated = simulation.step;
  std::vector<InstructionTimes>& times = simulation.times;
  step.length = simulated.length;
  std::vector<TimeUse> uses;
  double ranks = 0, waiting = 0;
  for (size_t c = 0; c < programs.classes.size(); ++c) {
    const RankClass& of = programs.classes[c];
    const LinkedProgram& program = *programs.by_class[c];
    RoleTime& role = step.roles.emplace_back();
    role.role = &plan.roles[static_cast<size_t>(of.role)];
    role.ranks = of.ranks, role.what = of.what;
    PlaceEntries(program, simulated.roles[c], times[c], role);
    role.operations = OperationTimesOf(program, role.entries, times[c]);
    TimeUse use = TimeUseOf(program, simulated, c);
    TakeSpread(program, times[c], static_cast<int>(c), use);
    role.busy = use.busy, role.communication = use.communication;
    role.waiting = use.waiting, role.launching = use.launching;
    for (size_t other = 0; other < use.waited_for.size(); ++other)
      role.waiting_for_others += other == c ? 0 : use.waited_for[other];
    const auto most = std::max_element(use.waited_for.begin(), use.waited_for.end());
    if (most != use.waited_for.end() && *most > 0) role.waits_for = static_cast<int>(most - use.waited_for.begin());
    ranks += static_cast<double>(role.count());
    waiting += static_cast<double>(role.count()) * role.waiting;
    uses.push_back(std::move(use));
  }
  if (ranks > 0 && step.length > 0) step.bubble = waiting / (ranks * step.length);
  CostTable costs(programs, step);
  for (size_t c = 0; c < uses.size(); ++c) costs.Add(c, uses[c], times[c]);
  step.costs = costs.Sorted();
  step.path = PathOf(programs, simulated, step.length);
  if (step.seconds && plan.checkpoint.every_steps > 0) {
    const CheckpointCopies copies = CopiesOf(plan, programs.classes, rates);
    step.save = copies.save;
    if (copies.MakeWait(programs.by_class, simulated, simulation.given)) {
      const SimulatedStep with =
          SimulateStep(programs.by_class, programs.waits, simulation.matches, simulation.given, simulation.host);
      step.save.longer = with.length - step.length;
    }
  }
  return step;
}

double StepLength(const Plan& plan, const Rates& rates) {
  Programs programs(plan);
  return Simulation(programs, rates, nullptr).step.length;
}

}  // namespace planwright
