// V11 of single fields: buckets, sums of the step, groups with their streams, bridges, image sizes of the data,
// run-time sizes and axes of the checkpoint have the one value that modules, bridges and programs give them. Each is
// compared with its formula, in the order in which the plan has it.
//
// Not here: fields that may have any value which other rules allow ("chosen" in plan_fields.h), and ranges of free
// fields (planner/plan/plan_ranges.h).

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/sample_images.h"
#include "planner/plan/statement/expert_counts.h"
#include "planner/plan/statement/model_statement.h"
#include "planner/predict/rates/device.h"
#include "planner/verify/rules.h"
#include "planner/verify/shared/bridge_rows.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

string Text(const string& text) { return text.empty() ? "nothing" : text; }
string Text(int64_t value) { return absl::StrCat(value); }
string Text(int value) { return absl::StrCat(value); }
string Text(View view) { return string(ViewName(view)); }
string Text(DType dtype) { return string(DTypeName(dtype)); }
string Text(const std::vector<Axis>& axes) {
  return absl::StrCat(
      "[", absl::StrJoin(axes, ",", [](string* out, Axis axis) { out->append(string(AxisName(axis))); }), "]");
}
string Text(const std::vector<string>& words) { return absl::StrCat("[", absl::StrJoin(words, ","), "]"); }
string Text(const std::vector<int>& ranks) { return absl::StrCat(ranks.size(), " ranks"); }

class DerivedFieldCheck {
 public:
  DerivedFieldCheck(const PlanIndex& index, std::vector<Violation>& violations)
      : index_(index), plan_(index.plan()), violations_(violations) {}

  void Check() {
    for (const Module& module : plan_.modules) {
      CheckBuckets(module);
      // An expert view without experts has no meaning of its own, so it has one form.
      if (module.experts() > 0) continue;
      Equal("module " + module.name, "ep", module.grid.ep, 1, module.origin);
      Equal("module " + module.name, "expert_tp", module.grid.expert_tp, 1, module.origin);
    }
    CheckAccumulators();
    CheckBridges();
    CheckGroups();
    const string& gpu = plan_.cluster.gpu;
    if (DeviceOf(gpu).gpu != gpu) Fail("the cluster", absl::StrCat("has the unknown gpu ", gpu), -1);
    CheckData();
    CheckSymbols();
    CheckCheckpointRules();
    if (plan_.format_version != kPlanFormatVersion)
      Fail("the plan", absl::StrCat("has format ", plan_.format_version, ", not ", kPlanFormatVersion), -1);
  }

 private:
  void Fail(const string& who, string_view what, int origin) {
    violations_.push_back({"V11", absl::StrCat(who, " ", string(what)), index_.OriginOf(origin, -1, nullptr)});
  }

  template <typename T>
  void Equal(const string& who, const char* what, const T& found, const T& wanted, int origin) {
    if (found != wanted) Fail(who, absl::StrCat("has ", what, " ", Text(found), ", not ", Text(wanted)), origin);
  }

  // Whether tp ranks have parts of the gradient of a parameter. If not, they have terms of a sum or all of it: V6 says
  // which, by the instructions that add to it (verify_gradient_sums.cc).
  static bool IsSharded(const Module& module, const Parameter& parameter) {
    return parameter.experts > 0 || parameter.shard_dim >= 0 || module.grid.tp == 1;
  }

  // Shards and groups follow from the grid, types from the precision (docs/training/step.md#gradient-buckets).
  void CheckBuckets(const Module& module) {
    for (const Storage& storage : module.storages) {
      if (storage.bucket < 0) continue;
      const Bucket& bucket = module.buckets[static_cast<size_t>(storage.bucket)];
      const bool sharded = IsSharded(module, module.parameters[static_cast<size_t>(storage.parameters.front())]);
      if ((bucket.tp == TpGradient::kSharded) == sharded) continue;
      Fail(absl::StrCat("bucket ", bucket.name, " of ", storage.frame, ".", storage.slot),
           absl::StrCat("has tp ", string(TpGradientName(bucket.tp)), sharded ? ", not sharded" : ""), module.origin);
    }
    std::set<string_view> names;
    for (const Bucket& bucket : module.buckets) {
      const string who = "bucket " + bucket.name;
      const bool expert = bucket.view == View::kExpert, whole = bucket.tp != TpGradient::kSharded;
      const int shards = expert ? module.grid.expert_dp : module.grid.dp * module.grid.cp;
      if (!names.insert(bucket.name).second) Fail(who, "has the name of another bucket", module.origin);
      Equal(who, "shards", bucket.shards, shards, module.origin);
      Equal(who, "reduce_group", bucket.reduce_group, shards > 1 ? module.name + (expert ? ".ep_dp" : ".dp_cp") : "",
            module.origin);
      Equal(who, "tp_group", bucket.tp_group, bucket.tp == TpGradient::kPartial ? module.name + ".tp" : "",
            module.origin);
      Equal(who, "once_over", bucket.once_over, whole ? std::vector<Axis>{Axis::kTp} : std::vector<Axis>{},
            module.origin);
      Equal(who, "dtype", bucket.dtype, plan_.dtype(), module.origin);
      Equal(who, "master", bucket.master, plan_.master(), module.origin);
    }
  }

