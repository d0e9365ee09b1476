#include "planner/verify/v7_updates/expanded_list.h"

#include <algorithm>
#include <unordered_map>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;

class Expander {
 public:
  explicit Expander(const PlanIndex& index) : index_(index) {}

  void Append(const std::vector<Instruction>& list, const Block* around, std::string_view frame,
              std::vector<ExpandedEntry>& entries) {
    for (const Instruction& op : list) {
      const Block* block = op.kind == OpKind::kCall ? index_.block(op.block) : nullptr;
      const std::string_view inner = op.frame.empty() ? frame : std::string_view(op.frame);
      if (block && HasCollectives(*block)) {
        Append(block->body, block, inner, entries);
      } else {
        entries.push_back({&op, around, inner});
      }
    }
  }

 private:
  bool HasCollectives(const Block& block) {
    if (const auto known = has_collectives_.find(&block); known != has_collectives_.end()) return known->second;
    const bool has = std::any_of(block.body.begin(), block.body.end(), [&](const Instruction& op) {
      const Block* called = op.kind == OpKind::kCall ? index_.block(op.block) : nullptr;
      return MovesState(op) || (called && HasCollectives(*called));
    });
    has_collectives_.emplace(&block, has);
    return has;
  }

  const PlanIndex& index_;
  std::unordered_map<const Block*, bool> has_collectives_;
};

}  // namespace

string Subject(const Instruction& op) { return op.inputs.empty() ? "nothing" : op.inputs.front(); }

bool MovesState(const Instruction& op) {
  return OpClassOf(op.kind) == OpClass::kCommunication && !op.inputs.empty() && IsStateName(op.inputs.front());
}

std::vector<ExpandedEntry> Expanded(const PlanIndex& index, const std::vector<Instruction>& list) {
  std::vector<ExpandedEntry> entries;
  Expander(index).Append(list, nullptr, {}, entries);
  return entries;
}

string LabelOf(const Instruction& op) {
  if (op.kind == OpKind::kCall) return absl::StrCat(op.frame, " microbatch ", op.microbatch);
  if (!op.inputs.empty()) return op.inputs.front();
  const string* module = op.FindText("module");
  const int64_t* bucket = op.FindInteger("bucket");
  return module ? absl::StrCat(*module, bucket ? absl::StrCat(" bucket ", *bucket) : "") : "the whole role";
}

}  // namespace planwright
