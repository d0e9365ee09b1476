#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

using std::string;

class StructureDamage {
 public:
  StructureDamage(const Plan& plan, std::vector<Mutant>& mutants) : plan_(plan), mutants_(mutants) {}

  void Make() {
    DamageRanks();
    DamageGroups();
    for (size_t i = 0; i < plan_.bridges.size(); ++i) {
      DamageTable(i, "forward", &Bridge::forward);
      if (plan_.FindModule(plan_.bridges[i].from)->trained()) DamageTable(i, "backward", &Bridge::backward);
    }
    for (size_t i = 0; i < plan_.modules.size(); ++i) DamageStorages(i);
    DamageSymbols();
    DamageBudget();
    DamageSchedule();
  }

 private:
  void Add(const char* kind, const string& where, std::vector<string> rules, std::function<void(Plan&)> inflict) {
    mutants_.push_back({kind, where, std::move(rules), origins_, std::move(inflict)});
  }

  void DamageRanks() {
    Add("world_grows", "world", {"V1"}, [](Plan& p) { ++p.world_size; });
    if (plan_.world_size > 1) Add("world_shrinks", "world", {"V1"}, [](Plan& p) { --p.world_size; });
    for (size_t i = 0; i < plan_.roles.size(); ++i) {
      const string& name = plan_.roles[i].name;
      origins_ = testing::OriginsOf(plan_, plan_.roles[i]);
      Add("drop_role", name, {"V1"}, [i](Plan& p) { p.roles.erase(p.roles.begin() + static_cast<std::ptrdiff_t>(i)); });
      Add("repeat_role", name, {"V1"}, [i](Plan& p) { p.roles.push_back(Role(p.roles[i])); });
      Add("drop_ranks", name, {"V1"}, [i](Plan& p) { p.roles[i].ranks.pop_back(); });
      Add("shift_ranks", name, {"V1"}, [i](Plan& p) { ++p.roles[i].ranks[0].first; });
      Add("rank_too_many", name, {"V1"}, [i](Plan& p) { ++p.roles[i].ranks[0].count; });
      Add("drop_module", name, {"V1"}, [i](Plan& p) { p.roles[i].modules.pop_back(); });
      Add("foreign_module", name, {"V1"}, [i](Plan& p) { p.roles[i].modules.push_back("nobody"); });
      for (size_t to = 0; to < plan_.roles.size(); ++to) {
        if (to == i) continue;
        // A sibling that runs its leader's program is no damage: the bridge tables give it no rows to send or receive,
        // and the broadcast of its lane brings it the same values as before.
        const bool promoted = name == plan_.roles[to].name + ".sibling";
        origins_ = testing::OriginsOf(plan_, plan_.roles[i]);
        for (const string& origin : testing::OriginsOf(plan_, plan_.roles[to])) origins_.push_back(origin);
        Add("move_rank", absl::StrCat(name, " to ", plan_.roles[to].name),
            promoted ? std::vector<string>() : std::vector<string>{"V1", "V3", "V5"},
            [i, to](Plan& p) { MoveRank(p.roles[i], p.roles[to]); });
      }
    }
    for (size_t i = 0; i < plan_.modules.size(); ++i) {
      const string& name = plan_.modules[i].name;
      origins_.clear();  // the violation may point at the module that it now overlaps
      Add("shift_grid", name, {"V1"}, [i](Plan& p) { ++p.modules[i].grid.first_rank; });
      origins_ = {absl::StrCat("module ", name)};
      Add("views_of_two_sizes", name, {"V1"}, [i](Plan& p) { p.modules[i].grid.ep *= 2; });
      Add("axis_of_no_size", name, {"V1"}, [i](Plan& p) { p.modules[i].grid.cp = 0; });
      Add("wider_axis", name, {"V1"}, [i](Plan& p) { ++p.modules[i].grid.dp; });
    }
  }