  // The sums of a step: two of counts and losses, two for each bridge, a norm for each module, and token counts of
  // experts (docs/training/step.md#metrics). Where checkpoints are written, ranks agree by a sum when to stop.
  void CheckAccumulators() {
    std::vector<Accumulator> wanted = {{"$integers", DType::kInt64, 2, {"loss_tokens", "routing"}},
                                       {"$reals", DType::kFp64, 2, {"loss", "aux"}}};
    for (const Bridge& bridge : plan_.bridges) {
      wanted[0].parts.push_back("elements." + bridge.from);
      wanted[1].parts.push_back("square_sum." + bridge.from);
      ++wanted[0].elements;
      ++wanted[1].elements;
    }
    if (plan_.checkpoint.every_steps > 0) {
      wanted[0].parts.push_back("stop_requests");
      ++wanted[0].elements;
    }
    for (const Module& module : plan_.modules) {
      wanted[1].parts.push_back("norm." + module.name);
      ++wanted[1].elements;
      const ModelStatement* statement = StatementOf(module);
      if (module.experts() > 0 && statement && CountsExperts(*statement))
        wanted.push_back({"$expert_counts", DType::kInt64, module.expert_layers() * module.experts(), {}});
    }
    if (plan_.sums_by_source()) {
      const auto sources = static_cast<int64_t>(plan_.data.sources.size());
      wanted.push_back({"$source_losses", DType::kFp64, sources, {}});
      wanted.push_back({"$source_tokens", DType::kInt64, sources, {}});
    }
    if (!plan_.evaluation.empty()) {
      wanted.push_back({"$evaluated_losses", DType::kFp64, plan_.evaluation.parts(), {}});
      wanted.push_back({"$evaluated_tokens", DType::kInt64, plan_.evaluation.parts(), {}});
    }
    Equal("the plan", "sums of a step:", static_cast<int64_t>(plan_.accumulators.size()),
          static_cast<int64_t>(wanted.size()), -1);
    for (size_t i = 0; i < std::min(wanted.size(), plan_.accumulators.size()); ++i) {
      const Accumulator& found = plan_.accumulators[i];
      const string who = "the sum " + found.name;
      Equal(who, "name", found.name, wanted[i].name, -1);
      Equal(who, "dtype", found.dtype, wanted[i].dtype, -1);
      Equal(who, "elements", found.elements, wanted[i].elements, -1);
      Equal(who, "parts", found.parts, wanted[i].parts, -1);
    }
  }

  // The kind of a bridge, from the lanes of its two ends.
  static const char* KindOf(const Grid& from, const Grid& to) {
    if (from.first_rank == to.first_rank && from.ranks() == to.ranks()) return "colocated";
    if (from.dp == to.dp) return "equal";
    if (to.dp % from.dp == 0) return "fan_out";
    return from.dp % to.dp == 0 ? "fan_in" : "uneven";
  }

  void CheckBridges() {
    for (const Bridge& bridge : plan_.bridges) {
      const string who = "bridge " + bridge.name;
      Equal(who, "name", bridge.name, absl::StrCat("bridge.", bridge.from, ".", bridge.to), bridge.origin);
      const Module *from = index_.module(bridge.from), *to = index_.module(bridge.to);
      if (!from || !to) continue;  // V2
      Equal(who, "kind", bridge.kind, string(KindOf(from->grid, to->grid)), bridge.origin);
      // The text says where an encoder's rows go by a token of the language model.
      const int64_t tokens = to->size("vocabulary");
      if (bridge.token >= 0 && bridge.token < tokens) continue;
      Fail(who,
           absl::StrCat("has token ", bridge.token, ", not one of the vocabulary of ", bridge.to, ", which are 0 to ",
                        tokens - 1),
           bridge.origin);
    }
    // The data's image token is the token that the rows of the first encoder replace.
    if (!plan_.bridges.empty())
      Equal("the data", "image_token", plan_.data.image_token, plan_.bridges.front().token,
            plan_.bridges.front().origin);
  }

