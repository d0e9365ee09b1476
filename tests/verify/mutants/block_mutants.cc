#include <algorithm>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

using std::string;

// Damages one block of the plan. Mutants find the block and its instructions again by their index.
class BlockDamage {
 public:
  BlockDamage(const Plan& plan, size_t block, std::vector<Mutant>& mutants)
      : plan_(plan), block_(block), origins_({absl::StrCat("module ", plan.blocks[block].module)}), mutants_(mutants) {}

  void Make() {
    for (size_t i = 0; i < Body().size(); ++i) {
      const Instruction& op = Body()[i];
      if (op.kind == OpKind::kCall) {
        DamageCall(i);
      } else if (!op.inputs.empty() && IsStateName(op.inputs.front())) {
        continue;  // the collective of a bucket inside a stage: in program_mutants.cc
      } else {
        DamageOperands(i);
        DamageTypes(i);
        SumOverLanes(i);
        if (OpClassOf(op.kind) == OpClass::kCommunication) DamageCommunication(i);
        DamageAttributes(i);
      }
      DamageFrees(i);
    }
    DamageInterface();
  }

 private:
  const Block& Here() const { return plan_.blocks[block_]; }
  const std::vector<Instruction>& Body() const { return Here().body; }

  void Add(const char* kind, size_t i, const string& what, std::vector<string> rules,
           std::function<void(Instruction&)> change) {
    const size_t block = block_;
    mutants_.push_back({kind, absl::StrCat(Here().name, " ", i, " ", string(OpName(Body()[i].kind)), " ", what),
                        std::move(rules), origins_, [block, i, change](Plan& p) { change(p.blocks[block].body[i]); }});
  }
  void AddToBlock(const char* kind, const string& what, std::vector<string> rules, std::function<void(Block&)> change) {
    const size_t block = block_;
    mutants_.push_back({kind, absl::StrCat(Here().name, " ", what), std::move(rules), origins_,
                        [block, change](Plan& p) { change(p.blocks[block]); }});
  }

  const Module& ModuleHere() const { return *plan_.FindModule(Here().module); }

  void DamageOperands(size_t i) {
    const Instruction& op = Body()[i];
    for (size_t k = 0; k < op.inputs.size(); ++k) {
      Add("undefined_input", i, op.inputs[k], {"V4"}, [k](Instruction& x) { x.inputs[k] = "nothing"; });
    }
    // Terms of a sum: another order gives other last bits.
    const bool terms = op.kind == OpKind::kAdd || op.kind == OpKind::kAddResidualBias;
    for (size_t k = 0; k + 1 < op.inputs.size(); ++k) {
      if (op.inputs[k] == op.inputs[k + 1]) continue;
      Add("swap_inputs", i, absl::StrCat(k), terms ? std::vector<string>{"V5", "V11"} : std::vector<string>{"V4", "V5"},
          [k](Instruction& x) { std::swap(x.inputs[k], x.inputs[k + 1]); });
    }
    if (op.kind == OpKind::kAdd) {
      Add("drop_term", i, op.inputs.back(), {"V4", "V5"}, [](Instruction& x) { x.inputs.pop_back(); });
      // The forward of a step has a gradient, which would be doubled too. That of an evaluation has the statement
      // alone.
      const string rule = Here().name.ends_with(".evaluate") ? "V11" : "V5";
      Add("double_term", i, op.inputs.front(), {rule}, [](Instruction& x) { x.inputs.push_back(x.inputs.front()); });
    }
    for (size_t k = 0; k + 1 < op.parameters.size(); ++k) {
      Add("swap_parameters", i, op.parameters[k], {"V4", "V5"},
          [k](Instruction& x) { std::swap(x.parameters[k], x.parameters[k + 1]); });
    }
    for (size_t k = 0; k < op.parameters.size(); ++k) {
      const string other = SlotOfEqualShape(op.parameters[k]);
      if (!other.empty())
        Add("another_parameter", i, other, {"V4", "V5"}, [k, other](Instruction& x) { x.parameters[k] = other; });
    }
    if (!op.parameters.empty())
      Add("unknown_parameter", i, op.parameters[0], {"V4"}, [](Instruction& x) { x.parameters[0] = "nothing"; });
    if (!op.gradients.empty()) DamageGradients(i);
    if (op.outputs.empty()) DamageEffect(i);
    DamageOperandCounts(i);
  }