  // The first rank of one role joins another role.
  static void MoveRank(Role& from, Role& to) {
    std::vector<int> source = Expand(from.ranks), target = Expand(to.ranks);
    target.push_back(source.front());
    source.erase(source.begin());
    std::sort(target.begin(), target.end());
    from.ranks = Compress(source);
    to.ranks = Compress(target);
  }

  // The rules that may refuse a missing or changed group: V7 if it shards buckets, and the rules of what passes over
  // it.
  std::vector<string> RulesOfGroup(const string& name) const {
    std::set<string> rules;
    const auto look = [&](const std::vector<Instruction>& body) {
      for (const Instruction& op : body) {
        for (const ExchangePart& part : op.parts) {
          if (part.group == name) rules.insert({"V3", "V5"});
          if (part.bridge == name) rules.insert("V3");
        }
        if (op.group != name) continue;
        const bool state = !op.inputs.empty() && !op.inputs.front().empty() &&
                           (op.inputs.front()[0] == '%' || op.inputs.front()[0] == '$');
        const std::vector<string> of =
            state ? RulesOfStateCollective(op) : std::vector<string>{op.kind == OpKind::kBroadcast ? "V5" : "V4"};
        rules.insert(of.begin(), of.end());
      }
    };
    for (const Block& block : plan_.blocks) look(block.body);
    for (const Role& role : plan_.roles) {
      for (const RoleList& part : kRoleLists) look(role.*part.list);
    }
    for (const Module& module : plan_.modules) {
      for (const Bucket& bucket : module.buckets) {
        if (bucket.reduce_group == name || bucket.tp_group == name) rules.insert("V7");
      }
    }
    return {rules.begin(), rules.end()};
  }

  // The group's own recipe part, and the parts of all roles that communicate over it.
  std::vector<string> OriginsOf(const Group& group) const {
    std::vector<string> origins;
    if (group.origin < 0) return origins;  // the world: any
    origins.push_back(plan_.origins[static_cast<size_t>(group.origin)].what);
    const Bridge* bridge = plan_.FindBridge(group.name);
    for (const Role& role : plan_.roles) {
      const auto runs = [&](const string& module) {
        return std::find(role.modules.begin(), role.modules.end(), module) != role.modules.end();
      };
      if (!runs(group.module) && !(bridge && (runs(bridge->from) || runs(bridge->to)))) continue;
      for (const string& origin : testing::OriginsOf(plan_, role)) origins.push_back(origin);
    }
    return origins;
  }

