#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

using std::string;

class CheckpointDamage {
 public:
  CheckpointDamage(const Plan& plan, std::vector<Mutant>& mutants) : plan_(plan), mutants_(mutants) {}

  void Make() {
    DamageKeys();
    for (size_t i = 0; i < plan_.checkpoint.rules.size(); ++i) DamageWriters(i), DamageStates(i);
    DamageSources();
    DamageSymbols();
  }

 private:
  void Add(const char* kind, const string& where, const char* rule, std::vector<string> origins,
           std::function<void(Plan&)> inflict) {
    mutants_.push_back({kind, where, {rule}, std::move(origins), std::move(inflict)});
  }

  // Two tensors with one key.
  void DamageKeys() {
    for (size_t m = 0; m < plan_.modules.size(); ++m) {
      const auto& parameters = plan_.modules[m].parameters;
      const auto add = [&](const char* kind, size_t i, std::function<void(Plan&, Parameter&)> change) {
        Add(kind, parameters[i].name, "V9", {}, [m, i, change](Plan& p) { change(p, p.modules[m].parameters[i]); });
      };
      for (size_t i = 1; i < parameters.size(); ++i) {
        add("collide_keys", i, [m, i](Plan& p, Parameter& x) { x.name = p.modules[m].parameters[i - 1].name; });
        add("collide_file_names", i,
            [m, i](Plan& p, Parameter& x) { x.file_name = p.modules[m].parameters[i - 1].file_name; });
        if (parameters[i].experts == 0)
          add("collide_with_common_key", i, [](Plan& p, Parameter& x) { x.name = p.checkpoint.common.front(); });
        if (parameters[i - 1].trained && parameters[i - 1].experts == 0 && parameters[i].experts == 0) {
          add("collide_with_state", i,
              [m, i](Plan& p, Parameter& x) { x.name = p.modules[m].parameters[i - 1].name + ".exp_avg"; });
        }
        if (parameters[i].experts > 0) add("experts_share_a_key", i, [](Plan&, Parameter& x) { x.name = "experts"; });
      }
      if (m > 0)
        add("key_of_another_module", 0, [](Plan& p, Parameter& x) { x.name = p.modules[0].parameters[0].name; });
    }
    for (size_t i = 0; i < plan_.checkpoint.common.size(); ++i) {
      const string& name = plan_.checkpoint.common[i];
      Add("common_key_twice", name, "V9", {},
          [i](Plan& p) { p.checkpoint.common.push_back(string(p.checkpoint.common[i])); });
      Add("common_key_forgotten", name, "V9", {},
          [i](Plan& p) { p.checkpoint.common.erase(p.checkpoint.common.begin() + static_cast<std::ptrdiff_t>(i)); });
    }
  }

  void AddToRule(const char* kind, size_t i, std::function<void(CheckpointRule&)> change, const string& what = "") {
    const string& module = plan_.checkpoint.rules[i].module;
    Add(kind, absl::StrCat("rule ", i, " of ", module, " ", what), "V9", {absl::StrCat("module ", module)},
        [i, change](Plan& p) { change(p.checkpoint.rules[i]); });
  }

  // A part of a tensor that no rank writes, or that several ranks write.
  void DamageWriters(size_t i) {
    const CheckpointRule& rule = plan_.checkpoint.rules[i];
    const Module& module = *plan_.FindModule(rule.module);
    const std::vector<string> origin = {absl::StrCat("module ", rule.module)};
    Add("write_nothing", absl::StrCat("rule ", i), "V9", origin,
        [i](Plan& p) { p.checkpoint.rules.erase(p.checkpoint.rules.begin() + static_cast<std::ptrdiff_t>(i)); });
    Add("write_twice", absl::StrCat("rule ", i), "V9", origin,
        [i](Plan& p) { p.checkpoint.rules.push_back(CheckpointRule(p.checkpoint.rules[i])); });
    Add("write_for_nobody", absl::StrCat("rule ", i), "V9", {},
        [i](Plan& p) { p.checkpoint.rules[i].module = "nobody"; });
    AddToRule("forget_to_write", i, [](CheckpointRule& r) { --r.parameters.back().count; });
    AddToRule("write_what_is_not_there", i, [](CheckpointRule& r) { r.parameters.back().first += 100000; });
    AddToRule("written_by_another_stage", i, [](CheckpointRule& r) { ++r.stage; });
    AddToRule("written_in_another_view", i,
              [](CheckpointRule& r) { r.view = r.view == View::kDense ? View::kExpert : View::kDense; });
    for (Axis axis : rule.cut) {
      const string name(AxisName(axis));
      AddToRule(
          "leave_a_hole", i, [axis](CheckpointRule& r) { Move(axis, r.cut, r.replicated); }, name);
      AddToRule(
          "writer_of_no_axis", i, [axis](CheckpointRule& r) { std::erase(r.cut, axis); }, name);
      AddToRule(
          "ranges_over_a_cut", i, [axis](CheckpointRule& r) { r.flat.push_back(axis); }, name);
    }
    for (Axis axis : rule.replicated) {
      const string name(AxisName(axis));
      AddToRule(
          "several_writers", i, [axis](CheckpointRule& r) { Move(axis, r.replicated, r.cut); }, name);
      AddToRule(
          "writer_of_no_axis", i, [axis](CheckpointRule& r) { std::erase(r.replicated, axis); }, name);
      AddToRule(
          "axis_twice", i, [axis](CheckpointRule& r) { r.replicated.push_back(axis); }, name);
      const bool flat = std::find(rule.flat.begin(), rule.flat.end(), axis) != rule.flat.end();
      if (module.grid.size(axis) > 1 && !rule.states.empty()) {
        AddToRule(
            flat ? "ranges_over_too_few" : "ranges_over_too_many", i,
            [axis, flat](CheckpointRule& r) {
              if (flat) {
                std::erase(r.flat, axis);
              } else {
                r.flat.push_back(axis);
              }
            },
            name);
      }
    }
  }

