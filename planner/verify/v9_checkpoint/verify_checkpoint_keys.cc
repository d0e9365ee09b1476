// V9 of names: no two tensors of a checkpoint have the same key, over all modules, each expert's tensors, optimizer
// states and the common state; nor do two tensors of published files have the same name.
//
// Not here: whether a name is the published one (V11, verify_modules.cc), and who writes what
// (verify_checkpoint.cc).

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/plan/optimizer_states.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// Keys over all modules, experts not expanded: a pattern with {expert} stands for its names with every expert's number.
class KeyCheck {
 public:
  KeyCheck(const Plan& plan, std::vector<Violation>& violations) : plan_(plan), violations_(violations) {}

  void Run(const char* what, const string Parameter::*name, bool states) {
    for (const Module& module : plan_.modules) {
      for (const Parameter& parameter : module.parameters) Claim(what, parameter.*name, module, parameter);
    }
    for (const Module& module : plan_.modules) {
      for (const Parameter& parameter : module.parameters) {
        if (states) CheckStateNames(what, parameter, module);
        if (parameter.experts > 0) CheckPattern(what, parameter.*name, parameter, module);
      }
    }
  }

  void Common() {
    std::unordered_set<string> seen;
    for (const string& key : plan_.checkpoint.common) {
      if (!seen.insert(key).second || keys_.contains(key))
        violations_.push_back({"V9", absl::StrCat("checkpoint key ", key, " exists twice"), -1});
    }
    for (std::string_view needed :
         {"common.step", "common.applied_steps", "common.consumed_samples", "common.data_position"}) {
      if (!seen.contains(string(needed)))
        violations_.push_back({"V9", absl::StrCat("the checkpoint does not keep ", string(needed)), -1});
    }
  }

 private:
  void Claim(const char* what, const string& key, const Module& module, const Parameter& parameter) {
    if (key.empty()) return Fail(module, absl::StrCat("a parameter of module ", module.name, " has no ", what));
    if (parameter.experts > 0 && !absl::StrContains(key, "{expert}")) {
      return Fail(module, absl::StrCat("the experts of ", parameter.name, " share one ", what, ", ", key));
    }
    const auto [it, fresh] = keys_.emplace(key, &module);
    if (!fresh)
      Fail(module, absl::StrCat("the ", what, " ", key, " exists twice, in module ", it->second->name,
                                " and in module ", module.name));
  }

  // NAME.exp_avg of one parameter is no other parameter's name.
  void CheckStateNames(const char* what, const Parameter& parameter, const Module& module) {
    for (const OptimizerState& state : kOptimizerStates) {
      const string suffix = absl::StrCat(".", string(state.name));
      if (!absl::EndsWith(parameter.name, suffix)) continue;
      const string stem = parameter.name.substr(0, parameter.name.size() - suffix.size());
      if (keys_.contains(stem))
        Fail(module, absl::StrCat("the ", what, " ", parameter.name, " is also that of a state of ", stem));
    }
  }

  // No plain name, and no other pattern, is among a pattern's names. Names that share the part before the number are
  // few.
  void CheckPattern(const char* what, const string& pattern, const Parameter& parameter, const Module& module) {
    const size_t at = pattern.find("{expert}");
    if (at == string::npos) return;
    const std::string_view before = std::string_view(pattern).substr(0, at),
                           after = std::string_view(pattern).substr(at + 8);
    if (sorted_.empty()) {
      for (const auto& [key, owner] : keys_) sorted_.insert(key);
    }
    for (auto it = sorted_.lower_bound(before); it != sorted_.end() && it->starts_with(before); ++it) {
      if (*it == pattern || !it->ends_with(after) || it->size() <= before.size() + after.size()) continue;
      const std::string_view number =
          std::string_view(*it).substr(before.size(), it->size() - before.size() - after.size());
      if (number.size() > 18 || !std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; }))
        continue;
      if (std::stoll(string(number)) < parameter.experts) {
        Fail(module, absl::StrCat("the ", what, " ", *it, " is also that of an expert of ", pattern));
      }
    }
  }

  void Fail(const Module& module, string message) { violations_.push_back({"V9", std::move(message), module.origin}); }

  const Plan& plan_;
  std::vector<Violation>& violations_;
  std::unordered_map<string, const Module*> keys_;
  std::set<string, std::less<>> sorted_;
};

}  // namespace

std::vector<Violation> VerifyCheckpointKeys(const Plan& plan) {
  std::vector<Violation> violations;
  KeyCheck keys(plan, violations);
  keys.Run("checkpoint key", &Parameter::name, true);
  keys.Common();
  KeyCheck(plan, violations).Run("file name", &Parameter::file_name, false);
  return violations;
}

}  // namespace planwright
