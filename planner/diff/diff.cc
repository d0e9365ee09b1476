#include "planner/diff/diff.h"

#include <algorithm>
#include <filesystem>

#include "planner/diff/compare_fields.h"
#include "planner/diff/field_tree.h"
#include "planner/diff/layer_arithmetic.h"
#include "planner/plan/lr_schedule.h"
#include "planner/plan/plan_json.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Whether a step of the training has another learning rate or weight decay in the two budgets.
bool RatesChange(const Budget& a, const Budget& b) {
  constexpr int64_t kMostSteps = 2'000'000;  // beyond, the schedules are told apart by their fields alone
  if (a.global_samples != b.global_samples || a.steps != b.steps || a.steps > kMostSteps) return true;
  for (int64_t step = 0; step < a.steps; ++step) {
    const double sample = static_cast<double>(step * a.global_samples);
    if (LearningRateAt(a.learning_rate, sample) != LearningRateAt(b.learning_rate, sample)) return true;
    if (WeightDecayAt(a.weight_decay, sample) != WeightDecayAt(b.weight_decay, sample)) return true;
  }
  return false;
}

// Sizes of groups follow from grids, so no field of the groups changes with them.
void CompareGroupSizes(const Plan& from, const Plan& to, std::vector<Change>& changes) {
  const auto size = [](const Plan& plan, const Group& group) {
    const std::vector<std::vector<int>> members = MembersOf(plan, group);
    return Json{{"groups", members.size()}, {"ranks_each", members.empty() ? 0 : members[0].size()}};
  };
  for (const Group& group : from.groups) {
    const Group* other = to.FindGroup(group.name);
    if (!other || !(group.used() || other->used())) continue;
    Json before = size(from, group), after = size(to, *other);
    if (before == after) continue;
    changes.push_back({"groups." + group.name + ".members", std::move(before), std::move(after), "groups",
                       "other ranks communicate; what they sum is the same", false});
  }
}

// One module's layers: the same change in many layers is told once.
void CompareLayers(const std::string& module, const std::map<std::string, Arithmetic>& from,
                   const std::map<std::string, Arithmetic>& to, std::vector<Change>& changes) {
  struct Seen {
    Change change;
    int layers = 0;
  };
  std::map<std::string, Seen> seen;
  const auto add = [&](const std::string& what, Json before, Json after) {
    Seen& entry = seen[what + before.dump() + after.dump()];
    entry.change = {
        "modules." + module + ".arithmetic." + what, std::move(before), std::move(after), "arithmetic", "", true};
    ++entry.layers;
  };
  for (const auto& [layer, before] : from) {
    const auto other = to.find(layer);
    if (other == to.end()) continue;  // the list of layers tells it
    for (const std::string& op : before) {
      if (!other->second.contains(op)) add(op, true, nullptr);
    }
    for (const std::string& op : other->second) {
      if (!before.contains(op)) add(op, nullptr, true);
    }
  }
  for (auto& [key, entry] : seen) {
    entry.change.effect =
        "layers compute otherwise (" + std::to_string(entry.layers) + (entry.layers == 1 ? " place)" : " places)");
    changes.push_back(std::move(entry.change));
  }
}

void CompareArithmetic(const Plan& from, const Plan& to, std::vector<Change>& changes) {
  const PlanArithmetic before = ArithmeticOf(from), after = ArithmeticOf(to);
  for (const auto& [module, layers] : before.modules) {
    const auto other = after.modules.find(module);
    if (other != after.modules.end()) CompareLayers(module, layers, other->second, changes);
  }
  const auto missing = [&](const std::set<std::string>& a, const std::set<std::string>& b, bool is_from) {
    for (const std::string& what : a) {
      if (b.contains(what)) continue;
      changes.push_back({"step." + what, is_from ? Json(true) : Json(), is_from ? Json() : Json(true), "arithmetic",
                         "gradients or weights are treated otherwise once a step", true});
    }
  };
  missing(before.step, after.step, true);
  missing(after.step, before.step, false);
}

// Files that a plan reads, as they are found from where its recipe stands.
std::vector<std::string> FilesOf(const std::vector<std::string>& names, const std::string& base) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    std::error_code error;
    const std::filesystem::path path = std::filesystem::path(base) / name;
    const std::filesystem::path whole =
        std::filesystem::weakly_canonical(std::filesystem::absolute(path, error), error);
    files.push_back(error ? path.string() : whole.string());
  }
  return files;
}

// The digest covers paths as they are written; from another folder the same words name other files.
void CompareFolders(const Plan& from, const Plan& to, std::vector<Change>& changes) {
  const auto compare = [&](const std::string& path, const std::vector<std::string>& a, const std::string& base_a,
                           const std::vector<std::string>& b, const std::string& base_b, const std::string& area) {
    if (a != b || a.empty() || FilesOf(a, base_a) == FilesOf(b, base_b)) return;
    changes.push_back({path, base_a, base_b, area, "the same relative paths name files of another folder", true});
  };
  if (from.data.kind == to.data.kind && from.data.kind != "mock") {
    const auto files = [](const DataPlan& data) {
      return data.path.empty() ? data.shards : std::vector<std::string>{data.path};
    };
    compare("data.base", files(from.data), from.data.base, files(to.data), to.data.base, "data");
  }
  if (from.initialize && to.initialize) {
    compare("initialize.base", {from.initialize->from}, from.initialize->base, {to.initialize->from},
            to.initialize->base, "weights");
  }
}

// Items of lists are matched by name, so names that change places or an order alone are no change of a field. Two
// digests are two plans all the same, and nobody can say of such a one that it trains alike.
void CompareDigests(const Plan& from, const Plan& to, std::vector<Change>& changes) {
  const std::string a = PlanDigest(from), b = PlanDigest(to);
  if (a != b)
    changes.push_back({"digest", a, b, "run", "the same items in another order, or under one another's names", true});
}

}  // namespace

bool PlanDiff::may_change_loss() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& change) { return change.may_change_loss; });
}

PlanDiff DiffPlans(const Plan& from, const Plan& to) {
  PlanDiff diff;
  if (from.digest.empty() || from.digest != to.digest) {
    diff.changes = CompareFields(FieldTree(from), FieldTree(to), RatesChange(from.budget, to.budget));
    CompareGroupSizes(from, to, diff.changes);
    CompareArithmetic(from, to, diff.changes);
    if (diff.changes.empty()) CompareDigests(from, to, diff.changes);
  }
  CompareFolders(from, to, diff.changes);
  return diff;
}

}  // namespace planwright