  // Notes the streams on which the instructions communicate, by group.
  void CollectStreams(const std::vector<Instruction>& body) {
    for (const Instruction& op : body) {
      if (!op.group.empty()) streams_[op.group].insert(op.stream);
      for (const ExchangePart& part : op.parts)
        streams_[part.bridge.empty() ? part.group : part.bridge].insert(op.stream);
    }
  }

  // The ranks that a bridge's tables name, ascending.
  std::vector<int> MembersOf(const Bridge& bridge) const {
    std::vector<bool> member(static_cast<size_t>(plan_.world_size));
    for (const auto* transfers : {&bridge.forward, &bridge.backward}) {
      for (const Transfer& transfer : *transfers) {
        for (int rank : {transfer.from_rank, transfer.to_rank}) {
          if (rank >= 0 && rank < plan_.world_size) member[static_cast<size_t>(rank)] = true;  // others: V5
        }
      }
    }
    std::vector<int> ranks;
    for (size_t rank = 0; rank < member.size(); ++rank) {
      if (member[rank]) ranks.push_back(static_cast<int>(rank));
    }
    return ranks;
  }

  // The groups in creation order: the world, nine groups of each module, the bridges (docs/layouts/grids.md#groups).
  // All modules have all groups, also those that this plan does not use.
  void CheckGroups() {
    using enum Axis;
    struct ModuleGroup {
      const char* name;
      View view;
      std::vector<Axis> axes;
    };
    static const std::vector<ModuleGroup> kModuleGroups = {
        {"tp", View::kDense, {kTp}},           {"cp", View::kDense, {kCp}},
        {"pp", View::kDense, {kPp}},           {"dp_cp", View::kDense, {kDp, kCp}},
        {"tp_cp", View::kDense, {kTp, kCp}},   {"tp_dp_cp", View::kDense, {kTp, kDp, kCp}},
        {"ep", View::kExpert, {kEp}},          {"ep_tp", View::kExpert, {kExpertTp}},
        {"ep_dp", View::kExpert, {kExpertDp}},
    };
    for (const Block& block : plan_.blocks) CollectStreams(block.body);
    for (const Role& role : plan_.roles) {
      for (const RoleList& part : kRoleLists) CollectStreams(role.*part.list);
    }
    next_ = 0;
    ExpectGroup("world", "world", "", View::kDense, {}, nullptr);
    for (const Module& module : plan_.modules) {
      for (const ModuleGroup& kind : kModuleGroups)
        ExpectGroup(absl::StrCat(module.name, ".", kind.name), kind.name, module.name, kind.view, kind.axes, nullptr);
    }
    for (const Bridge& bridge : plan_.bridges) ExpectGroup(bridge.name, "bridge", "", View::kDense, {}, &bridge);
    if (next_ < plan_.groups.size())
      Fail("group " + plan_.groups[next_].name, "is none of the groups that modules and bridges have",
           plan_.groups[next_].origin);
  }

  // The next group of the plan must be this one.
  void ExpectGroup(const string& name, const char* short_name, const string& module, View view,
                   const std::vector<Axis>& axes, const Bridge* bridge) {
    if (next_ >= plan_.groups.size()) {
      if (next_++ == plan_.groups.size()) Fail("the plan", absl::StrCat("lacks the group ", name), -1);
      return;
    }
    const Group& found = plan_.groups[next_++];
    const string who = "group " + found.name;
    if (found.name != name) return Fail(who, absl::StrCat("is in the place of ", name), found.origin);
    Equal(who, "short_name", found.short_name, string(short_name), found.origin);
    Equal(who, "module", found.module, module, found.origin);
    Equal(who, "view", found.view, view, found.origin);
    Equal(who, "axes", found.axes, axes, found.origin);
    if (bridge) Equal(who, "members", found.ranks, MembersOf(*bridge), found.origin);
    const auto used = streams_.find(name);
    std::vector<string> streams;
    if (used != streams_.end()) streams.assign(used->second.begin(), used->second.end());
    Equal(who, "streams", found.streams, streams, found.origin);
  }

