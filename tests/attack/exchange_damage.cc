// Damages that keep every name and type in its place: a field of two alike instructions changes hands, or two values of
// one type do.
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/plan/value_type.h"
#include "tests/attack/damages.h"
#include "tests/attack/lists.h"

namespace planwright::attack {
namespace {

constexpr const char* kFields[] = {"microbatch", "frame", "inputs",    "outputs",    "group", "stream", "attributes",
                                   "frees",      "block", "gradients", "parameters", "parts", "kind",   "one input"};

bool SwapField(const std::string& field, Instruction& a, Instruction& b) {
  const auto swapped = [](auto& x, auto& y) {
    std::swap(x, y);
    return true;
  };
  if (field == "microbatch") return a.microbatch != b.microbatch && swapped(a.microbatch, b.microbatch);
  if (field == "frame") return a.frame != b.frame && swapped(a.frame, b.frame);
  if (field == "inputs") return a.inputs != b.inputs && swapped(a.inputs, b.inputs);
  if (field == "outputs") return !a.outputs.empty() && !b.outputs.empty() && swapped(a.outputs, b.outputs);
  if (field == "group") return a.group != b.group && swapped(a.group, b.group);
  if (field == "stream") return a.stream != b.stream && swapped(a.stream, b.stream);
  if (field == "attributes") return a.attributes != b.attributes && swapped(a.attributes, b.attributes);
  if (field == "frees") return a.frees != b.frees && swapped(a.frees, b.frees);
  if (field == "block") return a.block != b.block && swapped(a.block, b.block);
  if (field == "gradients") return a.gradients != b.gradients && swapped(a.gradients, b.gradients);
  if (field == "parameters") return a.parameters != b.parameters && swapped(a.parameters, b.parameters);
  if (field == "parts") return !a.parts.empty() && !b.parts.empty() && swapped(a.parts, b.parts);
  if (field == "kind") return a.kind != b.kind && swapped(a.kind, b.kind);
  return !a.inputs.empty() && !b.inputs.empty() && a.inputs[0] != b.inputs[0] && swapped(a.inputs[0], b.inputs[0]);
}

void Rename(Instruction& x, const std::string& a, const std::string& b, bool makes) {
  const auto change = [&](std::string& name) { name = name == a ? b : name == b ? a : name; };
  for (std::string& name : x.inputs) change(name);
  for (std::string& name : x.frees) change(name);
  for (ExchangePart& part : x.parts) {
    if (makes || part.send) change(part.value);
    change(part.sizes);
  }
  if (makes)
    for (Output& output : x.outputs) change(output.name);
}

std::optional<Damage> ExchangeValues(const ProgramList& at, bool everywhere, const std::vector<ProgramList>& lists,
                                     Random& random) {
  std::vector<const Output*> made;
  for (const Instruction& x : *at.list)
    for (const Output& output : x.outputs) made.push_back(&output);
  if (made.size() < 2) return std::nullopt;
  const Output& a = *random.Pick(made);
  std::vector<const Output*> alike;
  for (const Output* other : made)
    if (other->name != a.name && TypeText(other->type) == TypeText(a.type)) alike.push_back(other);
  if (alike.empty()) return std::nullopt;
  const std::string x = a.name, y = random.Pick(alike)->name;
  const size_t from = random.Below(at.list->size()), end = random.Chance(50) ? at.list->size() : from + 1;
  const bool makes = random.Chance(30);
  for (const ProgramList& each : lists) {
    if (each.list != at.list && !(everywhere && each.name == at.name)) continue;
    for (size_t i = from; i < std::min(end, each.list->size()); ++i) Rename((*each.list)[i], x, y, makes);
  }
  return Damage{absl::StrCat("exchange two values in ", at.name),
                absl::StrCat(at.where, "[", from, "..", end, "): ", x, " <-> ", y, makes ? ", outputs too" : "",
                             everywhere ? ", in all such lists" : "")};
}

}  // namespace

std::optional<Damage> ExchangeFields(Plan& plan, Random& random) {
  const std::vector<ProgramList> lists = ListsOf(plan);
  const bool everywhere = random.Chance(50);
  const ProgramList& at = random.Pick(lists);
  if (at.list->size() < 2) return std::nullopt;
  if (random.Chance(35)) return ExchangeValues(at, everywhere, lists, random);

  const Program first = *at.list;
  const std::string field = kFields[random.Below(std::size(kFields))];
  // Instructions of one kind, for calls of one block or one of each direction.
  const size_t i = random.Below(first.size());
  std::vector<size_t> others;
  for (size_t j = 0; j < first.size(); ++j)
    if (j != i && (first[j].kind == first[i].kind || field == "kind" || field == "stream" || field == "frees"))
      others.push_back(j);
  if (others.empty()) return std::nullopt;
  const size_t j = random.Pick(others);
  bool changed = false;
  for (const ProgramList& each : lists) {
    if (each.list != at.list && !(everywhere && each.name == at.name)) continue;
    const auto a = LikeOf(first, i, *each.list), b = LikeOf(first, j, *each.list);
    if (a && b) changed |= SwapField(field, (*each.list)[*a], (*each.list)[*b]);
  }
  if (!changed) return std::nullopt;
  return Damage{absl::StrCat("exchange ", field, " in ", at.name),
                absl::StrCat(at.where, ": ", field, " of [", i, "] ", Words(first[i]), " and [", j, "] ",
                             Words(first[j]), everywhere ? ", in all such lists" : "")};
}

}  // namespace planwright::attack
