#include "planner/plan/op_costs.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>

#include "planner/base/text/bug.h"
#include "planner/plan/op_table.h"

namespace planwright {
namespace {

using Sizes = std::vector<double>;

double Product(const Sizes& shape) { return std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>()); }
double Last(const Sizes& shape) { return shape.empty() ? 0 : shape.back(); }
// The product of all dims except the last.
double Rows(const Sizes& shape) { return Last(shape) > 0 ? Product(shape) / Last(shape) : 0; }

// The shape of the operand in "rows(i0)"; `open` is the index of the bracket. Inputs are i0, i1, ..., outputs o0, o1,
// ...
const Sizes& ShapeOfOperand(const std::string& name, size_t open, size_t inputs, const std::vector<Sizes>& shapes) {
  static const Sizes kUnknown;
  const bool output = name[open + 1] == 'o';
  const size_t number = static_cast<size_t>(name[open + 2] - '0'), at = output ? inputs + number : number;
  return at < shapes.size() && (output || number < inputs) ? shapes[at] : kUnknown;
}

constexpr std::string_view kDocumentShare = "document_share";

// A formula of the table of operations, on operands of these shapes.
double Evaluated(const Expression& formula, const Instruction& instruction, const std::vector<Sizes>& shapes,
                 double image_rows, double document_share, bool deterministic) {
  return formula.Evaluate([&](const std::string& name) -> double {
    if (name == "weights") return instruction.gradients.empty() ? 0 : 1;
    if (name == "image_rows") return image_rows;
    if (name == kDocumentShare) return document_share;
    if (name == "deterministic") return deterministic ? 1 : 0;
    const size_t open = name.find('(');
    if (open == std::string::npos) {
      // Without the attribute cp the sequence is whole, as on one cp rank.
      const int64_t* attribute = instruction.FindInteger(name);
      return attribute ? static_cast<double>(*attribute) : name == "cp" ? 1 : 0;
    }
    const Sizes& shape = ShapeOfOperand(name, open, instruction.inputs.size(), shapes);
    const std::string_view measure = std::string_view(name).substr(0, open);
    if (measure == "elements") return Product(shape);
    if (measure == "rows") return Rows(shape);
    if (measure == "last") return Last(shape);
    Require(measure == "first", "a formula of costs has an unknown name: " + name);
    return shape.empty() ? 0 : shape.front();
  });
}

}  // namespace

double OpFlops(const Instruction& instruction, const std::vector<Sizes>& shapes, double image_rows,
               double document_share) {
  const OpInfo& info = InfoOf(instruction.kind);
  return info.flops ? Evaluated(*info.flops, instruction, shapes, image_rows, document_share, false) : 0;
}

bool FlopsFollowDocuments(OpKind kind) {
  const std::optional<Expression>& flops = InfoOf(kind).flops;
  return flops && std::find(flops->names().begin(), flops->names().end(), kDocumentShare) != flops->names().end();
}

double OpWorkspace(const Instruction& instruction, const std::vector<Sizes>& shapes, bool deterministic) {
  const OpInfo& info = InfoOf(instruction.kind);
  return info.workspace ? Evaluated(*info.workspace, instruction, shapes, 0, 1, deterministic) : 0;
}

}  // namespace planwright
