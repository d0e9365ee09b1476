// V7 of what ranks hold: each parameter fills one storage, storages lie side by side in a bucket of their stage and
// view, shards tile the bucket, and buckets are reduced over exactly the ranks that hold the same. Alignments:
// docs/training/step.md#gradient-buckets. A bucket that mistakes what tp does to a parameter is reported as V6.
//
// Not here: which parameters a model has (V11, verify_modules.cc), and what programs do with buckets
// (verify_states.cc, verify_updates.cc).

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;

// In elements. A storage starts at a multiple of the first; a bucket ends at a multiple of the second and of its number
// of shards (docs/training/step.md#gradient-buckets).
constexpr int64_t kStartAlignment = 64, kEndAlignment = 128;

int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (int64_t size : shape) count *= size;
  return count;
}

// Checks the storages and buckets of one module.
class ModuleStorage {
 public:
  ModuleStorage(const PlanIndex& index, const Module& module, std::vector<Violation>& violations)
      : index_(index), module_(module), violations_(violations) {}

  void Check() {
    held_.assign(module_.parameters.size(), 0);
    std::set<std::pair<std::string_view, std::string_view>> names;
    for (const Storage& storage : module_.storages) {
      if (!names.emplace(storage.frame, storage.slot).second)
        Fail(absl::StrCat("holds ", storage.frame, ".", storage.slot, " twice"));
      for (const SharedSlot& shared : storage.shared) {
        const string slot = absl::StrCat(shared.frame, ".", shared.slot);
        if (!names.emplace(shared.frame, shared.slot).second) Fail(absl::StrCat("holds ", slot, " twice"));
        if (!storage.SlotIn(shared.frame).empty() && storage.SlotIn(shared.frame) != shared.slot)
          Fail(absl::StrCat("holds ", slot, " in a storage of which the frame has another slot"));
        // No sum brings gradients of two stages together.
        if (module_.grid.pp > 1) Fail(absl::StrCat("shares ", slot, " over ", module_.grid.pp, " stages"));
      }
      CheckStorage(storage);
    }
    for (size_t i = 0; i < held_.size(); ++i) {
      if (held_[i] != 1)
        Fail(absl::StrCat("holds parameter ", module_.parameters[i].name, " ", held_[i], " times, not once"));
    }
    for (size_t i = 0; i < module_.buckets.size(); ++i) CheckBucket(static_cast<int>(i));
  }

 private:
  void Fail(string message, const char* rule = "V7") {
    violations_.push_back(
        {rule, absl::StrCat("module ", module_.name, " ", message), index_.OriginOf(-1, module_.origin, &module_)});
  }

  // A storage holds the right number of elements of its parameters. If they are trained, it lies in a bucket of its
  // stage and view that treats tp as its parameters need.
  void CheckStorage(const Storage& storage) {
    const string name = absl::StrCat(storage.frame, ".", storage.slot);
    if (storage.stage < 0 || storage.stage >= module_.grid.pp) {
      return Fail(absl::StrCat("holds ", name, " on stage ", storage.stage, " of ", module_.grid.pp));
    }
    if (storage.parameters.empty()) return Fail(absl::StrCat("holds no parameter in ", name));
    int64_t elements = 0;
    bool trained = false, experts = false;
    for (int i : storage.parameters) {
      if (i < 0 || i >= static_cast<int>(module_.parameters.size())) {
        return Fail(absl::StrCat("holds parameter ", i, " in ", name, ", which does not exist"));
      }
      const Parameter& parameter = module_.parameters[static_cast<size_t>(i)];
      ++held_[static_cast<size_t>(i)];
      trained = trained || parameter.trained;
      experts = experts || parameter.experts > 0;
      const Parameter& first = module_.parameters[static_cast<size_t>(storage.parameters.front())];
      if (parameter.experts != first.experts)
        Fail(absl::StrCat("joins ", parameter.name, " of ", parameter.experts, " experts in ", name, " to ", first.name,
                          " of ", first.experts));
      elements += LocalElements(parameter, name);
    }
    if (elements != Elements(storage.shape)) {
      Fail(absl::StrCat("holds ", elements, " elements of parameters in ", name, " of shape [",
                        absl::StrJoin(storage.shape, ","), "]"));
    }
    if (!trained) {
      if (storage.bucket >= 0) Fail(absl::StrCat("updates ", name, ", which is frozen"));
      return;
    }
    if (storage.bucket < 0 || storage.bucket >= static_cast<int>(module_.buckets.size())) {
      return Fail(absl::StrCat("never updates ", name, ", which is in no bucket"));
    }
    const Bucket& bucket = module_.buckets[static_cast<size_t>(storage.bucket)];
    if (bucket.stage != storage.stage) {
      Fail(absl::StrCat("holds ", name, " of stage ", storage.stage, " in bucket ", bucket.name, " of stage ",
                        bucket.stage));
    }
    if ((bucket.view == View::kExpert) != experts) {
      Fail(absl::StrCat("reduces ", name, " in bucket ", bucket.name, " of the ", string(ViewName(bucket.view)),
                        " view"));
    }
    const bool cut = std::any_of(storage.parameters.begin(), storage.parameters.end(),
                                 [&](int i) { return module_.parameters[static_cast<size_t>(i)].shard_dim >= 0; });
    // Every tp rank has other experts, so the gradients of experts count as sharded.
    if (module_.grid.tp > 1 && (experts || cut) != (bucket.tp == TpGradient::kSharded)) {
      const char* held = experts ? "different on each rank" : cut ? "cut" : "whole";
      Fail(absl::StrCat("counts ", name, ", which is ", held, " over tp, in bucket ", bucket.name, " as ",
                        string(TpGradientName(bucket.tp))),
           "V6");
    }
    extents_[storage.bucket].push_back({storage.offset, storage.offset + Elements(storage.shape), name});
  }