  // One operand or output too few or too many. The last one is dropped or repeated, since only last operands can be
  // optional.
  void DamageOperandCounts(size_t i) {
    const Instruction& op = Body()[i];
    if (op.inputs.empty()) return;
    if (op.kind != OpKind::kAdd) {
      Add("drop_input", i, op.inputs.back(), {"V4", "V5"}, [](Instruction& x) { x.inputs.pop_back(); });
      Add("repeat_input", i, op.inputs.back(), {"V4", "V5"},
          [](Instruction& x) { x.inputs.push_back(x.inputs.back()); });
    }
    const Output more = {"more", {.dtype = DType::kInt64, .dims = {int64_t{1}}}};
    Add("make_one_more", i, "", {"V4", "V5"}, [more](Instruction& x) {
      x.outputs.push_back(more);
      x.frees.push_back(more.name);
    });
  }

  // Another slot of the same frame and shape, in a frame that the block runs for; "" if there is none.
  string SlotOfEqualShape(const string& slot) const {
    const auto& storages = ModuleHere().storages;
    for (const Storage& storage : storages) {
      if (storage.slot != slot || !RunsFor(storage.frame)) continue;
      for (const Storage& other : storages) {
        if (other.frame == storage.frame && other.slot != slot && other.shape == storage.shape) return other.slot;
      }
      return "";
    }
    return "";
  }

  bool RunsFor(const string& frame) const {
    const auto calls = [&](const Instruction& op) {
      return op.kind == OpKind::kCall && op.block == Here().name && op.frame == frame;
    };
    const auto any = [&](const std::vector<Instruction>& body) { return std::any_of(body.begin(), body.end(), calls); };
    return std::any_of(plan_.blocks.begin(), plan_.blocks.end(), [&](const Block& block) { return any(block.body); }) ||
           std::any_of(plan_.roles.begin(), plan_.roles.end(), [&](const Role& role) { return any(role.step); });
  }

  void DamageGradients(size_t i) {
    Add("skip_gradient", i, Body()[i].gradients.back(), {"V4", "V5"}, [](Instruction& x) { x.gradients.pop_back(); });
    Add("gradient_twice", i, Body()[i].gradients.back(), {"V4", "V5"},
        [](Instruction& x) { x.gradients.push_back(x.gradients.back()); });
    Add("unknown_gradient", i, Body()[i].gradients[0], {"V4"}, [](Instruction& x) { x.gradients[0] = "nothing"; });
  }

  // An instruction without outputs only has an effect. It is dropped, and the instruction before it frees its values;
  // or it is repeated.
  void DamageEffect(size_t i) {
    if (i > 0) {
      AddToBlock("drop_instruction", absl::StrCat(i, " ", string(OpName(Body()[i].kind))), {"V4", "V5"}, [i](Block& b) {
        auto& frees = b.body[i - 1].frees;
        frees.insert(frees.end(), b.body[i].frees.begin(), b.body[i].frees.end());
        b.body.erase(b.body.begin() + static_cast<std::ptrdiff_t>(i));
      });
    }
    AddToBlock("repeat_instruction", absl::StrCat(i, " ", string(OpName(Body()[i].kind))), {"V5"}, [i](Block& b) {
      Instruction again = b.body[i];
      again.frees.clear();
      b.body.insert(b.body.begin() + static_cast<std::ptrdiff_t>(i), std::move(again));
    });
  }

