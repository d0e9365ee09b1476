#include "planner/predict/estimate/checkpoint_copies.h"

#include <algorithm>

#include "planner/predict/estimate/host_memory.h"

namespace planwright {

CheckpointCopies CopiesOf(const Plan& plan, const std::vector<RankClass>& classes, const Rates& rates) {
  CheckpointCopies copies{.save = {.every = plan.checkpoint.every_steps, .known = true}, .seconds = {}};
  for (const RankClass& ranks : classes) {
    const int64_t bytes = CheckpointBytes(plan, plan.roles[static_cast<size_t>(ranks.role)]);
    const std::optional<double> seconds = rates.CopyToHost(static_cast<double>(bytes));
    const bool limited = plan.checkpoint.copy_bytes > 0 && plan.checkpoint.copy_bytes < bytes;
    copies.save.bytes = std::max(copies.save.bytes, bytes);
    copies.save.known &= seconds.has_value() && !limited;
    copies.seconds.push_back(seconds.value_or(0));
    copies.save.copy = std::max(copies.save.copy, copies.seconds.back());
  }
  if (!copies.save.known) copies.save.copy = 0;
  return copies;
}

bool CheckpointCopies::MakeWait(const std::vector<const LinkedProgram*>& programs, const SimulatedStep& simulated,
                                std::vector<RoleTimes>& times) const {
  bool waits = false;
  for (size_t c = 0; save.known && c < programs.size(); ++c) {
    const LinkedProgram& program = *programs[c];
    const SimulatedRole& role = simulated.roles[c];
    for (size_t i = 0; i < role.entries.size(); ++i) {
      const LinkedInstruction& instruction = *program.entries()[program.step().first + i].instruction;
      if (instruction.source->kind != OpKind::kAdamW || role.entries[i].arrived >= seconds[c]) continue;
      times[c].kinds[times[c].entries[i]].no_earlier = seconds[c];
      waits = true;
    }
  }
  return waits;
}

}  // namespace planwright