  // How many elements of a parameter one rank holds.
  int64_t LocalElements(const Parameter& parameter, const string& name) {
    int64_t elements = Elements(parameter.shape);
    const auto divide = [&](int64_t by, const char* what) {
      if (by < 1 || elements % by != 0)
        return Fail(absl::StrCat("cuts ", parameter.name, " in ", name, " into ", by, " unequal parts of ", what));
      elements /= by;
    };
    if (parameter.experts > 0) {  // experts are dealt to ep ranks
      elements *= parameter.experts;
      divide(module_.grid.ep, "experts");
    }
    if (parameter.shard_dim < 0) return elements;
    if (parameter.shard_dim >= static_cast<int>(parameter.shape.size())) {
      Fail(absl::StrCat("cuts ", parameter.name, " along dim ", parameter.shard_dim, ", which it does not have"));
      return elements;
    }
    const int64_t size = parameter.shape[static_cast<size_t>(parameter.shard_dim)];
    int64_t sum = 0;
    for (int64_t segment : parameter.segments) sum += segment;
    if (sum != size) Fail(absl::StrCat("cuts ", parameter.name, " in segments that make ", sum, " of ", size));
    if (parameter.padded) {
      if (parameter.experts > 0 || parameter.segments.size() > 1) {
        Fail(absl::StrCat("pads ", parameter.name, " in ", name, ", which is cut in more than one part"));
        return elements;
      }
      // As many rows as the rank with the most has.
      const int64_t ranks = module_.grid.tp;
      return size < 1 ? 0 : elements / size * ((size - 1) / ranks + 1);
    }
    divide(parameter.experts > 0 ? module_.grid.expert_tp : module_.grid.tp, "a dim");
    return elements;
  }

  // Storages lie in a bucket without overlap and without more padding than alignment needs, and shards tile it.
  void CheckBucket(int i) {
    const Bucket& bucket = module_.buckets[static_cast<size_t>(i)];
    const auto fail = [&](string message) { Fail(absl::StrCat("has bucket ", bucket.name, " ", message)); };
    const bool expert = bucket.view == View::kExpert;
    const int64_t replicas = expert ? module_.grid.expert_dp : int64_t{module_.grid.dp} * module_.grid.cp;
    if (bucket.stage < 0 || bucket.stage >= module_.grid.pp)
      fail(absl::StrCat("on stage ", bucket.stage, " of ", module_.grid.pp));
    if (bucket.shards != replicas) fail(absl::StrCat("in ", bucket.shards, " shards for ", replicas, " replicas"));
    if (bucket.shards > 0 && bucket.elements % bucket.shards != 0) {
      fail(absl::StrCat("of ", bucket.elements, " elements, which do not divide into ", bucket.shards, " shards"));
    }
    CheckGroup(bucket, bucket.reduce_group, replicas > 1, bucket.view,
               expert ? std::vector<Axis>{Axis::kExpertDp} : std::vector<Axis>{Axis::kCp, Axis::kDp});
    CheckGroup(bucket, bucket.tp_group, bucket.tp == TpGradient::kPartial && module_.grid.tp > 1, View::kDense,
               {Axis::kTp});
    auto& extents = extents_[i];
    if (extents.empty()) fail("without storages");
    // In the order of their offsets, each storage starts where the one before ends, aligned.
    std::sort(extents.begin(), extents.end());
    int64_t reached = 0;
    for (const auto& [first, end, name] : extents) {
      // One right offset for each storage: more padding, or less alignment, would change nothing but memory and speed.
      const int64_t aligned = (reached + kStartAlignment - 1) / kStartAlignment * kStartAlignment;
      if (first >= reached && first != aligned)
        fail(absl::StrCat("where ", name, " starts at ", first, ", not at ", aligned));
      if (first < reached) fail(absl::StrCat("where ", name, " starts at ", first, ", inside the storage before it"));
      reached = std::max(reached, end);
    }
    // More padding than this would change nothing but memory; a plan has one right size for each bucket.
    const int64_t padding = std::lcm(int64_t{bucket.shards}, kEndAlignment);
    if (reached > bucket.elements || bucket.elements - reached >= padding) {
      fail(absl::StrCat("of ", bucket.elements, " elements for storages that end at ", reached));
    }
  }

  // The group has exactly the replicas as members. `axes`: along which ranks hold the same; `needed`: there are
  // several.
  void CheckGroup(const Bucket& bucket, const string& name, bool needed, View view, std::vector<Axis> axes) {
    const auto fail = [&](string message) { Fail(absl::StrCat("reduces bucket ", bucket.name, " over ", message)); };
    std::erase_if(axes, [&](Axis axis) { return module_.grid.size(axis) == 1; });
    if (name.empty()) {
      if (needed) fail("no group, but other ranks hold the same elements");
      return;
    }
    const Group* group = index_.group(name);
    if (!group || group->module != module_.name)
      return fail(absl::StrCat(name, ", which is not a group of the module"));
    const bool same_view = group->view == view || axes.empty();
    if (needed && (!same_view || index_.WideAxes(*group) != axes))
      fail(absl::StrCat(name, ", which is not exactly its replicas"));
  }

  const PlanIndex& index_;
  const Module& module_;
  std::vector<Violation>& violations_;
  std::vector<int> held_;
  std::map<int, std::vector<std::tuple<int64_t, int64_t, string>>> extents_;  // by bucket: first, end, name
};

}  // namespace

std::vector<Violation> VerifyStorage(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Module& module : index.plan().modules) ModuleStorage(index, module, violations).Check();
  return violations;
}

}  // namespace planwright