  void DamageTypes(size_t i) {
    const Instruction& op = Body()[i];
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      const ValueType& type = op.outputs[k].type;
      const string& name = op.outputs[k].name;
      Add("change_dtype", i, name, {"V4", "V5"}, [k](Instruction& x) {
        DType& dtype = x.outputs[k].type.dtype;
        dtype = dtype == DType::kInt64 ? DType::kFp32 : DType::kInt64;
      });
      for (size_t d = 0; d < type.dims.size(); ++d) {
        if (!std::holds_alternative<int64_t>(type.dims[d])) continue;
        Add("change_dim", i, absl::StrCat(name, " ", d), {"V4", "V5"},
            [k, d](Instruction& x) { ++std::get<int64_t>(x.outputs[k].type.dims[d]); });
      }
      // Only tp, cp and expert_tp cut values inside blocks.
      for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp}) {
        if (ModuleHere().grid.size(axis) > 1) DamageLayout(i, k, axis);
      }
      for (Axis axis : AxesWithoutLayout()) {
        Add("layout_over_no_cut", i, absl::StrCat(name, " ", string(AxisName(axis))), {"V4"},
            [k, axis](Instruction& x) {
              x.outputs[k].type.layout[axis] = {AxisLayout::State::kPartial, 0};
            });
        if (!type.gradient) continue;
        Add("gradient_layout_over_no_cut", i, absl::StrCat(name, " ", string(AxisName(axis))), {"V4"},
            [k, axis](Instruction& x) {
              (*x.outputs[k].type.gradient)[axis] = {AxisLayout::State::kPartial, 0};
            });
      }
      const string backward = Here().name.substr(0, Here().name.rfind('.')) + ".backward";
      if (Here().name.ends_with(".forward") && plan_.FindBlock(backward) && type.gradient && HasReader(name)) {
        Add("value_without_gradient", i, name, {"V4", "V5"},
            [k](Instruction& x) { x.outputs[k].type.gradient.reset(); });
      }
      if (Here().name.ends_with(".forward") && !type.gradient && op.kind != OpKind::kCall && !IsStateName(name)) {
        Add("gradient_that_never_comes", i, name, {"V4", "V5"},
            [k](Instruction& x) { x.outputs[k].type.gradient = x.outputs[k].type.layout; });
      }
      Add("change_memory", i, name, {"V4"}, [k](Instruction& x) { x.outputs[k].type.host = !x.outputs[k].type.host; });
      for (size_t d = 0; d < type.dims.size(); ++d) ChangeDimEverywhere(name, d, type.dims[d]);
      // The output takes the name of the first input, or is made twice if there is no input.
      Add("define_twice", i, name, {"V4"}, [k, first = op.inputs.empty() ? name : op.inputs[0]](Instruction& x) {
        if (first == x.outputs[k].name) x.outputs.push_back(x.outputs[k]);
        x.outputs[k].name = first;
      });
    }
  }

  // Whether an instruction reads the value or the block returns it, so that a gradient can come back. A value that is
  // made only for the backward has neither.
  bool HasReader(const string& name) const {
    const auto reads = [&](const Instruction& op) {
      return std::find(op.inputs.begin(), op.inputs.end(), name) != op.inputs.end();
    };
    const auto& outputs = Here().outputs;
    return std::any_of(Body().begin(), Body().end(), reads) ||
           std::find(outputs.begin(), outputs.end(), name) != outputs.end();
  }

  // Axes over which no value of a block is sharded or partial: data-parallel axes, and axes of size 1.
  std::vector<Axis> AxesWithoutLayout() const {
    std::vector<Axis> axes = {Axis::kDp, Axis::kPp, Axis::kEp, Axis::kExpertDp};
    for (Axis axis : {Axis::kTp, Axis::kCp, Axis::kExpertTp}) {
      if (ModuleHere().grid.size(axis) == 1) axes.push_back(axis);
    }
    return axes;
  }

  // Changes a dim of all values of this name in the module's blocks, so that makers and readers still agree.
  void ChangeDimEverywhere(const string& name, size_t d, const Dim& dim) {
    const auto change = [&](const char* kind, const Dim& other) {
      AddToBlock(kind, absl::StrCat(name, " ", d), {"V4", "V5", "V10", "V11"}, nullptr);
      mutants_.back().inflict = [module = Here().module, name, d, other](Plan& p) {
        const auto set = [&](std::vector<Output>& values) {
          for (Output& value : values) {
            if (value.name == name && d < value.type.dims.size()) value.type.dims[d] = other;
          }
        };
        for (Block& block : p.blocks) {
          if (block.module != module) continue;
          set(block.inputs), set(block.takes);
          for (Instruction& op : block.body) set(op.outputs);
        }
      };
    };
    if (const auto* number = std::get_if<int64_t>(&dim)) {
      change("another_size_everywhere", *number + 1);
      return;
    }
    change("a_number_of_rows_everywhere", int64_t{8});
    for (const Symbol& symbol : plan_.symbols) {
      if (symbol.name != std::get<string>(dim)) return change("another_run_time_size_everywhere", symbol.name);
    }
  }

  // An output is summed over dp before it is read. Lanes have other samples, so the sum is wrong, whether the output is
  // declared partial over dp or not.
  void SumOverLanes(size_t i) {
    const Instruction& op = Body()[i];
    if (ModuleHere().grid.dp == 1 || op.outputs.empty() || op.outputs.front().type.dtype == DType::kInt64) return;
    for (const bool declared : {true, false}) {
      AddToBlock(declared ? "sum_of_lanes_that_say_partial" : "sum_of_lanes",
                 absl::StrCat(i, " ", op.outputs.front().name), {"V4", "V6"}, [i, declared](Block& b) {
                   Output& made = b.body[i].outputs.front();
                   Instruction sum{.kind = OpKind::kAllReduce,
                                   .inputs = {made.name + ".term"},
                                   .outputs = {made},
                                   .frees = {made.name + ".term"}};
                   sum.attributes["reduce"] = string("sum");
                   sum.group = b.module + ".dp_cp";
                   made.name += ".term";
                   if (declared) made.type.layout[Axis::kDp] = {AxisLayout::State::kPartial, 0};
                   std::vector<string>& frees = b.body[i].frees;
                   if (std::erase(frees, sum.outputs.front().name) > 0) sum.frees.push_back(sum.outputs.front().name);
                   b.body.insert(b.body.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(sum));
                 });
    }
  }

  void DamageLayout(size_t i, size_t k, Axis axis) {
    // Gives the output each layout over the axis that it does not have.
    using State = AxisLayout::State;
    const Output& output = Body()[i].outputs[k];
    if (output.type.dtype == DType::kInt64 &&
        (axis == Axis::kExpertTp || output.type.host || OpClassOf(Body()[i].kind) == OpClass::kCommunication)) {
      return;  // counts and orders of rows have no layout: each rank has its own
    }
    auto held = output.type.layout.find(axis);
    const State state = held == output.type.layout.end() ? State::kReplicated : held->second.state;
    const string what = absl::StrCat(output.name, " ", string(AxisName(axis)));
    const auto set = [&](const char* kind, AxisLayout layout) {
      Add(kind, i, what, {"V4", "V5", "V6"}, [k, axis, layout](Instruction& x) {
        if (layout.state == State::kReplicated) {
          x.outputs[k].type.layout.erase(axis);
        } else {
          x.outputs[k].type.layout[axis] = layout;
        }
      });
    };
    if (state != State::kReplicated) set("layout_whole", {});
    if (state != State::kPartial) set("layout_partial", {State::kPartial, 0});
    if (state == State::kSharded) {
      const int other = held->second.dim == 0 ? static_cast<int>(output.type.dims.size()) - 1 : 0;
      if (other != held->second.dim) set("layout_dim", {State::kSharded, other, held->second.zigzag});
      AxisLayout order = held->second;
      order.zigzag = !order.zigzag;
      set("layout_order", order);
    }
    if (state == State::kReplicated && !output.type.dims.empty()) set("layout_cut", {State::kSharded, 0});
  }

  void DamageCommunication(size_t i) {
    const Instruction& op = Body()[i];
    const auto& outputs = op.outputs;
    if (outputs.size() == 1 && !op.inputs.empty()) {
      // Without the communication, the readers of its output read its input.
      AddToBlock("skip_communication", absl::StrCat(i, " ", string(OpName(op.kind)), " ", op.inputs[0]),
                 {"V4", "V5", "V6"}, [i](Block& b) {
                   const string from = b.body[i].inputs[0], to = b.body[i].outputs[0].name;
                   b.body.erase(b.body.begin() + static_cast<std::ptrdiff_t>(i));
                   const auto rename = [&](std::vector<string>& names) {
                     std::replace(names.begin(), names.end(), to, from);
                   };
                   for (Instruction& x : b.body) rename(x.inputs), rename(x.frees);
                   rename(b.outputs), rename(b.saved);
                 });
    }
    Add("unknown_group", i, op.group, {"V4"}, [](Instruction& x) { x.group = "nowhere"; });
    for (const char* key : {"dim", "from_dim", "to_dim"}) {
      if (!op.attributes.contains(key)) continue;
      Add("undeclared_dim", i, key, {"V4"}, [key](Instruction& x) { x.attributes.erase(key); });
      Add("another_dim", i, key, {"V4"}, [key](Instruction& x) { ++std::get<int64_t>(x.attributes[key]); });
    }
  }

  // Each attribute gets another value (if it follows from a formula) or another type, or is dropped. And one is added
  // that the operation does not have, and each that it has elsewhere and not here.
  void DamageAttributes(size_t i) {
    const OpInfo& info = InfoOf(Body()[i].kind);
    for (const auto& [key, value] : Body()[i].attributes) {
      const AttributeSpec& spec = *info.FindAttribute(key);
      const bool stated = spec.source == AttributeSource::kStated;
      const std::vector<string> by_statement = {"V5", "V11"};
      if (spec.of_model()) {
        Add("change_setting", i, key, stated ? by_statement : std::vector<string>{"V4"}, [key = key](Instruction& x) {
          Attribute& changed = x.attributes[key];
          if (auto* number = std::get_if<int64_t>(&changed)) ++*number;
          if (auto* real = std::get_if<double>(&changed)) *real = -2 * *real - 1;
        });
      }
      Add("attribute_of_another_type", i, key, {"V4"}, [key = key](Instruction& x) {
        Attribute& changed = x.attributes[key];
        changed = std::holds_alternative<string>(changed) ? Attribute(int64_t{1}) : Attribute(string("1"));
      });
      // An optional attribute has a default (the axis of a slice: tp; zigzag: no), so its loss changes the layout.
      Add("drop_attribute", i, key,
          stated          ? by_statement
          : spec.optional ? std::vector<string>{"V3", "V4", "V6"}
                          : std::vector<string>{"V4"},
          [key = key](Instruction& x) { x.attributes.erase(key); });
    }
    for (const AttributeSpec& spec : info.attributes) {
      const bool stated = spec.source == AttributeSource::kStated, real = spec.type == AttributeType::kReal;
      if ((!spec.when && !stated) || Body()[i].attributes.contains(spec.name)) continue;
      for (const int64_t value : stated ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{0}) {
        const bool fits = value != 0;  // V4 knows what may not be, and not what the statement says
        Add("setting_that_is_not_wanted", i, spec.name,
            fits ? std::vector<string>{"V5", "V11"} : std::vector<string>{"V4"},
            [real, value, name = spec.name](Instruction& x) {
              x.attributes[name] = real ? Attribute(static_cast<double>(value)) : Attribute(value);
            });
      }
    }
    Add("unknown_attribute", i, "", {"V4"}, [](Instruction& x) { x.attributes["nobody_knows"] = int64_t{1}; });
    if (auto it = Body()[i].attributes.find("into"); it != Body()[i].attributes.end()) {
      Add("add_to_another_sum", i, "into", {"V5"},
          [](Instruction& x) { x.attributes["into"] = string("$reals.nothing"); });
    }
    if (Body()[i].kind == OpKind::kAccumulate) {
      for (const Module& module : plan_.modules) {
        Add("count_as_a_module", i, module.name, {"V4"},
            [name = module.name](Instruction& x) { x.attributes["module"] = name; });
      }
      Add("count_once_over_lanes", i, "once_over", {"V6"},
          [](Instruction& x) { x.attributes["once_over"] = string("dp"); });
      if (ModuleHere().grid.tp > 1) {
        Add("count_on_other_ranks", i, "once_over", {"V6"}, [](Instruction& x) {
          if (!x.attributes.erase("once_over")) x.attributes["once_over"] = string("tp");
        });
      }
    }
  }

  void DamageFrees(size_t i) {
    const Instruction& op = Body()[i];
    if (op.frees.empty()) return;
    Add("never_free", i, op.frees[0], {"V4"}, [](Instruction& x) { x.frees.erase(x.frees.begin()); });
    Add("free_twice", i, op.frees[0], {"V4"}, [](Instruction& x) { x.frees.push_back(x.frees[0]); });
    const bool read_here = std::find(op.inputs.begin(), op.inputs.end(), op.frees[0]) != op.inputs.end();
    if (i > 0 && read_here) {
      AddToBlock("free_early", absl::StrCat(i, " ", op.frees[0]), {"V4"}, [i](Block& b) {
        b.body[i - 1].frees.push_back(b.body[i].frees[0]);
        b.body[i].frees.erase(b.body[i].frees.begin());
      });
    }
  }

  void DamageCall(size_t i) {
    const Instruction& call = Body()[i];
    Add("unknown_block", i, call.block, {"V4"}, [](Instruction& x) { x.block = "nothing"; });
    Add("unknown_frame", i, call.frame, {"V4", "V5"}, [](Instruction& x) { x.frame = "nothing"; });
    for (size_t j = 0; j < i; ++j) {
      if (Body()[j].kind != OpKind::kCall || Body()[j].block != call.block || Body()[j].frame == call.frame) continue;
      AddToBlock("swap_layers", absl::StrCat(j, " and ", i), {"V4", "V5"},
                 [i, j](Block& b) { std::swap(b.body[i].frame, b.body[j].frame); });
    }
    if (call.inputs.size() == 1 && call.outputs.size() == 1 && i + 1 < Body().size()) {
      // Without the layer, its input goes on to the next layer.
      AddToBlock("skip_layer", absl::StrCat(i, " ", call.frame), {"V4", "V5"}, [i](Block& b) {
        const string from = b.body[i].inputs[0], to = b.body[i].outputs[0].name;
        b.body.erase(b.body.begin() + static_cast<std::ptrdiff_t>(i));
        for (Instruction& x : b.body) {
          std::replace(x.inputs.begin(), x.inputs.end(), to, from),
              std::replace(x.frees.begin(), x.frees.end(), to, from);
        }
        std::replace(b.outputs.begin(), b.outputs.end(), to, from);
      });
    }
  }

  void DamageInterface() {
    if (!Here().saved.empty())
      AddToBlock("forget_saved", Here().saved[0], {"V4"}, [](Block& b) { b.saved.erase(b.saved.begin()); });
    for (auto list : {&Block::saved, &Block::outputs}) {
      for (size_t k = 0; k < (Here().*list).size(); ++k) {
        AddToBlock("hand_on_twice", (Here().*list)[k], {"V4"},
                   [k, list](Block& b) { (b.*list).push_back(string((b.*list)[k])); });
      }
    }
    for (auto list : {&Block::inputs, &Block::takes}) {
      for (size_t k = 0; k < (Here().*list).size(); ++k) {
        const string& name = (Here().*list)[k].name;
        AddToBlock("name_twice", name, {"V4"}, [k, list](Block& b) { (b.*list).push_back(Output((b.*list)[k])); });
        AddToBlock("argument_in_other_memory", name, {"V4", "V5"},
                   [k, list](Block& b) { (b.*list)[k].type.host = !(b.*list)[k].type.host; });
        for (Axis axis : AxesWithoutLayout()) {
          AddToBlock("argument_over_no_cut", absl::StrCat(name, " ", string(AxisName(axis))), {"V4"},
                     [k, list, axis](Block& b) {
                       (b.*list)[k].type.layout[axis] = {AxisLayout::State::kSharded, 0};
                     });
        }
        if (!(Here().*list)[k].type.gradient) continue;
        AddToBlock("argument_without_gradient", name, {"V4", "V5"},
                   [k, list](Block& b) { (b.*list)[k].type.gradient.reset(); });
      }
    }
    InsertForbiddenInstructions();
    if (!Here().takes.empty())
      AddToBlock("forget_take", Here().takes[0].name, {"V4"}, [](Block& b) { b.takes.erase(b.takes.begin()); });
    for (size_t k = 0; k < Here().takes.size(); ++k) {
      AddToBlock("take_another_type", Here().takes[k].name, {"V4", "V5"}, [k](Block& b) {
        DType& dtype = b.takes[k].type.dtype;
        dtype = dtype == DType::kInt64 ? DType::kFp32 : DType::kInt64;
      });
    }
    if (!Here().outputs.empty())
      AddToBlock("forget_output", Here().outputs[0], {"V4", "V5"},
                 [](Block& b) { b.outputs.erase(b.outputs.begin()); });
    AddToBlock("another_module", Here().module, {"V4"}, [](Block& b) { b.module = "nobody"; });
  }

  // Instructions that change the state of a step. Only programs may have them, never blocks.
  void InsertForbiddenInstructions() {
    if (Body().empty()) return;
    const auto insert = [&](OpKind kind, bool of_module, bool of_bucket) {
      AddToBlock("stranger_in_a_block", string(OpName(kind)), {"V4"}, [kind, of_module, of_bucket](Block& b) {
        Instruction op{.kind = kind};
        if (of_module) op.attributes["module"] = b.module;
        if (of_bucket) op.attributes["bucket"] = int64_t{0};
        b.body.insert(b.body.begin(), std::move(op));
      });
    };
    for (const OpInfo& info : AllOps()) {
      if (info.op_class != OpClass::kState || info.values.inputs != std::vector<size_t>{0}) continue;
      insert(info.kind, info.FindAttribute("module") != nullptr, info.FindAttribute("bucket") != nullptr);
    }
  }

  const Plan& plan_;
  const size_t block_;
  const std::vector<string> origins_;
  std::vector<Mutant>& mutants_;
};

}  // namespace

std::vector<Mutant> BlockMutants(const Plan& plan) {
  std::vector<Mutant> mutants;
  for (size_t block = 0; block < plan.blocks.size(); ++block) BlockDamage(plan, block, mutants).Make();
  return mutants;
}

}  // namespace planwright::testing
