#include "planner/run/measure/gloo_spans.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "planner/predict/estimate/instruction_times.h"

namespace planwright {
namespace {

// From the arrival of the last member until the last one is done, in nanoseconds.
struct Span {
  int64_t begin = 0, end = 0;

  bool Overlaps(const Span& other) const { return begin < other.end && other.begin < end; }
};

bool LastsForAll(const LinkedEntry& entry) {
  return entry.instruction->op_class == OpClass::kCommunication && entry.instruction->source->kind != OpKind::kExchange;
}

}  // namespace

GlooSpans::GlooSpans(const RankPrograms& ranks) : ranks_(ranks) {
  const Plan& plan = ranks.plan();
  const InstructionCosts costs(ranks.blocks());
  CommunicationUses communications(plan);
  const Rates rates = RatesOf(plan);
  const std::vector<RankClass> classes = ClassesOf(plan);  // each rank is a role, and so one class
  // Kind, members, those of a node, nodes and bytes; and the how many-eth of the step it is.
  using Use = std::tuple<OpKind, int, int, int, double>;
  std::map<std::tuple<int, Use, int>, std::vector<StepEntry>> same;  // by node
  for (size_t r = 0; r < ranks.programs().size(); ++r) {
    const LinkedProgram& program = *ranks.programs()[r];
    const InstructionTimes times(program, costs, rates, communications, classes[r]);
    const auto [first, end] = program.step();
    beside_.emplace_back(end - first);
    std::map<Use, int> seen;
    for (size_t i = 0; i < end - first; ++i) {
      const LinkedEntry& entry = program.entries()[first + i];
      if (!LastsForAll(entry)) continue;
      const std::optional<CommunicationUse> use = times.CommunicationOf(entry);
      if (!use || use->nodes < 2) continue;
      const Use key = {use->kind, use->members, use->per_node, use->nodes, use->bytes};
      const int node = static_cast<int>(r) / std::max(1, plan.cluster.gpus_per_node);
      same[{node, key, seen[key]++}].push_back({static_cast<int>(r), static_cast<uint32_t>(i)});
    }
  }
  for (const auto& [key, entries] : same) {
    for (const StepEntry& own : entries) {
      for (const StepEntry& other : entries) {
        if (other.role != own.role) beside_[static_cast<size_t>(own.role)][own.entry].push_back(other);
      }
    }
  }
}

std::vector<std::vector<std::optional<double>>> GlooSpans::Of(const std::vector<Trace>& traces, int64_t step) const {
  const auto at = [&](const StepEntry& of) -> const TraceInstruction& {
    const auto rank = static_cast<size_t>(of.role);
    const auto [first, end] = ranks_.programs()[rank]->step();
    return traces[rank].instructions[static_cast<size_t>(step - traces[rank].steps.first) * (end - first) + of.entry];
  };
  const auto span_of = [&](const StepEntry& of) {
    Span span = {at(of).begin, at(of).end};
    for (const StepEntry& met : ranks_.matches().of(of.role, of.entry))
      span = {std::max(span.begin, at(met).begin), std::max(span.end, at(met).end)};
    return span;
  };
  std::vector<std::vector<std::optional<double>>> seconds;
  for (size_t r = 0; r < beside_.size(); ++r) {
    const LinkedProgram& program = *ranks_.programs()[r];
    seconds.emplace_back(beside_[r].size());
    for (size_t i = 0; i < beside_[r].size(); ++i) {
      if (!LastsForAll(program.entries()[program.step().first + i])) continue;
      const Span own = span_of({static_cast<int>(r), static_cast<uint32_t>(i)});
      Span all = own;
      for (const StepEntry& other : beside_[r][i]) {
        const Span beside = span_of(other);
        if (beside.Overlaps(own)) all = {std::max(all.begin, beside.begin), std::max(all.end, beside.end)};
      }
      seconds.back()[i] = static_cast<double>(all.end - all.begin) * 1e-9;
    }
  }
  return seconds;
}

}  // namespace planwright
