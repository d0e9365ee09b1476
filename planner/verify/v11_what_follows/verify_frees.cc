// V11 of frees: a value ends at one index of its list. With one stream that is its last use. An earlier place would
// break V4; a later one would only hold memory, and two plans that do the same would differ.
//
// A list with several streams has its index for each value too: the first one where the memory can be given out again
// and no stream waits for another because of it (planner/plan/stream_dependencies.h). What the streams wait for by
// themselves are values that others make.
//
// Not here: that each value is freed once, and not before its last use (V4), and the order of an instruction's frees
// (verify_programs.cc).

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/verify/rules.h"

namespace planwright {
namespace {

using std::string;
using std::string_view;

// The indices of one list where its values end. Instructions are named by their index.
class EndsOfValues {
 public:
  explicit EndsOfValues(const std::vector<Instruction>& list) : list_(list) {
    for (const Instruction& op : list) {
      const int here = static_cast<int>(&op - list.data());
      for (const string& name : op.inputs) Read(name, here);
      for (const ExchangePart& part : op.parts) {
        Read(part.sizes, here);
        if (part.send) Read(part.value, here);
      }
      bool makes = false;
      for (const Output& output : op.outputs) {
        if (IsStateName(output.name)) continue;
        Value& value = values_[output.name];
        value.maker = here;
        Touch(value, here);
        makes = true;
      }
      if (!IsMain(here) && makes) {
        makers_.emplace_back(knows_main_.try_emplace(op.stream, -1).first->second, here);
      }
    }
    // By what they know of the main stream; with each the last of those that know no more.
    std::sort(makers_.begin(), makers_.end());
    for (size_t i = 1; i < makers_.size(); ++i) makers_[i].second = std::max(makers_[i].second, makers_[i - 1].second);
  }

  // Where value `name` ends; -1: the list does not touch it.
  int Of(string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) return -1;
    const Value& value = found->second;
    const int end = static_cast<int>(list_.size()) - 1;
    int index = value.main;
    for (const auto& [stream, last] : value.others) index = std::max(index, last);
    if (makers_.empty()) return index;
    // The main stream has waited for what the other streams do with the value.
    for (const auto& [stream, last] : value.others) {
      const auto waits = waits_.find(stream);
      if (waits == waits_.end()) return end;
      const auto wait = std::lower_bound(waits->second.begin(), waits->second.end(), std::pair(last, -1));
      if (wait == waits->second.end()) return end;
      index = std::max(index, wait->second);
    }
    // No instruction behind it that takes memory on another stream would have to wait for what the main stream does
    // with the value.
    const auto more = std::lower_bound(makers_.begin(), makers_.end(), std::pair(value.main, -1));
    if (more == makers_.begin() || std::prev(more)->second <= index) return index;
    index = std::prev(more)->second;
    while (index < end && !IsMain(index)) ++index;
    return index;
  }

 private:
  struct Value {
    int maker = -1;
    int main = -1;                      // its last use on the main stream
    std::map<string_view, int> others;  // by other stream: its last use there
  };

  const string& StreamOf(int index) const { return list_[static_cast<size_t>(index)].stream; }
  bool IsMain(int index) const { return StreamOf(index).empty(); }

  void Touch(Value& value, int here) {
    if (IsMain(here)) {
      value.main = here;
    } else {
      value.others[StreamOf(here)] = here;
    }
  }

  // A stream that reads what another one has made waits for it, and so for all that stands before it there.
  void Read(const string& name, int here) {
    if (name.empty() || IsStateName(name)) return;
    Value& value = values_[name];
    Touch(value, here);
    if (value.maker < 0 || IsMain(here) == IsMain(value.maker)) return;
    if (IsMain(here)) {
      auto& waits = waits_[StreamOf(value.maker)];
      if (waits.empty() || waits.back().first < value.maker) waits.emplace_back(value.maker, here);
    } else {
      int& known = knows_main_.try_emplace(StreamOf(here), -1).first->second;
      known = std::max(known, value.maker);
    }
  }

  const std::vector<Instruction>& list_;
  std::unordered_map<string_view, Value> values_;
  // By other stream: what the main stream waits for there, and where it does. Both ascend.
  std::map<string_view, std::vector<std::pair<int, int>>> waits_;
  std::map<string_view, int> knows_main_;    // by other stream: the last instruction of the main stream that it knows
  std::vector<std::pair<int, int>> makers_;  // instructions of other streams that take memory: known, index
};

void CheckFrees(const PlanIndex& index, const string& who, const std::vector<Instruction>& list, int origin,
                const Module* module, std::vector<Violation>& violations) {
  const EndsOfValues ends(list);
  for (const Instruction& op : list) {
    for (const string& name : op.frees) {
      const int wanted = ends.Of(name);
      const Instruction& last = wanted < 0 ? op : list[static_cast<size_t>(wanted)];
      if (&last == &op) continue;
      const auto text = [&](const Instruction& at) {
        return absl::StrCat(string(OpName(at.kind)), ", its instruction ", &at - list.data());
      };
      violations.push_back({"V11",
                            absl::StrCat(who, " frees ", name, " with ", text(op), ", not with ", text(last),
                                         ", where the last use of it is over"),
                            index.OriginOf(op.origin, origin, module)});
    }
  }
}

}  // namespace

std::vector<Violation> VerifyFrees(const PlanIndex& index) {
  std::vector<Violation> violations;
  for (const Block& block : index.plan().blocks) {
    CheckFrees(index, "block " + block.name, block.body, block.origin, index.module(block.module), violations);
  }
  for (const Role& role : index.plan().roles) {
    for (const RoleList& part : kRoleLists)
      CheckFrees(index, "role " + role.name, role.*part.list, role.origin, nullptr, violations);
  }
  return violations;
}

}  // namespace planwright
