#include "planner/plan/link/stream_waits.h"

#include "planner/plan/link/program_accesses.h"

namespace planwright {

StreamWaits::StreamWaits(const LinkedProgram& program) {
  ProgramAccesses accesses(program);
  streams_ = accesses.streams();
  if (streams_ == 1) return;
  StreamDependencies order(accesses.resources(), streams_);
  const LinkedProgram::Range step = program.step();
  ends_.reserve(step.end - step.first);
  for (size_t i = step.first; i < step.end; ++i) {
    for (int64_t wait : order.Next(accesses.of(i))) {
      if (wait >= 0) waits_.push_back(static_cast<uint32_t>(wait));
    }
    ends_.push_back(static_cast<uint32_t>(waits_.size()));
  }
}

}  // namespace planwright
