// V9: a checkpoint holds every element of every parameter and optimizer state once. The proof goes by axes and not by
// ranks. The cut and replicated axes of a checkpoint rule together span the ranks of a stage. So the ranks along the
// cut axes write different parts, and the rank with coordinate 0 along all replicated axes is the one writer of each.
// The parts tile the tensor because sizes divide; of a padded tensor the last parts end where it ends (shard_map.h).
//
// Not here: that keys are unique (verify_checkpoint_keys.cc), and the order in which a rule lists its axes (V11,
// verify_derived_fields.cc).

#include <algorithm>
#include <iterator>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/shard_map.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

string AxesText(const std::vector<Axis>& axes) {
  return axes.empty()
             ? "no axis"
             : absl::StrJoin(axes, "+", [](string* out, Axis axis) { absl::StrAppend(out, string(AxisName(axis))); });
}

bool Contains(const std::vector<Axis>& axes, Axis axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

bool SameAxes(std::vector<Axis> a, std::vector<Axis> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

// Checks the part of the manifest that one module owns.
class ModuleManifest {
 public:
  ModuleManifest(const Plan& plan, const Module& module, std::vector<Violation>& violations)
      : plan_(plan), module_(module), violations_(violations), storage_of_(module.parameters.size(), -1) {
    for (const Group& group : plan.groups) groups_[group.name] = &group;
  }

  void Check() {
    FindStorages();
    std::vector<int> writers(module_.parameters.size(), 0);
    for (const CheckpointRule& rule : plan_.checkpoint.rules) {
      if (rule.module == module_.name) CheckRule(rule, writers);
    }
    for (size_t i = 0; i < writers.size(); ++i) {
      if (writers[i] == 0) Fail(module_.parameters[i], "is in no checkpoint rule: no rank writes it");
      if (writers[i] > 1)
        Fail(module_.parameters[i],
             absl::StrCat("is in ", writers[i], " checkpoint rules: it would be written more than once"));
    }
    CheckBuckets();
  }

 private:
  void Fail(const string& message) {
    violations_.push_back({"V9", absl::StrCat("module ", module_.name, ": ", message), module_.origin});
  }
  void Fail(const Parameter& parameter, const string& message) {
    violations_.push_back({"V9", absl::StrCat("parameter ", parameter.name, " ", message), module_.origin});
  }

  // Finds the storage of each parameter.
  void FindStorages() {
    for (size_t i = 0; i < module_.storages.size(); ++i) {
      for (int index : module_.storages[i].parameters) {
        if (index < 0 || index >= static_cast<int>(storage_of_.size())) {
          Fail(absl::StrCat("storage ", module_.storages[i].frame, ".", module_.storages[i].slot,
                            " holds a parameter that does not exist"));
          continue;
        }
        if (storage_of_[index] >= 0)
          Fail(module_.parameters[index], "lies in two storages, but a checkpoint holds only one of them");
        storage_of_[index] = static_cast<int>(i);
      }
    }
  }

  void CheckRule(const CheckpointRule& rule, std::vector<int>& writers) {
    std::vector<Axis> span = rule.cut;
    span.insert(span.end(), rule.replicated.begin(), rule.replicated.end());
    std::vector<Axis> view;
    for (Axis axis : AxesOf(rule.view)) {
      if (axis != Axis::kPp) view.push_back(axis);
    }
    // The stage and these axes name every rank of the module exactly once. So parts and writers can be counted by axes.
    if (!SameAxes(span, view)) {
      return Fail(absl::StrCat("a checkpoint rule cuts over ", AxesText(rule.cut), " and replicates over ",
                               AxesText(rule.replicated), ", but ", AxesText(view), " make up its ranks"));
    }
    for (Axis axis : rule.flat) {
      if (!Contains(rule.replicated, axis)) {
        Fail(absl::StrCat("optimizer state lies in flat ranges over ", string(AxisName(axis)),
                          ", which is not a replicated axis"));
      }
    }
    // Indices of parameters are written as ranges, like ranks.
    for (const RankRange& range : rule.parameters) {
      const int64_t last = range.first + (int64_t{range.count} - 1) * range.stride;
      if (range.first < 0 || last >= static_cast<int64_t>(writers.size())) {
        Fail("a checkpoint rule names a parameter that does not exist");
        continue;
      }
      for (int64_t index = range.first; index <= last; index += range.stride) {
        ++writers[index];
        CheckParameter(rule, module_.parameters[index], storage_of_[index]);
      }
    }
  }

  void CheckParameter(const CheckpointRule& rule, const Parameter& parameter, int storage_index) {
    if (storage_index < 0) return Fail(parameter, "lies in no storage: no rank can write it");
    const Storage& storage = module_.storages[storage_index];
    if (storage.stage != rule.stage) {
      Fail(parameter, absl::StrCat("is held by stage ", storage.stage, ", but stage ", rule.stage, " is to write it"));
    }
    // A part is cut along exactly the axes of its parameter. One axis too few leaves a hole; one too many lets several
    // ranks write the same part.
    const bool expert = parameter.experts > 0;
    if (expert != (rule.view == View::kExpert)) return Fail(parameter, "is written in the other view of its module");
    std::vector<Axis> cut;
    if (expert) cut.push_back(Axis::kEp);
    if (parameter.shard_dim >= 0) cut.push_back(expert ? Axis::kExpertTp : Axis::kTp);
    for (Axis axis : cut) {
      if (!Contains(rule.cut, axis)) {
        Fail(parameter,
             absl::StrCat("is cut over ", string(AxisName(axis)), ", but only coordinate 0 would write: a hole"));
      }
    }
    for (Axis axis : rule.cut) {
      if (!Contains(cut, axis)) {
        Fail(parameter,
             absl::StrCat("is whole on every rank along ", string(AxisName(axis)), ", and all of them would write it"));
      }
    }
    const bool kept = !module_.adapted() || (parameter.trained && !parameter.buffer);
    if (rule.kept != kept) {
      Fail(parameter, kept ? "changes, or adapters do not stand on it, but no checkpoint has it"
                           : "is what adapters stand on, but checkpoints have it");
    }
    CheckParts(parameter);
    CheckStates(rule, parameter, storage);
  }

  // The parts of the tensor along the axes that cut it have equal sizes and add up to it. Of a padded tensor they have
  // the rows that are there.
  void CheckParts(const Parameter& parameter) {
    const Grid& grid = module_.grid;
    if (parameter.experts > 0 && parameter.experts % grid.ep != 0) {
      Fail(parameter, absl::StrCat("has ", parameter.experts, " experts, which ep ", grid.ep, " does not divide"));
    }
    if (parameter.shard_dim < 0) return;
    if (parameter.shard_dim >= static_cast<int>(parameter.shape.size()))
      return Fail(parameter, "is cut along a dim that it does not have");
    const int parts = parameter.experts > 0 ? grid.expert_tp : grid.tp;
    int64_t sum = 0;
    for (int64_t segment : parameter.segments) {
      sum += segment;
      if (segment % parts != 0 && !parameter.padded)
        Fail(parameter, absl::StrCat("has a segment of ", segment, ", which ", parts, " ranks do not divide"));
    }
    if (parameter.padded && (parameter.experts > 0 || parameter.segments.size() != 1))
      Fail(parameter, "is padded, and cut in more than one part");
    if (!parameter.segments.empty() && sum != parameter.shape[parameter.shard_dim]) {
      Fail(parameter, absl::StrCat("has segments of ", sum, " along a dim of ", parameter.shape[parameter.shard_dim],
                                   ": its parts do not tile it"));
    }
  }

  // The rule keeps the optimizer states of a trained parameter, in ranges that are the shards of its bucket: each rank
  // writes its shard, without communication.
  void CheckStates(const CheckpointRule& rule, const Parameter& parameter, const Storage& storage) {
    std::vector<string> wanted;
    if (storage.bucket >= 0) {
      if (plan_.precision == "bf16") wanted.push_back("master");
      wanted.insert(wanted.end(), {"exp_avg", "exp_avg_sq"});
    }
    if (parameter.trained && !parameter.buffer && storage.bucket < 0)
      return Fail(parameter, "is trained but has no optimizer state to keep");
    if (rule.states != wanted) {
      return Fail(parameter, absl::StrCat("has the states {", absl::StrJoin(wanted, ", "),
                                          "}, but the checkpoint keeps {", absl::StrJoin(rule.states, ", "), "}"));
    }
    if (wanted.empty()) return;
    if (storage.bucket >= static_cast<int>(module_.buckets.size()))
      return Fail(parameter, "lies in a bucket that does not exist");
    const Bucket& bucket = module_.buckets[storage.bucket];
    if (bucket.stage != storage.stage) Fail(parameter, "lies in a bucket of another stage");
    // The flat axes must make as many ranges as the bucket has shards, over the same group.
    int ranges = 1;
    for (Axis axis : rule.flat) ranges *= module_.grid.size(axis);
    if (ranges != bucket.shards) {
      return Fail(parameter, absl::StrCat("has its state in ", bucket.shards, " shards, but the checkpoint writes ",
                                          ranges, " ranges"));
    }
    if (bucket.shards == 1) return;
    const auto group = groups_.find(bucket.reduce_group);
    if (group == groups_.end() || group->second->module != module_.name || group->second->view != rule.view ||
        !SameAxes(group->second->axes, rule.flat)) {
      Fail(parameter, absl::StrCat("has its state sharded over ", bucket.reduce_group,
                                   ", but the checkpoint writes ranges over ", AxesText(rule.flat)));
    }
  }

  // Shards of a bucket have equal sizes and its storages do not overlap, so each element of a state is in one shard.
  void CheckBuckets() {
    std::map<int, std::vector<const Storage*>> by_bucket;
    for (const Storage& storage : module_.storages) {
      if (storage.bucket >= 0) by_bucket[storage.bucket].push_back(&storage);
    }
    for (auto& [index, storages] : by_bucket) {
      if (index >= static_cast<int>(module_.buckets.size())) continue;
      const Bucket& bucket = module_.buckets[index];
      if (bucket.shards < 1 || bucket.elements % bucket.shards != 0) {
        Fail(absl::StrCat("bucket ", bucket.name, " has ", bucket.elements, " elements, which ", bucket.shards,
                          " shards do not divide"));
      }
      std::sort(storages.begin(), storages.end(),
                [](const Storage* a, const Storage* b) { return a->offset < b->offset; });
      int64_t reached = 0;
      for (const Storage* storage : storages) {
        const string name = absl::StrCat(storage->frame, ".", storage->slot);
        if (storage->offset < reached) Fail(absl::StrCat(name, " overlaps its neighbour in bucket ", bucket.name));
        reached = storage->offset + ElementsOf(storage->shape);
      }
      if (reached > bucket.elements) Fail(absl::StrCat("bucket ", bucket.name, " is too small for its storages"));
    }
  }

  const Plan& plan_;
  const Module& module_;
  std::vector<Violation>& violations_;
  std::vector<int> storage_of_;  // by parameter; -1: none
  std::map<string, const Group*> groups_;
};

}  // namespace

std::vector<Violation> VerifyCheckpoint(const Plan& plan) {
  std::vector<Violation> violations;
  for (const CheckpointRule& rule : plan.checkpoint.rules) {
    if (!plan.FindModule(rule.module))
      violations.push_back({"V9", absl::StrCat("a checkpoint rule is for unknown module ", rule.module), -1});
  }
  for (const Module& module : plan.modules) ModuleManifest(plan, module, violations).Check();
  std::vector<Violation> keys = VerifyCheckpointKeys(plan);
  std::move(keys.begin(), keys.end(), std::back_inserter(violations));
  return violations;
}

}  // namespace planwright
