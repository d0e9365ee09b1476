// How a run ended, for a person.
#pragma once

#include <string>

#include "planner/wire/records/outcome.h"

namespace planwright {

// Two or three lines, plus one for each line of Failure::others and for each slow rank, plus the last lines of the
// rank's logs.
std::string OutcomeText(const Outcome& outcome);

// "rank 3 (language.s0) is slow: it computed 0.412 s a step, 1.8 times the median of its role, in steps 81-100"
std::string SlowRankText(const SlowRank& slow);

}  // namespace planwright