  static void Move(Axis axis, std::vector<Axis>& from, std::vector<Axis>& to) {
    std::erase(from, axis);
    to.push_back(axis);
  }

  // Optimizer states that a rule lacks, renames or invents.
  void DamageStates(size_t i) {
    const CheckpointRule& rule = plan_.checkpoint.rules[i];
    for (size_t k = 0; k < rule.states.size(); ++k) {
      AddToRule(
          "forget_state", i,
          [k](CheckpointRule& r) { r.states.erase(r.states.begin() + static_cast<std::ptrdiff_t>(k)); },
          rule.states[k]);
      AddToRule(
          "rename_state", i, [k](CheckpointRule& r) { r.states[k] += "_old"; }, rule.states[k]);
    }
    AddToRule("state_of_nothing", i, [](CheckpointRule& r) { r.states.push_back("momentum"); });
  }

  // Parameters that are loaded from no file, or set twice.
  void DamageSources() {
    for (size_t r = 0; r < plan_.roles.size(); ++r) {
      const Role& role = plan_.roles[r];
      for (size_t i = 0; i < role.setup.size(); ++i) {
        const OpKind kind = role.setup[i].kind;
        const string where = absl::StrCat(role.name, " ", i);
        if (kind == OpKind::kInitializeParameters && !plan_.initialize) {
          Add("load_from_no_file", where, "V7", OriginsOf(plan_, role),
              [r, i](Plan& p) { p.roles[r].setup[i].kind = OpKind::kLoadParameters; });
        }
        if (kind == OpKind::kInitializeParameters || kind == OpKind::kLoadParameters) {
          Add("two_sources", where, "V7", OriginsOf(plan_, role), [r, i](Plan& p) {
            auto& setup = p.roles[r].setup;
            setup.insert(setup.begin() + static_cast<std::ptrdiff_t>(i), Instruction(setup[i]));
          });
        }
      }
    }
    if (plan_.initialize) Add("file_forgotten", "initialize", "V7", {}, [](Plan& p) { p.initialize.reset(); });
  }

  // Run-time sizes that are too large for the device, or smaller than the rows that can come.
  void DamageSymbols() {
    for (size_t i = 0; i < plan_.symbols.size(); ++i) {
      const Symbol& symbol = plan_.symbols[i];
      const int64_t rows = symbol.expected > 0 ? symbol.expected : symbol.maximum;
      if (plan_.cluster.gpu != "none") {
        Add("rows_beyond_the_device", symbol.name, "V10", {},
            [i, rows](Plan& p) { p.symbols[i].maximum = p.symbols[i].expected = rows * 100000; });
      }
      if (rows < 2) continue;
      Add("rows_understated", symbol.name, "V10", {},
          [i, rows](Plan& p) { p.symbols[i].expected = std::max<int64_t>(1, rows / 2); });
      Add("maximum_understated", symbol.name, "V10", {}, [i, rows](Plan& p) {
        p.symbols[i].maximum = std::max<int64_t>(1, rows / 2);
        p.symbols[i].expected = 0;
      });
    }
  }

  const Plan& plan_;
  std::vector<Mutant>& mutants_;
};

}  // namespace

std::vector<Mutant> CheckpointMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  CheckpointDamage(plan, mutants).Make();
  return mutants;
}

}  // namespace planwright::testing