  // The data section repeats sizes of the models that its readers need.
  void CheckData() {
    // Where text is bytes, the ids behind them stand for images, padding and the end of a document
    // (docs/training/data.md#text-as-bytes). Where it is ids, the shards say which do, so that only their range is
    // known. Other data has no tokens of its own.
    const bool tokenized = RowOf(plan_.data.kind).tokenized, ids = tokenized && plan_.data.tokenizer == "ids";
    const bool bytes = tokenized && !ids;
    constexpr int64_t kBytes = 256;
    if (bytes) Equal("the data", "image_token", plan_.data.image_token, kBytes, -1);
    if (!ids) {
      Equal("the data", "pad_token", plan_.data.pad_token, bytes ? kBytes + 1 : -1, -1);
      Equal("the data", "end_token", plan_.data.end_token, bytes ? kBytes + 2 : -1, -1);
    }
    const auto module_that = [&](bool Module::*what) {
      const auto found =
          std::find_if(plan_.modules.begin(), plan_.modules.end(), [&](const Module& module) { return module.*what; });
      return found == plan_.modules.end() ? nullptr : &*found;
    };
    const Module* language = module_that(&Module::carries_loss);
    Equal("the data", "encoders:", static_cast<int64_t>(plan_.data.encoders.size()),
          static_cast<int64_t>(plan_.bridges.size()), -1);
    for (size_t i = 0; i < std::min(plan_.bridges.size(), plan_.data.encoders.size()); ++i) {
      const Bridge& bridge = plan_.bridges[i];
      const EncoderData& found = plan_.data.encoders[i];
      const string who = "the data of encoder " + found.module;
      const Module* encoder = index_.module(bridge.from);
      Equal(who, "module", found.module, bridge.from, bridge.origin);
      Equal(who, "token", found.token, bridge.token, bridge.origin);
      if (!encoder || !encoder->has_images) continue;  // V5
      Equal(who, "patch", found.patch, encoder->size("patch"), encoder->origin);
      Equal(who, "pixel_shuffle", found.pixel_shuffle, encoder->size("pixel_shuffle"), encoder->origin);
      Equal(who, "max_image", found.max_image, encoder->size("max_image"), encoder->origin);
      if (const ModelStatement* statement = StatementOf(encoder->kind))
        Equal(who, "pixels", found.pixels, statement->pixels, encoder->origin);
    }
    Equal("the data", "vocabulary", plan_.data.vocabulary, language ? language->size("vocabulary") : 0,
          language ? language->origin : -1);
  }

  // The run-time sizes of the programs in the order of the modules, and the mean of each. V10 checks their maxima
  // (verify_run_time_sizes.cc).
  void CheckSymbols() {
    size_t next = 0;
    // `encoder`: whose images are counted, where images are.
    const auto expect = [&](const Module& module, const string& what, const string& encoder = "") {
      const string name = absl::StrCat(module.name, ".", what);
      if (next >= plan_.symbols.size()) {
        if (next++ == plan_.symbols.size())
          Fail("the plan", absl::StrCat("lacks the run-time size ", name), module.origin);
        return;
      }
      const Symbol& symbol = plan_.symbols[next++];
      if (symbol.name != name)
        return Fail("the run-time size " + symbol.name, absl::StrCat("is in the place of ", name), module.origin);
      Equal("the run-time size " + name, "mean", symbol.mean,
            MeanOf(symbol, module, what, plan_.data.FindEncoder(encoder)), module.origin);
    };
    for (const Module& module : plan_.modules) {
      if (module.has_images) {
        const bool dealt = module.grid.cp > 1;  // each cp rank has a part of an image
        expect(module, "image_rows", module.name);
        if (dealt) expect(module, "part_image_rows", module.name);
        for (const char* what : {"patches", "images"}) expect(module, what, module.name);
        // Class tokens come to the patches; without them no other size counts rows of layers.
        const bool classes = module.size("class_tokens") > 0;
        if (classes) expect(module, "tokens", module.name);
        if (dealt) expect(module, classes ? "lane_tokens" : "lane_patches", module.name);
        continue;
      }
      std::vector<const Bridge*> into;
      for (const Bridge& bridge : plan_.bridges) {
        if (bridge.to == module.name) into.push_back(&bridge);
      }
      for (const Bridge* bridge : into)
        expect(module, RowsOfBridge(plan_, *bridge, true).substr(module.name.size() + 1), bridge->from);
      if (module.experts() > 0 && module.grid.ep > 1) {
        expect(module, "expert_rows");
        if (module.grid.expert_tp > 1) expect(module, "expert_rows_gathered");
      }
      if (plan_.data.packed_documents) expect(module, "documents");
    }
    if (next < plan_.symbols.size())
      Fail("the run-time size " + plan_.symbols[next].name, "belongs to no value of a program", -1);
  }

