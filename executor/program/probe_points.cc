#include "executor/program/probe_points.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <string>
#include <utility>

#include "planner/wire/records/probe_format.h"

namespace planwright::executor {
namespace {

// The forward that a block of an evaluation was made of; null: there is none.
const Block* ForwardOf(const Plan& plan, const Block& block) {
  const std::string end = ".evaluate";
  if (!block.name.ends_with(end)) return nullptr;
  return plan.FindBlock(absl::StrCat(block.name.substr(0, block.name.size() - end.size()), ".forward"));
}

// A probe names an input of the block, which exists before its first entry, or an output of one of its instructions.
void AddProbePoints(const LinkedProgram& program, uint32_t number, const Block& block, const Probe& probe,
                    std::vector<ProbePoint>& points) {
  const LinkedCall& call = program.calls()[number];
  for (size_t i = 0; i < block.inputs.size(); ++i) {
    if (block.inputs[i].name == probe.value)
      points.push_back({call.first, false, number, &probe, program.ValueOf(number, call.block->inputs[i])});
  }
  for (size_t i = call.first; i < call.end; ++i) {
    const LinkedEntry& entry = program.entries()[i];
    if (entry.call != number) continue;  // of a call inside this one
    for (size_t k = 0; k < entry.instruction->outputs.size(); ++k) {
      if (entry.instruction->source->outputs[k].name != probe.value || entry.instruction->outputs[k] < 0) continue;
      points.push_back({i, true, number, &probe, program.ValueOf(entry, entry.instruction->outputs[k])});
    }
  }
}

}  // namespace

std::vector<ProbePoint> FindProbePoints(const Plan& plan, const LinkedProgram& program, bool trains) {
  std::vector<ProbePoint> points;
  const LinkedProgram::Range list = trains ? program.step() : program.evaluate();
  for (uint32_t c = 0; c < program.calls().size(); ++c) {
    const LinkedCall& call = program.calls()[c];
    const Block* block = call.block->block;
    // Only blocks have probes, and only calls of the list are probed.
    if (block == nullptr || call.first < list.first || call.end > list.end || call.first == call.end) continue;
    const Block* probed = trains ? block : ForwardOf(plan, *block);
    if (probed == nullptr) continue;
    for (const Probe& probe : probed->probes) {
      if (trains || probe.name == kLogitsProbe) AddProbePoints(program, c, *block, probe, points);
    }
  }
  const auto earlier = [](const ProbePoint& a, const ProbePoint& b) {
    return std::pair(a.entry, a.after) < std::pair(b.entry, b.after);
  };
  std::stable_sort(points.begin(), points.end(), earlier);
  return points;
}

}  // namespace planwright::executor
