// The predicted time of a step in words, the same in the terminal and on the page.
#pragma once

#include <array>
#include <string>

#include "planner/predict/estimate/step_time.h"

namespace planwright {

inline constexpr size_t kMostCosts = 10;  // that are shown

std::string ShareText(double part, double whole);  // "12.3 %"

// "language.s0", "language.s0, no samples of radio_encoder"
std::string NameOfRanks(const RoleTime& role);

// For which ranks a role (index in StepTime::roles) waits most; empty: it does not wait.
std::string WaitsForText(const StepTime& time, size_t role);

// What the step costs and how fast it trains, in a sentence; and how its times are known, with the profile from which a
// probe has scaled them. `time`: in seconds.
std::string SpeedText(const Plan& plan, const StepTime& time);
std::string KnownSentence(const Plan& plan, const StepTime& time);

// What checkpoints take on disk and, of a known device, of the steps; empty: none are written.
std::string SaveText(const Plan& plan, const StepTime& time);

// Shares by Known: of one cost, and of all work in the step.
std::array<double, 3> KnownShares(const StepCost& cost);
std::array<double, 3> KnownShares(const StepTime& time);
const char* KnownWord(size_t known);                         // "measured", "between", "estimated"
std::string KnownText(const std::array<double, 3>& shares);  // "measured", "measured 80.0 %, estimated 20.0 %"

}  // namespace planwright
