// Deletes, copies, moves, swaps and inserts instructions: in one list, or in every list where the same instructions
// stand, so that roles still agree.
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/op_table.h"
#include "tests/attack/damages.h"
#include "tests/attack/lists.h"

namespace planwright::attack {
namespace {

Program::iterator At(Program& list, size_t i) { return list.begin() + static_cast<std::ptrdiff_t>(i); }

void MoveTo(Program& list, size_t from, size_t to) {
  if (from < to) {
    std::rotate(At(list, from), At(list, from + 1), At(list, to + 1));
  } else {
    std::rotate(At(list, to), At(list, from), At(list, from + 1));
  }
}

// An instruction on state, with the names of this plan in place of its attributes.
Instruction MadeUp(const Plan& plan, const Program& list, Random& random) {
  std::vector<const OpInfo*> kinds;
  for (const OpInfo& info : AllOps())
    if (info.op_class == OpClass::kState || info.op_class == OpClass::kStorage) kinds.push_back(&info);
  const OpInfo& info = *random.Pick(kinds);
  Instruction made;
  made.kind = info.kind;
  const Module& module = random.Pick(plan.modules);
  for (const AttributeSpec& spec : info.attributes) {
    if (spec.name == "module") {
      if (!spec.optional || random.Chance(50)) made.attributes["module"] = module.name;
    } else if (spec.name == "bucket") {
      made.attributes["bucket"] = static_cast<int64_t>(random.Below(module.buckets.size() + 1));
    } else if (spec.name == "into") {
      const Accumulator& sum = random.Pick(plan.accumulators);
      made.attributes["into"] = sum.parts.empty() ? sum.name : sum.name + "." + random.Pick(sum.parts);
    }
  }
  for (size_t i = 0; i < info.values.inputs.front(); ++i) {
    const bool any = !list.empty() && random.Chance(80);
    const std::vector<std::string> inputs = any ? random.Pick(list).inputs : std::vector<std::string>();
    made.inputs.push_back(inputs.empty() ? "$integers" : inputs[0]);
  }
  return made;
}

// Every edit is said by its indices in one list. `apply` does it, and false: the list has no such indices.
struct Edit {
  std::string name, words;
  std::function<bool(const Program& first, Program& list)> apply;
};

}  // namespace

std::optional<Damage> DamageInstructions(Plan& plan, Random& random) {
  std::vector<ProgramList> lists = ListsOf(plan);
  std::set<std::string> names;
  for (const ProgramList& each : lists) names.insert(each.name);
  const auto pick = [&](bool empty) -> const ProgramList* {
    const std::string name = *std::next(names.begin(), static_cast<long>(random.Below(names.size())));
    std::vector<const ProgramList*> found;
    for (const ProgramList& each : lists)
      if (each.name == name && (empty || !each.list->empty())) found.push_back(&each);
    return found.empty() ? nullptr : random.Pick(found);
  };

  const size_t how = random.Below(10);
  const ProgramList* at = pick(how >= 6);
  if (!at) return std::nullopt;
  const Program first = *at->list;  // as it was: the edits of all lists find their indices by it
  const size_t size = first.size();
  Edit edit;
  if (how < 6) {
    const size_t i = random.Below(size);
    size_t j = random.Chance(50) ? (i + 1 < size ? i + 1 : 0) : random.Below(size);
    if (i == j && how != 0 && how != 1) return std::nullopt;
    if (how == 5 && i > j) return std::nullopt;
    edit.words = absl::StrCat("[", i, "] ", Words(first[i]), ", index ", j);
    switch (how) {
      case 0:
        edit.name = "delete";
        edit.apply = [i](const Program& from, Program& list) {
          const auto a = LikeOf(from, i, list);
          if (a) list.erase(At(list, *a));
          return a.has_value();
        };
        break;
      case 1:
        edit.name = "duplicate";
        edit.apply = [i, j](const Program& from, Program& list) {
          const auto a = LikeOf(from, i, list), b = LikeOf(from, j, list);
          if (!a || !b) return false;
          const Instruction copy = list[*a];
          list.insert(At(list, *b), copy);
          return true;
        };
        break;
      case 2:
      case 3:
        edit.name = "move";
        edit.apply = [i, j](const Program& from, Program& list) {
          const auto a = LikeOf(from, i, list), b = LikeOf(from, j, list);
          if (a && b) MoveTo(list, *a, *b);
          return a && b;
        };
        break;
      case 4:
        edit.name = "swap";
        edit.apply = [i, j](const Program& from, Program& list) {
          const auto a = LikeOf(from, i, list), b = LikeOf(from, j, list);
          if (a && b) std::swap(list[*a], list[*b]);
          return a && b;
        };
        break;
      default:
        edit.name = "reverse a range";
        edit.apply = [i, j](const Program& from, Program& list) {
          const auto a = LikeOf(from, i, list), b = LikeOf(from, j, list);
          if (!a || !b || *a >= *b) return false;
          std::reverse(At(list, *a), At(list, *b + 1));
          return true;
        };
    }
  } else {
    Instruction made;
    if (how < 9) {
      const ProgramList* other = pick(false);
      if (!other) return std::nullopt;
      const size_t i = random.Below(other->list->size());
      made = (*other->list)[i];
      edit.name = absl::StrCat(how == 6 ? "move from " : "copy from ", other->name);
      if (how == 6 && other != at) {
        other->list->erase(At(*other->list, i));
        for (const ProgramList& each : lists) {  // in all roles or in one: half of the time each
          if (&each == other || each.list == at->list || each.name != other->name || random.Chance(50)) continue;
          const auto like =
              std::find_if(each.list->begin(), each.list->end(), [&](const Instruction& x) { return Alike(x, made); });
          if (like != each.list->end()) each.list->erase(like);
        }
      }
      edit.words = absl::StrCat(other->where, "[", i, "] ");
    } else {
      if (plan.modules.empty() || plan.accumulators.empty()) return std::nullopt;
      made = MadeUp(plan, first, random);
      edit.name = "made up";
    }
    const size_t j = random.Below(size + 1);
    absl::StrAppend(&edit.words, Words(made), ", before index ", j);
    edit.apply = [made, j](const Program& from, Program& list) {
      const auto b = LikeOf(from, j, list);
      if (b) list.insert(At(list, *b), made);
      return b.has_value();
    };
  }

  const bool everywhere = random.Chance(60);
  int changed = 0;
  for (const ProgramList& each : lists)
    if (each.list == at->list || (everywhere && each.name == at->name)) changed += edit.apply(first, *each.list);
  return Damage{absl::StrCat(edit.name, " in ", at->name, everywhere ? ", wherever it stands" : ""),
                absl::StrCat(at->where, ": ", edit.name, " ", edit.words,
                             everywhere ? absl::StrCat(", in ", changed, " lists") : "")};
}

}  // namespace planwright::attack
