#include "tests/schedule/block_difference.h"

#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/plan/plan_json.h"

namespace planwright::testing {
namespace {

using std::string;

string Text(const Attribute& value) {
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const double* real = std::get_if<double>(&value)) return absl::StrCat(*real, "r");
  if (const string* text = std::get_if<string>(&value)) return *text;
  return absl::StrJoin(std::get<std::vector<int64_t>>(value), "/");
}

// All of an instruction but the names of what it makes.
string Text(const Instruction& instruction) {
  string text = absl::StrCat(string(OpName(instruction.kind)), " ", absl::StrJoin(instruction.inputs, " "), " [",
                             absl::StrJoin(instruction.parameters, " "), "] += [",
                             absl::StrJoin(instruction.gradients, " "), "]");
  for (const auto& [name, value] : instruction.attributes) absl::StrAppend(&text, " ", name, "=", Text(value));
  absl::StrAppend(&text, " group:", instruction.group, " stream:", instruction.stream, " ->");
  for (const Output& output : instruction.outputs) absl::StrAppend(&text, " ", TypeText(output.type), ";");
  return text;
}

string WithNames(const Instruction& instruction) {
  string text = Text(instruction);
  for (const Output& output : instruction.outputs) absl::StrAppend(&text, " ", output.name);
  return absl::StrCat(text, " frees ", absl::StrJoin(instruction.frees, " "));
}

class Comparison {
 public:
  Comparison(const Block& one, const Block& other, ValueNames& names) : one_(one), other_(other), names_(names) {}

  string Difference() {
    if (one_.name != other_.name || one_.module != other_.module || one_.origin != other_.origin) return "the head";
    if (const string inputs = Inputs(); !inputs.empty()) return inputs;
    if (Renamed(NamesOf(one_.takes)) != NamesOf(other_.takes))
      return Lists("takes", NamesOf(one_.takes), NamesOf(other_.takes));
    for (size_t i = 0; i < one_.takes.size(); ++i) {
      if (TypeText(one_.takes[i].type) != TypeText(other_.takes[i].type))
        return absl::StrCat("takes ", OutputText(one_.takes[i]), "\n  but   ", OutputText(other_.takes[i]));
    }
    for (size_t i = 0; i < std::max(one_.body.size(), other_.body.size()); ++i) {
      if (const string body = InstructionsAt(i); !body.empty()) return body;
    }
    if (Renamed(one_.outputs) != other_.outputs) return Lists("hands out", one_.outputs, other_.outputs);
    if (Renamed(one_.saved) != other_.saved) return Lists("saves", one_.saved, other_.saved);
    return Probes();
  }

 private:
  static std::vector<string> NamesOf(const std::vector<Output>& values) {
    std::vector<string> names;
    for (const Output& value : values) names.push_back(value.name);
    return names;
  }

  string NameOf(const string& name) const {
    const auto known = names_.find(name);
    return known == names_.end() ? "?" + name : known->second;
  }
  std::vector<string> Renamed(std::vector<string> names) const {
    for (string& name : names) name = NameOf(name);
    return names;
  }
  static string Lists(const char* what, const std::vector<string>& one, const std::vector<string>& other) {
    return absl::StrCat(what, " ", absl::StrJoin(one, " "), "\n  but   ", absl::StrJoin(other, " "));
  }

  string Inputs() {
    if (one_.inputs.size() != other_.inputs.size()) return "the number of inputs";
    const bool forward = one_.takes.empty() && one_.name.ends_with(".forward");
    for (size_t i = 0; i < one_.inputs.size(); ++i) {
      names_[one_.inputs[i].name] = other_.inputs[i].name;
      const bool named = !forward || one_.inputs[i].name == other_.inputs[i].name;
      if (!named || TypeText(one_.inputs[i].type) != TypeText(other_.inputs[i].type))
        return absl::StrCat("input ", OutputText(one_.inputs[i]), "\n  but   ", OutputText(other_.inputs[i]));
    }
    return "";
  }

  string InstructionsAt(size_t i) {
    if (i >= one_.body.size()) return absl::StrCat("instruction ", i, ": nothing\n  but   ", WithNames(other_.body[i]));
    if (i >= other_.body.size())
      return absl::StrCat("instruction ", i, ": ", WithNames(one_.body[i]), "\n  but   nothing");
    const Instruction &one = one_.body[i], &other = other_.body[i];
    Instruction renamed = one;
    renamed.inputs = Renamed(one.inputs);
    bool same = Text(renamed) == Text(other) && one.block == other.block && one.frame == other.frame;
    for (size_t out = 0; same && out < one.outputs.size(); ++out)
      names_[one.outputs[out].name] = other.outputs[out].name;
    if (same) {
      const std::vector<string> frees = Renamed(one.frees);
      same = std::set(frees.begin(), frees.end()) == std::set(other.frees.begin(), other.frees.end());
    }
    return same ? "" : absl::StrCat("instruction ", i, ": ", WithNames(one), "\n  but   ", WithNames(other));
  }

  string Probes() const {
    std::vector<string> one, other;
    for (const Probe& probe : one_.probes) one.push_back(NameOf(probe.value) + " as " + probe.name);
    for (const Probe& probe : other_.probes) other.push_back(probe.value + " as " + probe.name);
    return one == other ? "" : Lists("probes", one, other);
  }

  const Block &one_, &other_;
  ValueNames& names_;
};

}  // namespace

string BlockDifference(const Block& one, const Block& other, ValueNames& names) {
  return Comparison(one, other, names).Difference();
}

}  // namespace planwright::testing
