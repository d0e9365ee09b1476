// Why a run ended as it did: which rank failed first, where it was, and what the others waited for.
#pragma once

#include <functional>
#include <optional>

#include "planner/plan/plan.h"
#include "planner/run/launch/supervise.h"
#include "planner/wire/records/outcome.h"
#include "planner/wire/records/recorder_reader.h"

namespace planwright {

// Returns the position that a rank noted last; nullopt if it wrote no recorder pages.
using RecorderSource = std::function<std::optional<RankPosition>(int rank)>;

// Exit code, cause and failure. The rest of the outcome is left empty. `saved`: the life has published a checkpoint.
Outcome CauseOf(const Plan& plan, const Supervision& supervision, const RecorderSource& read_recorder,
                bool saved = true);

}  // namespace planwright
