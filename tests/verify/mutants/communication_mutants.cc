#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/verify/mutants/mutants.h"

namespace planwright::testing {
namespace {

using std::string;
using std::vector;
using Body = vector<Instruction>;  // of a block, or a list of a role

bool Communicates(const Instruction& op) { return OpClassOf(op.kind) == OpClass::kCommunication; }

// Which list of instructions is damaged: a list of a role, the body of a block for all its callers, or the body of a
// block for one call alone.
struct Site {
  int role = -1;  // -1: the body of `block`, for all its callers
  Body Role::*list = nullptr;
  vector<size_t> calls;  // indices of the calls that lead from the role's list to the damaged block, outermost first
  size_t block = 0;      // index in Plan::blocks, if there is no role

  // The list in `plan`. Each block on the way gets a copy under another name, so that other callers see no damage.
  Body& In(Plan& plan) const {
    if (role < 0) return plan.blocks[block].body;
    Body* body = &(plan.roles[static_cast<size_t>(role)].*list);
    for (size_t index : calls) {
      Instruction& call = (*body)[index];
      Block copy = *plan.FindBlock(call.block);
      copy.name = absl::StrCat(call.block, ".for_", role, ".", index);
      call.block = copy.name;  // `call` may dangle after the push_back below
      plan.blocks.push_back(std::move(copy));
      body = &plan.blocks.back().body;
    }
    return *body;
  }
};

class CommunicationDamage {
 public:
  CommunicationDamage(const Plan& plan, vector<Mutant>& mutants) : plan_(plan), mutants_(mutants) {}

  void Make() {
    for (size_t i = 0; i < plan_.blocks.size(); ++i) {
      const Block& block = plan_.blocks[i];
      site_ = {.block = i};
      where_ = block.name;
      origins_ = {absl::StrCat("module ", block.module)};
      DamageList(block.body);
    }
    for (size_t role = 0; role < plan_.roles.size(); ++role) {
      for (const auto& [name, list] : kRoleLists) {
        site_ = {.role = static_cast<int>(role), .list = list};
        where_ = plan_.roles[role].name;
        origins_ = OriginsOf(plan_, plan_.roles[role]);
        seen_.clear();
        DamageListAndCallees(plan_.roles[role].*list);
      }
    }
  }

 private:
  // The list itself, and the blocks that it calls, each block once.
  void DamageListAndCallees(const Body& body) {
    DamageList(body);
    for (size_t i = 0; i < body.size(); ++i) {
      const Block* block = body[i].kind == OpKind::kCall ? plan_.FindBlock(body[i].block) : nullptr;
      if (!block || !seen_.insert(block->name).second) continue;
      site_.calls.push_back(i);
      const string outside = where_;
      absl::StrAppend(&where_, " > ", block->name);
      DamageListAndCallees(block->body);
      where_ = outside;
      site_.calls.pop_back();
    }
  }

  void DamageList(const Body& body) {
    for (size_t i = 0; i < body.size(); ++i) {
      body_ = &body;
      if (Communicates(body[i])) {
        DamagePresence(i);
        DamageContents(i);
        for (size_t k = 0; k < body[i].parts.size(); ++k) DamagePart(i, k);
        Add("another_stream", i, "", {"V3"}, [](Instruction& x) { x.stream += "other"; });
      }
    }
  }

  using Rules = vector<string>;

  void AddToList(const char* kind, size_t i, const string& what, Rules rules, std::function<void(Body&)> change) {
    mutants_.push_back(
        {kind, absl::StrCat(where_, " ", i, " ", string(OpName((*body_)[i].kind)), what.empty() ? "" : " ", what),
         std::move(rules), origins_,
         [site = site_, change = std::move(change)](Plan& plan) { change(site.In(plan)); }});
  }
  void Add(const char* kind, size_t i, const string& what, Rules rules, std::function<void(Instruction&)> change) {
    AddToList(kind, i, what, std::move(rules), [i, change = std::move(change)](Body& body) { change(body[i]); });
  }

  // The rules that may refuse a missing or changed communication: if it carries values, the rules of their readers; if
  // it moves state, the rule of that state.
  Rules RulesOf(const Instruction& op) const {
    if (op.kind == OpKind::kExchange) return {"V3", "V4", "V5"};
    if (op.kind == OpKind::kBroadcast) return {"V4", "V5"};
    if (op.inputs.empty() || !IsStateName(op.inputs.front())) return {"V4", "V6"};
    return RulesOfStateCollective(op);
  }

