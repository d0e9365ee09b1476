#include "planner/compile/topology/check_needs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/base/text/bug.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

using std::string;
using Relation = StatedNeed::Relation;

// "groups" of "mamba.groups"
string WithoutSection(const string& constant) { return constant.substr(constant.rfind('.') + 1); }

// "mamba heads x head_dim" of mamba.heads * mamba.head_dim
string ProductText(const Expression& product) {
  const string& first = product.names().front();
  string text = first.substr(0, first.rfind('.'));
  std::string_view times = " ";
  for (const string& name : product.names())
    absl::StrAppend(&text, string(std::exchange(times, " x ")), WithoutSection(name));
  return text;
}

const Located<int64_t>& SizeOf(Axis axis, const ModuleRecipe& module) {
  switch (axis) {
    case Axis::kTp: return module.tp;
    case Axis::kCp: return module.cp;
    case Axis::kEp: return module.ep;
    case Axis::kExpertTp: return module.expert_tp;
    default: Bug("a statement needs that an axis divides a size, which cuts no size: " + string(AxisName(axis)));
  }
}

}  // namespace

void NeedChecks::CheckShape(const StatedPiece& piece) {
  for (const StatedNeed& need : piece.needs) {
    if (need.relation == Relation::kMultiple) CheckMultiple(need);
    if (need.relation == Relation::kAtMost) CheckAtMost(need);
  }
}

void NeedChecks::CheckLayout(const StatedPiece& piece) {
  for (const StatedNeed& need : piece.needs) {
    if (!need.axes.empty()) CheckCut(need);
  }
}

double NeedChecks::Of(const Expression& formula) const {
  return formula.Evaluate([&](const string& name) {
    if (name == "most_tokens") return static_cast<double>(kMostTokens);
    if (name == "largest_dim") return static_cast<double>(kLargestDim);
    const auto number = numbers_.find(name);
    const int64_t* size = number == numbers_.end() ? nullptr : std::get_if<int64_t>(&*number->second);
    return size ? static_cast<double>(*size) : std::numeric_limits<double>::quiet_NaN();
  });
}

bool NeedChecks::AllKnownIn(const Expression& formula) const {
  return std::all_of(formula.names().begin(), formula.names().end(), [&](const string& name) {
    const auto number = numbers_.find(name);
    return number == numbers_.end() || AllKnown(number->second);
  });
}

// A size at the place of one of its constants. Rounded down, and the largest number where it is above all numbers.
Located<int64_t> NeedChecks::LocatedAt(const Expression& formula, const string& constant) const {
  const double value = Of(formula);
  const auto number = numbers_.find(constant);
  return {value < 9e18 ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::max(),
          number == numbers_.end() ? Location() : number->second.where};
}

void NeedChecks::CheckMultiple(const StatedNeed& need) {
  if (!AllKnownIn(need.left) || !AllKnownIn(*need.right)) return;
  if (!std::isfinite(Of(need.left))) return;  // a size divided by one that is 0, which is reported by itself
  const string& of = need.right->text();
  check_.Multiple(need.called.empty() ? need.left.text() : need.called, LocatedAt(need.left, need.left.names().front()),
                  WithoutSection(of), LocatedAt(*need.right, of));
}

void NeedChecks::CheckAtMost(const StatedNeed& need) {
  if (!AllKnownIn(need.left) || !AllKnownIn(*need.right)) return;
  const string& most = need.right->text();
  if (numbers_.contains(most)) {
    check_.AtMost(need.left.text(), LocatedAt(need.left, need.left.text()), WithoutSection(most),
                  LocatedAt(*need.right, most));
  } else {
    check_.Within(ProductText(need.left), Of(need.left), LocatedAt(need.left, need.left.names().back()),
                  Of(*need.right));
  }
}

// The axes are named up to the last that cuts: with cp 1, "tp x cp" is "tp".
void NeedChecks::CheckCut(const StatedNeed& need) {
  if (!AllKnownIn(need.left)) return;
  string text, named;  // named: all axes so far
  Located<int64_t> parts = 1;
  int64_t product = 1;
  for (Axis axis : need.axes) {
    const Located<int64_t>& size = SizeOf(axis, module_);
    if (!AllKnown(size)) return;
    absl::StrAppend(&named, named.empty() ? "" : " x ", string(AxisName(axis)));
    product *= *size;
    if (!text.empty() && *size == 1) continue;
    text = named;
    parts = {product, size.where};
  }
  check_.Cut(need.left.text(), LocatedAt(need.left, need.left.text()), text, parts,
             need.relation == Relation::kDividesOrMultiple);
}

}  // namespace planwright