  // The mean number of rows, rounded, at least 1. 0: the mean is not known, or it is the maximum.
  int64_t MeanOf(const Symbol& symbol, const Module& module, string_view what, const EncoderData* encoder) const {
    double mean = 0;
    const SampleImages images =
        encoder ? ImagesOfSample(plan_.data, *encoder, plan_.budget.sequence_length) : SampleImages();
    if (what.starts_with("expert_rows")) {
      // On average the experts of a rank receive as many rows as the rank sends.
      const Grid& grid = module.grid;
      const int64_t tokens = plan_.budget.sequence_length / (grid.tp * grid.cp) * plan_.budget.micro_samples;
      mean = static_cast<double>(tokens) * static_cast<double>(module.top_k()) *
             (what == "expert_rows" ? 1 : grid.expert_tp);
    } else if (images.any()) {
      const LaneSamples lane = SamplesOfLane(plan_.budget.block_samples, module.grid.dp, 0);
      const double count = static_cast<double>(lane.end - lane.first) * images.mean_images;
      const double patches = count * images.mean_patches();
      const double parts = module.has_images ? module.grid.cp : 1;
      if (what == "part_image_rows") {
        mean = patches / static_cast<double>(encoder->merged()) / parts;
      } else if (what.ends_with("image_rows")) {
        mean = patches / static_cast<double>(encoder->merged());
      } else if (what == "images") {
        mean = count;
      } else if (what == "patches") {
        mean = patches / parts;
      } else if (what == "lane_patches") {
        mean = patches;
      } else if (what == "tokens" || what == "lane_tokens") {
        mean = patches + count * static_cast<double>(module.size("class_tokens"));
        if (what == "tokens") mean /= parts;
      } else {
        return 0;
      }
      mean = std::min(mean, static_cast<double>(symbol.maximum));
    } else {
      return 0;
    }
    // A damaged plan may give any number here, also NaN, for which `mean >= 1` is false.
    return mean >= 1 ? static_cast<int64_t>(std::llround(std::min(mean, 9e15))) : 1;
  }

  // The axes of a checkpoint rule, in the order of its view: those that cut its parameters, those that replicate them,
  // and those over which optimizer states lie in flat ranges. The first parameter stands for all; V9 compares the
  // others.
  void CheckCheckpointRules() {
    // Rules have one order, and parameters that are written alike are in one rule.
    const auto order = [&](const CheckpointRule& rule) {
      const Module* module = index_.module(rule.module);
      const bool cut = std::any_of(rule.cut.begin(), rule.cut.end(), [](Axis axis) { return axis != Axis::kEp; });
      return std::tuple(module ? module - plan_.modules.data() : -1, rule.stage, rule.view, cut, !rule.states.empty());
    };
    const std::vector<CheckpointRule>& rules = plan_.checkpoint.rules;
    for (size_t i = 1; i < rules.size(); ++i) {
      if (order(rules[i - 1]) < order(rules[i])) continue;
      const Module* module = index_.module(rules[i].module);
      Fail("the checkpoint", absl::StrCat("has its rule ", i, ", of ", rules[i].module, ", in the place of another"),
           module ? module->origin : -1);
    }
    for (const CheckpointRule& rule : plan_.checkpoint.rules) {
      const Module* module = index_.module(rule.module);
      const int first = rule.parameters.empty() ? -1 : rule.parameters.front().first;
      if (!module || first < 0 || first >= static_cast<int>(module->parameters.size())) continue;  // V9
      const Parameter& parameter = module->parameters[static_cast<size_t>(first)];
      std::vector<Axis> cut, replicated, flat;
      for (Axis axis : AxesOf(rule.view)) {
        if (axis == Axis::kPp) continue;
        const bool tensor = axis == Axis::kTp || axis == Axis::kExpertTp;
        (axis == Axis::kEp || (tensor && parameter.shard_dim >= 0) ? cut : replicated).push_back(axis);
      }
      if (!rule.states.empty())
        flat =
            rule.view == View::kExpert ? std::vector<Axis>{Axis::kExpertDp} : std::vector<Axis>{Axis::kCp, Axis::kDp};
      const string who = absl::StrCat("the checkpoint's rule of ", parameter.name);
      Equal(who, "view", rule.view, parameter.experts > 0 ? View::kExpert : View::kDense, module->origin);
      Equal(who, "cut", rule.cut, cut, module->origin);
      Equal(who, "replicated", rule.replicated, replicated, module->origin);
      Equal(who, "flat", rule.flat, flat, module->origin);
    }
  }

  const PlanIndex& index_;
  const Plan& plan_;
  std::vector<Violation>& violations_;
  std::map<string, std::set<string>, std::less<>> streams_;  // by group: where programs communicate over it
  size_t next_ = 0;                                          // the next of the plan's groups
};

}  // namespace

std::vector<Violation> VerifyDerivedFields(const PlanIndex& index) {
  std::vector<Violation> violations;
  DerivedFieldCheck(index, violations).Check();
  return violations;
}

}  // namespace planwright