  static void Erase(Body& body, size_t i) {
    if (i > 0) body[i - 1].frees.insert(body[i - 1].frees.end(), body[i].frees.begin(), body[i].frees.end());
    body.erase(body.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // The communication is missing, done twice, out of order, over another group or of another kind.
  void DamagePresence(size_t i) {
    const Instruction& op = (*body_)[i];
    AddToList("drop_communication", i, "", RulesOf(op), [i](Body& body) { Erase(body, i); });
    AddToList("repeat_communication", i, "", RulesOf(op), [i](Body& body) {
      Instruction copy = body[i];
      copy.frees.clear();
      body.insert(body.begin() + static_cast<std::ptrdiff_t>(i), std::move(copy));
    });
    for (size_t other = i + 1; other < body_->size(); ++other) {
      if (!Communicates((*body_)[other]) && (*body_)[other].kind != OpKind::kCall) continue;
      AddToList("swap_neighbours", i, absl::StrCat("with ", other), {},
                [i, other](Body& body) { std::swap(body[i], body[other]); });
      break;
    }
    if (op.kind == OpKind::kExchange) {
      Add("receive_one_more", i, "", {"V4"}, [](Instruction& x) {
        x.outputs.push_back({"more", {.dtype = DType::kInt64, .dims = {int64_t{1}}}});
        x.frees.push_back("more");
      });
      return;
    }
    for (const Group& group : plan_.groups) {
      const Group* now = plan_.FindGroup(op.group);
      if (!group.used() || !now || MembersOf(plan_, group) == MembersOf(plan_, *now)) continue;
      Rules rules = RulesOf(op);
      rules.push_back("V3");
      Add("retarget_group", i, absl::StrCat("to ", group.name), std::move(rules),
          [name = group.name](Instruction& x) { x.group = name; });
      if (group.module != now->module)
        mutants_.back().origins.clear();  // the violation may point at what it meets there
    }
    if (op.kind != OpKind::kBroadcast) {
      Add("change_kind", i, "", RulesOf(op), [](Instruction& x) {
        const bool reduces = x.kind == OpKind::kAllReduce;
        x.kind = reduces ? OpKind::kReduceScatter : OpKind::kAllReduce;
        x.attributes = reduces ? Attributes{{"dim", int64_t{0}}} : Attributes{{"reduce", string("sum")}};
      });
    }
  }

  // Types and settings that the members must agree on.
  void DamageContents(size_t i) {
    const Instruction& op = (*body_)[i];
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      const ValueType& type = op.outputs[k].type;
      Add("change_dtype", i, op.outputs[k].name, RulesOf(op), [k](Instruction& x) {
        DType& dtype = x.outputs[k].type.dtype;
        dtype = dtype == DType::kBf16 ? DType::kInt64 : DType::kBf16;
      });
      for (size_t d = 0; d < type.dims.size(); ++d) {
        Add("change_dim", i, absl::StrCat(op.outputs[k].name, " ", d), RulesOf(op),
            [k, d](Instruction& x) { x.outputs[k].type.dims[d] = int64_t{77}; });
      }
    }
    for (const auto& [key, value] : op.attributes) {
      if (std::holds_alternative<string>(value)) {
        Add("change_setting", i, key, RulesOf(op),
            [key = key](Instruction& x) { x.attributes[key] = string("otherwise"); });
      } else if (const auto* number = std::get_if<int64_t>(&value)) {
        Rules rules = RulesOf(op);
        if (op.kind == OpKind::kBroadcast) rules = {"V3", "V5"};
        const int64_t other = key == "zigzag" ? 1 - *number : *number + 100;
        Add("change_setting", i, key, std::move(rules),
            [key = key, other](Instruction& x) { x.attributes[key] = other; });
      }
    }
  }

  void DamagePart(size_t i, size_t k) {
    const ExchangePart& part = (*body_)[i].parts[k];
    const string what = absl::StrCat("part ", k);
    const Rules rules = {"V3", "V4", "V5"};
    const auto change = [&](const char* kind, std::function<void(ExchangePart&)> damage) {
      Add(kind, i, what, rules, [k, damage](Instruction& x) { damage(x.parts[k]); });
    };
    if (part.shift != 0) {
      change("other_stage", [](ExchangePart& p) { p.shift = -p.shift; });
      change("stage_further_on", [](ExchangePart& p) { p.shift *= 2; });
    }
    change("turn_part", [](ExchangePart& p) { p.send = !p.send; });
    change("other_direction", [](ExchangePart& p) { p.backward = !p.backward; });
    change("part_over_nothing", [](ExchangePart& p) { (p.shift == 0 ? p.bridge : p.group) = "nowhere"; });
    Add("drop_part", i, what, rules,
        [k](Instruction& x) { x.parts.erase(x.parts.begin() + static_cast<std::ptrdiff_t>(k)); });
    Add("repeat_part", i, what, rules, [k](Instruction& x) { x.parts.push_back(ExchangePart(x.parts[k])); });
    if (k > 0) Add("swap_parts", i, what, {}, [k](Instruction& x) { std::swap(x.parts[0], x.parts[k]); });
  }

  const Plan& plan_;
  vector<Mutant>& mutants_;
  Site site_;
  const Body* body_ = nullptr;
  string where_;
  vector<string> origins_;
  std::set<string> seen_;  // blocks of the current list that are damaged already
};

}  // namespace

vector<Mutant> CommunicationMutants(const Plan& plan) {
  vector<Mutant> mutants;
  CommunicationDamage(plan, mutants).Make();
  return mutants;
}

}  // namespace planwright::testing
