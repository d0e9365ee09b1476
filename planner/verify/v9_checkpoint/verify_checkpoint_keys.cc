// V9 of names: no two tensors of a checkpoint have the same key. Tensors are the parameters of all modules, those of
// each expert, optimizer states and the common state. And no two tensors of published files have the same name.
//
// Not here: whether a name is the published one (V11, verify_modules.cc), and which rank writes what
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

// Checks one kind of name (checkpoint keys or names in files) over all modules. Names of experts are not expanded: the
// pattern "...{expert}..." stands for the names with each expert's number.
class KeyCheck {
 public:
  KeyCheck(const Plan& plan, std::vector<Violation>& violations) : plan_(plan), violations_(violations) {}

  // `what`: the kind of name, for messages. `states`: also check the names of optimizer states.
  void Check(const char* what, const string Parameter::*name, bool states) {
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

  // Keys of the common state: distinct, no parameter's key, and all that a resumed run needs.
  void CheckCommon() {
    std::unordered_set<string> seen;
    for (const string& key : plan_.checkpoint.common) {
      if (!seen.insert(key).second || keys_.contains(key))
        violations_.push_back({"V9", absl::StrCat("checkpoint key ", key, " exists twice"), -1});
    }
    for (std::string_view needed :
         {"common.step", "common.applied_steps", "common.skipped_steps", "common.consumed_samples"}) {
      if (!seen.contains(string(needed)))
        violations_.push_back({"V9", absl::StrCat("the checkpoint does not keep ", string(needed)), -1});
    }
  }

 private:
  // Each name is claimed once; a second claim is reported.
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

  // The state NAME.exp_avg of one parameter must not have the name of another parameter.
  void CheckStateNames(const char* what, const Parameter& parameter, const Module& module) {
    for (const OptimizerState& state : kOptimizerStates) {
      const string suffix = absl::StrCat(".", string(state.name));
      if (!absl::EndsWith(parameter.name, suffix)) continue;
      const string stem = parameter.name.substr(0, parameter.name.size() - suffix.size());
      if (keys_.contains(stem))
        Fail(module, absl::StrCat("the ", what, " ", parameter.name, " is also that of a state of ", stem));
    }
  }

  // No other name may be among a pattern's names. Only names that share the text before {expert} are compared, and
  // these are few: they are neighbours in sorted order.
  void CheckPattern(const char* what, const string& pattern, const Parameter& parameter, const Module& module) {
    constexpr std::string_view kExpert = "{expert}";
    const size_t at = pattern.find(kExpert);
    if (at == string::npos) return;
    const std::string_view before = std::string_view(pattern).substr(0, at),
                           after = std::string_view(pattern).substr(at + kExpert.size());
    if (sorted_.empty()) {
      for (const auto& [key, owner] : keys_) sorted_.insert(key);
    }
    for (auto it = sorted_.lower_bound(before); it != sorted_.end() && it->starts_with(before); ++it) {
      if (*it == pattern || !it->ends_with(after) || it->size() <= before.size() + after.size()) continue;
      const std::string_view number =
          std::string_view(*it).substr(before.size(), it->size() - before.size() - after.size());
      // A number of more digits would not fit std::stoll, and no model has so many experts.
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
  std::set<string, std::less<>> sorted_;  // keys_ in order; made when the first pattern needs it
};

}  // namespace

std::vector<Violation> VerifyCheckpointKeys(const Plan& plan) {
  std::vector<Violation> violations;
  KeyCheck keys(plan, violations);
  keys.Check("checkpoint key", &Parameter::name, true);
  keys.CheckCommon();
  KeyCheck(plan, violations).Check("file name", &Parameter::file_name, false);
  return violations;
}

}  // namespace planwright
