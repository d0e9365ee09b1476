#include "planner/views/diff/diff.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "planner/base/json/json_text.h"
#include "planner/data/samples/mixture.h"
#include "planner/plan/data_files.h"
#include "planner/plan/lr_schedule.h"
#include "planner/plan/plan_json.h"
#include "planner/views/diff/compare_fields.h"
#include "planner/views/diff/layer_arithmetic.h"
#include "planner/views/diff/part_pairs.h"

namespace planwright {
namespace {

using Json = nlohmann::ordered_json;

// Whether some step of the training has another learning rate or weight decay in the two plans, of the schedule or of a
// tensor. Different schedules can agree at every step that this training has, such as two `min` rates that are never
// reached.
bool RatesChange(const Plan& from, const Plan& to) {
  const Budget &a = from.budget, &b = to.budget;
  std::vector<PartPair> pairs = {{-1, -1, "", 0}};
  for (PartPair& pair : PartsOfTensors(from, to)) pairs.push_back(std::move(pair));
  // Keeps `plan diff` fast. For longer trainings the fields alone decide.
  constexpr int64_t kMostSteps = 2'000'000;
  if (a.global_samples != b.global_samples || a.steps != b.steps) return true;
  if (a.steps > kMostSteps / static_cast<int64_t>(pairs.size())) return true;
  for (int64_t step = 0; step < a.steps; ++step) {
    const double sample = static_cast<double>(step * a.global_samples);
    for (const PartPair& pair : pairs) {
      if (RatesAt(from, pair.from, sample) != RatesAt(to, pair.to, sample)) return true;
    }
  }
  return false;
}

// A plan holds a group as a view and axes. Its members follow from the grid, so they can change while no field of the
// group does: count them.
void CompareGroupSizes(const Plan& from, const Plan& to, std::vector<PlanChange>& changes) {
  const auto size = [](const Plan& plan, const Group& group) {
    const std::vector<std::vector<int>> members = MembersOf(plan, group);
    return Json{{"groups", members.size()}, {"ranks_each", members.empty() ? 0 : members[0].size()}};
  };
  for (const Group& group : from.groups) {
    const Group* other = to.FindGroup(group.name);
    if (!other || !(group.used() || other->used())) continue;  // nobody communicates over it in either plan
    Json before = size(from, group), after = size(to, *other);
    if (before == after) continue;
    changes.push_back({"groups." + group.name + ".members", std::move(before), std::move(after), "groups",
                       "other ranks communicate; what they sum is the same", false});
  }
}

// Operations that one module's layers have in one plan only. A model has dozens of equal layers, so each operation is
// told once, with the number of layers.
void CompareLayers(const std::string& module, const std::map<std::string, OpNames>& from,
                   const std::map<std::string, OpNames>& to, std::vector<PlanChange>& changes) {
  struct LayersOfChange {
    PlanChange change;
    int layers = 0;
  };
  std::map<std::string, LayersOfChange> by_change;
  const auto add = [&](const std::string& op, Json before, Json after) {
    LayersOfChange& entry = by_change[op + JsonText(before) + JsonText(after)];
    entry.change = {
        "modules." + module + ".arithmetic." + op, std::move(before), std::move(after), "arithmetic", "", true};
    ++entry.layers;
  };
  for (const auto& [layer, before] : from) {
    const auto other = to.find(layer);
    if (other == to.end()) continue;  // the fields tell it: the list of layers differs
    for (const std::string& op : before) {
      if (!other->second.contains(op)) add(op, true, nullptr);
    }
    for (const std::string& op : other->second) {
      if (!before.contains(op)) add(op, nullptr, true);
    }
  }
  for (auto& [key, entry] : by_change) {
    entry.change.effect =
        "layers compute something else (" + std::to_string(entry.layers) + (entry.layers == 1 ? " place)" : " places)");
    changes.push_back(std::move(entry.change));
  }
}

void CompareArithmetic(const Plan& from, const Plan& to, std::vector<PlanChange>& changes) {
  const PlanArithmetic before = ArithmeticOf(from), after = ArithmeticOf(to);
  for (const auto& [module, layers] : before.modules) {
    const auto other = after.modules.find(module);
    if (other != after.modules.end()) CompareLayers(module, layers, other->second, changes);
  }
  const auto add_missing = [&](const std::set<std::string>& here, const std::set<std::string>& there,
                               bool here_is_from) {
    for (const std::string& what : here) {
      if (there.contains(what)) continue;
      changes.push_back({"step." + what, here_is_from ? Json(true) : Json(), here_is_from ? Json() : Json(true),
                         "arithmetic", "a step does something else to gradients or weights", true});
    }
  };
  add_missing(before.step, after.step, true);
  add_missing(after.step, before.step, false);
}

// Absolute paths of files that a plan names, seen from the folder of its recipe.
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

// The digest covers paths as they are written, and not the recipe's folder. So two plans of one digest can read
// different files: the same relative paths, seen from two folders.
void CompareFolders(const Plan& from, const Plan& to, std::vector<PlanChange>& changes) {
  const auto compare = [&](const std::string& path, const std::vector<std::string>& a, const std::string& base_a,
                           const std::vector<std::string>& b, const std::string& base_b, const std::string& area) {
    if (a != b || a.empty() || FilesOf(a, base_a) == FilesOf(b, base_b)) return;
    changes.push_back({path, base_a, base_b, area, "the same relative paths name files of another folder", true});
  };
  const auto compare_data = [&](const std::string& path, const DataPlan& a, const DataPlan& b, const char* area) {
    if (a.kind == b.kind) compare(path, FilesOfData(a), a.base, FilesOfData(b), b.base, area);
  };
  compare_data("data.base", from.data, to.data, "data");
  // The losses of a set in one curve are of the same documents.
  for (const EvaluationSet& set : from.evaluation.sets) {
    for (const EvaluationSet& other : to.evaluation.sets) {
      if (set.name == other.name)
        compare_data("evaluation.sets[" + set.name + "].data.base", set.data, other.data, "evaluation");
    }
  }
  if (from.initialize && to.initialize) {
    compare("initialize.base", {from.initialize->from}, from.initialize->base, {to.initialize->from},
            to.initialize->base, "weights");
    const std::vector<WeightSourcePlan>&a = from.initialize->sources, &b = to.initialize->sources;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      compare("initialize.sources[" + a[i].part + "].base", {a[i].from}, a[i].base, {b[i].from}, b[i].base, "weights");
  }
}

// Keeps `plan diff` fast. Mixtures that agree for so long agree until the end of most trainings.
constexpr int64_t kMostCompared = 4'000'000;

std::vector<int64_t> WeightsOf(const DataPlan& data) {
  std::vector<int64_t> weights;
  for (const SourcePlan& source : data.sources) weights.push_back(source.weight);
  return weights;
}

// For each source of `from`, its place in `to`; -1: there is no source with this name and the same documents. The name
// is in the key of the draws.
std::vector<int64_t> SameSources(const DataPlan& from, const DataPlan& to) {
  std::vector<int64_t> places;
  for (const SourcePlan& source : from.sources) {
    const auto same = std::find_if(to.sources.begin(), to.sources.end(), [&](const SourcePlan& other) {
      return other.name == source.name && other.kind == source.kind && other.shards == source.shards &&
             other.ignore == source.ignore && other.path == source.path;
    });
    places.push_back(same == to.sources.end() ? -1 : same - to.sources.begin());
  }
  return places;
}

// Of two sections that differ in nothing but their sources: the first sample, not before `first`, that is of another
// source, or another one of its source. None: no sample differs. Sources are the same if their names and the names of
// their files are; that a file has changed shows in the digest of the index (docs/training/data.md#changing-sources).
std::optional<int64_t> FirstOtherSample(const DataPlan& from, const DataPlan& to, int64_t first) {
  const std::vector<int64_t> a = WeightsOf(from), b = WeightsOf(to), places = SameSources(from, to);
  const int64_t periods =
      std::lcm(std::accumulate(a.begin(), a.end(), int64_t{0}), std::accumulate(b.begin(), b.end(), int64_t{0}));
  const Mixture mixture(a), other(b);
  const int64_t end = first + std::min(periods, kMostCompared);
  for (int64_t sample = first; sample < end; ++sample) {
    const Mixture::Turn turn = mixture.At(sample), there = other.At(sample);
    if (places[turn.source] != there.source || turn.number != there.number) return sample;
  }
  return periods <= kMostCompared ? std::nullopt : std::optional(end);
}

// Fields of sources are compared by name. Of two sources whose turn it is, the earlier one in the list comes first, so
// their order may decide which sample is of which.
void CompareSourceOrder(const Plan& from, const Plan& to, std::vector<PlanChange>& changes) {
  const auto names = [](const DataPlan& data, const DataPlan& other) {
    Json list = Json::array();
    for (const SourcePlan& source : data.sources) {
      const auto same = [&](const SourcePlan& one) { return one.name == source.name; };
      if (std::any_of(other.sources.begin(), other.sources.end(), same)) list.push_back(source.name);
    }
    return list;
  };
  Json before = names(from.data, to.data), after = names(to.data, from.data);
  if (before == after) return;
  const bool other = FirstOtherSample(from.data, to.data, 0).has_value();
  changes.push_back({"data.sources", std::move(before), std::move(after), "data",
                     other ? "sources take turns in another order" : "another order, in which samples are the same",
                     other});
}

// Items of lists are matched by name, so a list in another order, or two items with exchanged names, shows in no field.
// Two digests are two plans all the same. Nothing is known about such a difference, so it may change the loss.
void CompareDigests(const Plan& from, const Plan& to, std::vector<PlanChange>& changes) {
  const std::string a = PlanDigest(from), b = PlanDigest(to);
  if (a != b)
    changes.push_back({"digest", a, b, "run", "the same items in another order, or with names exchanged", true});
}

}  // namespace

bool PlanDiff::may_change_loss() const {
  return std::any_of(changes.begin(), changes.end(), [](const PlanChange& change) { return change.may_change_loss; });
}

std::optional<int64_t> FirstOtherSample(const PlanDiff& diff, const Plan& from, const Plan& to, int64_t first) {
  if (!RowOf(from.data.kind).mixed || !RowOf(to.data.kind).mixed) return std::nullopt;
  bool sources = false;
  // A run that could not read a document ended there: with padding in its place all samples before are as they were.
  const bool skips = from.data.damaged == "error" && to.data.damaged == "skip";
  for (const PlanChange& change : diff.changes) {
    if (change.area != "data" || !change.may_change_loss) continue;
    if (skips && (change.path == "data.damaged" || change.path == "data.most_damaged")) continue;
    if (!change.path.starts_with("data.sources")) return first;  // of every sample
    sources = true;
  }
  return sources ? FirstOtherSample(from.data, to.data, first) : std::nullopt;
}

PlanDiff DiffPlans(const Plan& from, const Plan& to) {
  PlanDiff diff;
  // Equal digests: the plans make ranks do the same, and there is nothing to compare. A plan without one was made by
  // hand, in tests.
  if (from.digest.empty() || from.digest != to.digest) {
    diff.changes = CompareFields(FieldTree(from), FieldTree(to), RatesChange(from, to));
    CompareGroupSizes(from, to, diff.changes);
    CompareArithmetic(from, to, diff.changes);
    if (diff.changes.empty()) {
      // All fields are equal, so this gives the sources the order of `to`, which is told by itself.
      Plan reordered = from;
      reordered.data.sources = to.data.sources;
      CompareDigests(reordered, to, diff.changes);
    }
    CompareSourceOrder(from, to, diff.changes);
  }
  CompareFolders(from, to, diff.changes);
  diff.first_other_sample = FirstOtherSample(diff, from, to, 0);
  return diff;
}

}  // namespace planwright
