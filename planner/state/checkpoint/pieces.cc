// Turns checkpoint rules into pieces. One walk over a rank's storages finds the rule of each slice; writing and loading
// differ only in what they take of it.

#include "planner/state/checkpoint/pieces.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/base/text/bug.h"
#include "planner/plan/optimizer_states.h"

namespace planwright {
namespace {

constexpr char kMaster[] = "master";

std::string TypeText(DType dtype, const std::vector<int64_t>& shape) {
  return absl::StrCat(std::string(DTypeName(dtype)), "[", absl::StrJoin(shape, ","), "]");
}

// One slice of a storage of the rank, with all that follows from its rule.
struct RankSlice {
  const CheckpointRule* rule = nullptr;
  const Parameter* parameter = nullptr;
  const Storage* storage = nullptr;
  const Bucket* bucket = nullptr;  // null: the storage is in none
  int storage_index = -1;
  PublishedSlice slice;
};

bool HasMaster(const CheckpointRule& rule) {
  return std::find(rule.states.begin(), rule.states.end(), kMaster) != rule.states.end();
}

std::string StateKey(const std::string& name, const std::string& state) { return name + "." + state; }

// The type of a weight or buffer where it is kept under its own name (as executor/optimizer/module_state.cc has it).
DType WeightType(const Plan& plan, const Parameter& parameter, const Bucket* bucket) {
  if (bucket) return bucket->dtype;
  return parameter.buffer ? plan.master() : plan.dtype();
}

const Bucket* BucketOf(const Module& module, const Storage& storage) {
  return storage.bucket < 0 ? nullptr : &module.buckets.at(storage.bucket);
}

// The rule of each parameter of a module.
std::vector<const CheckpointRule*> RulesOf(const Plan& plan, const Module& module) {
  std::vector<const CheckpointRule*> rules(module.parameters.size(), nullptr);
  for (const CheckpointRule& rule : plan.checkpoint.rules) {
    if (rule.module != module.name) continue;
    for (int index : Expand(rule.parameters)) rules.at(index) = &rule;
  }
  return rules;
}

// Calls `visit` for each slice of the storages that this rank has.
template <typename Visit>
void ForEachSlice(const Plan& plan, const Module& module, int rank, const Visit& visit) {
  if (!module.grid.contains(rank)) return;
  const std::vector<const CheckpointRule*> rules = RulesOf(plan, module);
  const ShardCoordinates coordinates = CoordinatesOf(module.grid, rank);
  const int stage = CoordinateOf(module.grid, rank, Axis::kPp);
  for (size_t i = 0; i < module.storages.size(); ++i) {
    const Storage& storage = module.storages[i];
    if (storage.stage != stage) continue;
    for (PublishedSlice& slice : SlicesOf(module, storage, coordinates)) {
      RankSlice found;
      found.rule = rules.at(slice.parameter);
      found.parameter = &module.parameters[slice.parameter];
      Require(found.rule != nullptr, found.parameter->name + " is in no checkpoint rule");
      found.storage = &storage;
      found.bucket = BucketOf(module, storage);
      Require(found.bucket || found.rule->states.empty(), found.parameter->name + " has states, but no bucket");
      found.storage_index = static_cast<int>(i);
      found.slice = std::move(slice);
      visit(found);
    }
  }
}

// Whether the rank is at coordinate 0 along all of `axes` that are not in `except`.
bool IsFirstAlong(const Grid& grid, int rank, const std::vector<Axis>& axes, const std::vector<Axis>& except = {}) {
  return std::all_of(axes.begin(), axes.end(), [&](Axis axis) {
    return std::find(except.begin(), except.end(), axis) != except.end() || CoordinateOf(grid, rank, axis) == 0;
  });
}

// The elements of the slice in the bucket shard that the rank owns. None: the shard is elsewhere in the bucket.
std::vector<ElementRun> RunsInShard(const Plan& plan, const Module& module, const RankSlice& of, int rank) {
  const int64_t owned = of.bucket->elements / of.bucket->shards;
  const int64_t first = owned * ShardIndexOf(plan, module, *of.bucket, rank);
  std::vector<ElementRun> in_bucket = of.slice.runs;
  for (ElementRun& run : in_bucket) run.local += of.storage->offset;
  return ClipRuns(in_bucket, first, first + owned);
}

// The slice in the storage's tensor, under key `key`.
void AddWeight(const RankSlice& of, std::string key, DType dtype, std::vector<CheckpointPiece>& pieces) {
  if (of.slice.runs.empty()) return;
  pieces.push_back({std::move(key), dtype, of.parameter->shape, of.storage_index, "", of.slice.runs, of.slice.name,
                    of.slice.parameter});
}

// The slice's part of each state, in the bucket shard.
void AddStates(const Plan& plan, const Module& module, const RankSlice& of, int rank,
               std::vector<CheckpointPiece>& pieces) {
  const std::vector<ElementRun> runs = RunsInShard(plan, module, of, rank);
  if (runs.empty()) return;
  for (const std::string& state : of.rule->states) {
    pieces.push_back({StateKey(of.slice.name, state), of.bucket->master, of.parameter->shape, of.storage_index, state,
                      runs, of.slice.name, of.slice.parameter});
  }
}

}  // namespace

std::vector<CheckpointPiece> PiecesToWrite(const Plan& plan, const Module& module, int rank) {
  std::vector<CheckpointPiece> pieces;
  ForEachSlice(plan, module, rank, [&](const RankSlice& of) {
    const CheckpointRule& rule = *of.rule;
    if (!rule.kept) return;
    if (!HasMaster(rule) && IsFirstAlong(module.grid, rank, rule.replicated))
      AddWeight(of, of.slice.name, WeightType(plan, *of.parameter, of.bucket), pieces);
    if (!rule.states.empty() && IsFirstAlong(module.grid, rank, rule.replicated, rule.flat))
      AddStates(plan, module, of, rank, pieces);
  });
  return pieces;
}

std::vector<CheckpointPiece> PiecesToLoad(const Plan& plan, const Module& module, int rank) {
  std::vector<CheckpointPiece> pieces;
  ForEachSlice(plan, module, rank, [&](const RankSlice& of) {
    if (HasMaster(*of.rule)) {
      AddWeight(of, StateKey(of.slice.name, kMaster), of.bucket->master, pieces);
    } else {
      AddWeight(of, of.slice.name, WeightType(plan, *of.parameter, of.bucket), pieces);
    }
    if (!of.rule->states.empty()) AddStates(plan, module, of, rank, pieces);
  });
  return pieces;
}

std::vector<CheckpointPiece> PiecesOfCheckpoint(const Plan& plan, const Module& module, int rank) {
  const std::vector<const CheckpointRule*> rules = RulesOf(plan, module);
  std::vector<CheckpointPiece> pieces = PiecesToLoad(plan, module, rank);
  std::erase_if(pieces, [&](const CheckpointPiece& piece) { return !rules.at(piece.parameter)->kept; });
  return pieces;
}

std::map<std::string, KeptParameter> KeptParameters(const Plan& plan) {
  std::map<std::string, KeptParameter> kept;
  for (const Module& module : plan.modules) {
    const std::vector<const CheckpointRule*> rules = RulesOf(plan, module);
    for (size_t i = 0; i < module.parameters.size(); ++i) {
      const Parameter& parameter = module.parameters[i];
      Require(rules[i] != nullptr, parameter.name + " is in no checkpoint rule");
      for (int64_t copy = 0; copy < std::max<int64_t>(parameter.experts, 1); ++copy)
        kept[ExpertName(parameter.name, parameter.experts > 0 ? copy : -1)] = {parameter.shape, rules[i]->states};
    }
  }
  return kept;
}

std::vector<CheckpointTensor> CheckpointTensors(const Plan& plan) {
  std::vector<CheckpointTensor> tensors;
  for (const Module& module : plan.modules) {
    const std::vector<const CheckpointRule*> rules = RulesOf(plan, module);
    for (const Storage& storage : module.storages) {
      const Bucket* bucket = BucketOf(module, storage);
      for (int index : storage.parameters) {
        const Parameter& parameter = module.parameters.at(index);
        const CheckpointRule* rule = rules.at(index);
        Require(rule != nullptr, parameter.name + " is in no checkpoint rule");
        Require(bucket || rule->states.empty(), parameter.name + " has states, but no bucket");
        if (!rule->kept) continue;
        for (int64_t copy = 0; copy < std::max<int64_t>(parameter.experts, 1); ++copy) {
          const std::string name = ExpertName(parameter.name, parameter.experts > 0 ? copy : -1);
          if (!HasMaster(*rule)) tensors.push_back({name, WeightType(plan, parameter, bucket), parameter.shape});
          for (const std::string& state : rule->states)
            tensors.push_back({StateKey(name, state), bucket->master, parameter.shape});
        }
      }
    }
  }
  std::sort(tensors.begin(), tensors.end(),
            [](const CheckpointTensor& a, const CheckpointTensor& b) { return a.key < b.key; });
  return tensors;
}

std::vector<std::string> TensorsThatDiffer(const Plan& plan, const TensorTypes& tensors) {
  std::vector<std::string> misfits;
  const std::vector<CheckpointTensor> all = CheckpointTensors(plan);  // ascending by key
  for (const CheckpointTensor& wanted : all) {
    const auto found = tensors.find(wanted.key);
    if (found == tensors.end()) {
      misfits.push_back(absl::StrCat("the checkpoint has no ", wanted.key));
      continue;
    }
    if (found->second.dtype == wanted.dtype && found->second.shape == wanted.shape) continue;
    misfits.push_back(absl::StrCat(wanted.key, " is ", TypeText(found->second.dtype, found->second.shape),
                                   " in the checkpoint, and ", TypeText(wanted.dtype, wanted.shape), " in the plan"));
  }
  for (const auto& [key, tensor] : tensors) {
    const auto at =
        std::lower_bound(all.begin(), all.end(), key,
                         [](const CheckpointTensor& one, const std::string& name) { return one.key < name; });
    if (at == all.end() || at->key != key) misfits.push_back(absl::StrCat("the plan has no ", key));
  }
  return misfits;
}

KeyParts SplitKey(const std::string& key) {
  for (const OptimizerState& state : kOptimizerStates) {
    const std::string suffix = "." + std::string(state.name);
    if (key.size() > suffix.size() && key.ends_with(suffix))
      return {key.substr(0, key.size() - suffix.size()), std::string(state.name)};
  }
  return {key, ""};
}

}  // namespace planwright