  void DamageGroups() {
    for (size_t i = 0; i < plan_.groups.size(); ++i) {
      const Group& group = plan_.groups[i];
      origins_ = OriginsOf(group);
      Add("repeat_group", group.name, {"V2"},
          [i](Plan& p) { p.groups.insert(p.groups.begin() + static_cast<std::ptrdiff_t>(i), Group(p.groups[i])); });
      if (!group.used()) continue;
      Add("drop_group", group.name, RulesOfGroup(group.name),
          [i](Plan& p) { p.groups.erase(p.groups.begin() + static_cast<std::ptrdiff_t>(i)); });
      if (MembersOf(plan_, group).front().size() > 1)
        Add("no_communicator", group.name, {"V3"}, [i](Plan& p) { p.groups[i].streams.clear(); });
      if (!group.module.empty()) {
        Add("group_of_nobody", group.name, {"V2"}, [i](Plan& p) { p.groups[i].module = "nobody"; });
        Add("group_out_of_order", group.name, {"V2"}, [i](Plan& p) {
          std::rotate(p.groups.begin(), p.groups.begin() + static_cast<std::ptrdiff_t>(i),
                      p.groups.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        });
        if (group.axes != std::vector<Axis>{Axis::kPp}) {
          Add("axis_of_another_view", group.name, {"V2"},
              [i](Plan& p) { p.groups[i].view = p.groups[i].view == View::kDense ? View::kExpert : View::kDense; });
        }
        Add("axis_twice", group.name, {"V2"}, [i](Plan& p) { p.groups[i].axes.push_back(p.groups[i].axes.front()); });
        Add("group_lists_ranks", group.name, {"V2"}, [i](Plan& p) { p.groups[i].ranks = {0}; });
        Add("group_over_nothing", group.name, RulesOfGroup(group.name), [i](Plan& p) { p.groups[i].axes.clear(); });
      }
      if (group.ranks.size() > 1) {
        Add("members_unordered", group.name, {"V2"},
            [i](Plan& p) { std::swap(p.groups[i].ranks[0], p.groups[i].ranks[1]); });
        Add("member_twice", group.name, {"V2"}, [i](Plan& p) { p.groups[i].ranks[1] = p.groups[i].ranks[0]; });
        Add("member_outside", group.name, {"V2"}, [i](Plan& p) { p.groups[i].ranks.back() = p.world_size; });
      }
    }
  }

  void DamageTable(size_t i, const char* way, std::vector<Transfer> Bridge::*table) {
    const Bridge& bridge = plan_.bridges[i];
    origins_ = {absl::StrCat("bridge ", bridge.from, " to ", bridge.to), absl::StrCat("module ", bridge.from),
                absl::StrCat("module ", bridge.to)};
    Add("unknown_end", absl::StrCat(bridge.name, " ", way), {"V2"}, [i](Plan& p) { p.bridges[i].to = "nobody"; });
    const std::vector<string> rules = {"V3", "V5"};
    const size_t shown = std::min<size_t>((bridge.*table).size(), 8);  // rows; a large plan has thousands
    for (size_t k = 0; k < shown; ++k) {
      const string where = absl::StrCat(bridge.name, " ", way, " ", k);
      const auto add = [&](const char* kind, std::function<void(std::vector<Transfer>&, Transfer&)> change) {
        Add(kind, where, rules,
            [i, k, table, change](Plan& p) { change(p.bridges[i].*table, (p.bridges[i].*table)[k]); });
      };
      add("lose_transfer", [k](auto& all, Transfer&) { all.erase(all.begin() + static_cast<std::ptrdiff_t>(k)); });
      add("repeat_transfer", [](auto& all, Transfer& t) { all.push_back(Transfer(t)); });
      add("lose_first_sample", [](auto&, Transfer& t) { ++t.first_sample; });
      add("lose_last_sample", [](auto&, Transfer& t) { --t.end_sample; });
      add("sample_too_many", [](auto&, Transfer& t) { ++t.end_sample; });
      // On colocated modules all ranks of a lane hold the same rows, and any of them may send. Only a rank of another
      // lane is wrong, which is tp * cp ranks further.
      const Module& sender = *plan_.FindModule(table == &Bridge::forward ? bridge.from : bridge.to);
      const int away = bridge.kind == "colocated" ? sender.grid.tp * sender.grid.cp : 1;
      add("from_another_rank", [away](auto&, Transfer& t) { t.from_rank += away; });
      add("to_another_rank", [](auto&, Transfer& t) { ++t.to_rank; });
      add("turned_transfer", [](auto&, Transfer& t) {
        t.from_rank == t.to_rank ? void(t.to_rank = -1) : std::swap(t.from_rank, t.to_rank);
      });
      if (k + 1 < shown && ((bridge.*table)[k].first_sample != (bridge.*table)[k + 1].first_sample ||
                            (bridge.*table)[k].end_sample != (bridge.*table)[k + 1].end_sample)) {
        add("swapped_lanes", [k](auto& all, Transfer&) {
          std::swap(all[k].first_sample, all[k + 1].first_sample);
          std::swap(all[k].end_sample, all[k + 1].end_sample);
        });
      }
    }
  }

  void DamageStorages(size_t m) {
    const Module& module = plan_.modules[m];
    origins_ = {absl::StrCat("module ", module.name)};
    for (size_t i = 0; i < module.buckets.size(); ++i) {
      const Bucket& bucket = module.buckets[i];
      const auto add = [&](const char* kind, std::vector<string> rules, std::function<void(Bucket&)> change) {
        Add(kind, bucket.name, std::move(rules), [m, i, change](Plan& p) { change(p.modules[m].buckets[i]); });
      };
      add("bucket_too_small", {"V7"}, [](Bucket& b) { b.elements = b.shards; });
      add("shards_too_many", {"V7"}, [](Bucket& b) { ++b.shards; });
      add("bucket_of_another_stage", {"V7"}, [](Bucket& b) { ++b.stage; });
      add("bucket_of_another_view", {"V7"},
          [](Bucket& b) { b.view = b.view == View::kDense ? View::kExpert : View::kDense; });
      if (!bucket.reduce_group.empty()) {
        add("reduce_over_nobody", {"V7"}, [](Bucket& b) { b.reduce_group.clear(); });
        for (const Group& group : plan_.groups) {
          const Group* now = plan_.FindGroup(bucket.reduce_group);
          if (group.used() && MembersOf(plan_, group) != MembersOf(plan_, *now)) {
            add("reduce_over_others", {"V7"}, [name = group.name](Bucket& b) { b.reduce_group = name; });
          }
        }
      }
      if (!bucket.tp_group.empty()) add("partial_sum_left", {"V7"}, [](Bucket& b) { b.tp_group.clear(); });
      if (module.grid.tp > 1 && bucket.view == View::kDense) {
        for (TpGradient kind : {TpGradient::kSharded, TpGradient::kReplicated, TpGradient::kPartial}) {
          if (kind != bucket.tp) add("count_otherwise_over_tp", {"V6", "V7"}, [kind](Bucket& b) { b.tp = kind; });
        }
      }
    }
    // The first storages have each layer kind; more would be more of the same.
    for (size_t i = 0; i < module.storages.size() && i < 60; ++i) {
      const Storage& storage = module.storages[i];
      const auto add = [&](const char* kind, std::vector<string> rules, std::function<void(Module&, Storage&)> change) {
        Add(kind, absl::StrCat(storage.frame, ".", storage.slot), std::move(rules),
            [m, i, change](Plan& p) { change(p.modules[m], p.modules[m].storages[i]); });
      };
      add("resize_storage", {"V7"}, [](Module&, Storage& s) { ++s.shape[0]; });
      add("forget_parameter", {"V7"}, [](Module&, Storage& s) { s.parameters.clear(); });
      const bool stage_is_there = storage.bucket < 0 && storage.stage + 1 < module.grid.pp;
      add("storage_of_another_stage", {stage_is_there ? "V5" : "V7"}, [](Module&, Storage& s) { ++s.stage; });
      if (storage.bucket >= 0) {
        add("skip_bucket", {"V7"}, [](Module&, Storage& s) { s.bucket = -1; });
        add("overlap_in_bucket", {"V7"}, [](Module& all, Storage& s) {
          for (const Storage& other : all.storages) {
            if (&other != &s && other.bucket == s.bucket) s.offset = other.offset;
          }
          if (s.offset == 0) s.offset = -1;
        });
        add("beyond_its_bucket", {"V7"},
            [](Module& all, Storage& s) { s.offset = all.buckets[static_cast<size_t>(s.bucket)].elements; });
      } else {
        add("step_what_is_frozen", {"V7"}, [](Module&, Storage& s) { s.bucket = 0; });
      }
      add("hold_twice", {"V7"}, [](Module& all, Storage& s) { all.storages.push_back(Storage(s)); });
      Add("another_cut", module.parameters[static_cast<size_t>(storage.parameters[0])].name, {"V4", "V6", "V7"},
          [m, i](Plan& p) {
            Parameter& parameter = p.modules[m].parameters[static_cast<size_t>(p.modules[m].storages[i].parameters[0])];
            parameter.shape[0] *= 3;
          });
      Add("freeze_one", module.parameters[static_cast<size_t>(storage.parameters[0])].name, {"V5", "V7"},
          [m, i](Plan& p) {
            Module& all = p.modules[m];
            for (int index : all.storages[i].parameters) {
              all.parameters[static_cast<size_t>(index)].trained = !all.parameters[static_cast<size_t>(index)].trained;
            }
          });
    }
  }

  void DamageSymbols() {
    origins_.clear();
    for (size_t i = 0; i < plan_.symbols.size(); ++i) {
      Add("size_of_no_bound", plan_.symbols[i].name, {"V4"}, [i](Plan& p) { p.symbols[i].maximum = 0; });
      Add("size_undeclared", plan_.symbols[i].name, {"V4"},
          [i](Plan& p) { p.symbols.erase(p.symbols.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
  }

  void DamageBudget() {
    origins_ = {"budget"};
    const auto add = [&](const char* kind, std::function<void(Budget&)> change) {
      Add(kind, "budget", {"V8"}, [change](Plan& p) { change(p.budget); });
    };
    add("step_too_many", [](Budget& b) { ++b.steps; });
    add("step_too_few", [](Budget& b) { --b.steps; });
    add("microbatch_too_many", [](Budget& b) { ++b.microbatches; });
    add("sample_too_many", [](Budget& b) { ++b.global_samples; });
    add("lane_too_long", [](Budget& b) { ++b.micro_samples; });
    add("no_samples", [](Budget& b) { b.train_samples = 0; });
    add("past_the_budget", [](Budget& b) { ++b.samples_past_budget; });
    add("budget_moved", [](Budget& b) { b.train_samples += b.global_samples; });
    add("unknown_style", [](Budget& b) { b.learning_rate.style = "sideways"; });
    add("unknown_decay_style", [](Budget& b) { b.weight_decay.style = "sideways"; });
    add("ramp_ends_early", [](Budget& b) { b.weight_decay.samples /= 2; });
    add("no_segments", [](Budget& b) { b.segments.clear(); });
    for (size_t i = 0; i < plan_.budget.segments.size(); ++i) {
      add("segment_starts_late", [i](Budget& b) { ++b.segments[i].first_sample; });
      add("segment_ends_early", [i](Budget& b) { --b.segments[i].end_sample; });
      add("segment_dropped", [i](Budget& b) { b.segments.erase(b.segments.begin() + static_cast<std::ptrdiff_t>(i)); });
      add("segment_of_another_kind",
          [i](Budget& b) { b.segments[i].kind = b.segments[i].kind == "warmup" ? "end" : "warmup"; });
    }
  }

  void DamageSchedule() {
    for (size_t i = 0; i < plan_.schedule.size(); ++i) {
      const StageSchedule& stage = plan_.schedule[i];
      const string where = absl::StrCat(stage.module, " stage ", stage.stage);
      origins_ = {absl::StrCat("module ", stage.module)};
      const auto add = [&](const char* kind, std::function<void(StageSchedule&)> change) {
        Add(kind, where, {"V8"}, [i, change](Plan& p) { change(p.schedule[i]); });
      };
      add("warm_up_longer", [](StageSchedule& s) { ++s.warmup; });
      add("action_left_out", [](StageSchedule& s) { s.order.pop_back(); });
      add("action_twice", [](StageSchedule& s) { s.order.push_back(s.order.back()); });
      add("schedule_of_another_stage", [](StageSchedule& s) { s.stage += 7; });
      for (size_t k = 0; k + 1 < stage.order.size(); ++k)
        add("actions_swapped", [k](StageSchedule& s) { std::swap(s.order[k], s.order[k + 1]); });
      Add("stage_unscheduled", where, {"V8"},
          [i](Plan& p) { p.schedule.erase(p.schedule.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
  }

  const Plan& plan_;
  std::vector<Mutant>& mutants_;
  std::vector<string> origins_;  // of the mutants that are added now
};

}  // namespace

std::vector<Mutant> StructureMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  StructureDamage(plan, mutants).Make();
  return mutants;
}

}  // namespace planwright::testing
