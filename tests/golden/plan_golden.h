// The file plans.golden: digests of plans, with enough of their parts to say what differs. A part is a module, a block
// or a role of the canonical plan, or the rest of it. Plans share parts, so each part is in the file once.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "planner/plan/plan.h"

namespace planwright::testing {

struct GoldenPlan {
  std::string digest, canonical;   // the first 16 hex digits
  std::vector<std::string> parts;  // keys of PlanGolden::parts, in the order of the plan
};

struct GoldenPart {
  std::string name;                // "block language.moe.forward"
  std::string codes;               // of a block: kCodeDigits hex digits for each line
  std::vector<std::string> lines;  // its text: one instruction on a line. Not in the file
};
inline constexpr size_t kCodeDigits = 3;

struct PlanGolden {
  std::map<std::string, GoldenPlan> plans;  // by name
  std::map<std::string, GoldenPart> parts;  // by key: the first 8 hex digits of the digest of its text

  // Adds a plan and its parts. A bug if there is a plan of this name.
  void Add(const std::string& name, const Plan& plan);
};

std::string WriteGolden(const PlanGolden& golden);
// A bug if the text is none that WriteGolden writes.
PlanGolden ReadGolden(std::string_view text);

// What differs, for people; empty: nothing does. `golden` is from a file, `now` was made by Add.
std::string Differences(const PlanGolden& golden, const PlanGolden& now);

}  // namespace planwright::testing
