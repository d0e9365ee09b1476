#include "planner/verify/v4_values/read_problem.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "planner/verify/shared/typed_instruction.h"

namespace planwright {
namespace {

using std::string;

constexpr int64_t kAnyNumber = -1, kRunTime = -2;  // dims

struct Wanted {
  const char* what;
  DType dtype;
  std::vector<int64_t> dims;
  bool host = false;
  Layout layout = {};
};

bool Fits(const Dim& dim, int64_t wanted) {
  const auto* number = std::get_if<int64_t>(&dim);
  return number ? wanted == kAnyNumber || *number == wanted : wanted == kRunTime;
}

bool Fits(const ValueType& type, const Wanted& wanted) {
  const auto fits = [](const Dim& dim, int64_t size) { return Fits(dim, size); };
  return type.dtype == wanted.dtype && type.host == wanted.host && type.layout == wanted.layout && !type.gradient &&
         std::equal(type.dims.begin(), type.dims.end(), wanted.dims.begin(), wanted.dims.end(), fits);
}

// Of the language model: a count of image rows a sample for each bridge, or one where there is none; the documents'
// ends where samples pack them.
std::vector<Wanted> Tokens(const Plan& plan, const Module& module, DType precision) {
  const int64_t samples = plan.budget.micro_samples, sequence = plan.budget.sequence_length;
  const std::vector<int64_t> whole = {samples, sequence};
  std::vector<Wanted> wanted = {{"tokens", DType::kInt64, whole},
                                {"labels", DType::kInt64, whole},
                                {"a loss mask", precision, whole},
                                {"loss tokens", DType::kInt64, {1}}};
  const auto bridges = std::count_if(plan.bridges.begin(), plan.bridges.end(),
                                     [&](const Bridge& bridge) { return bridge.to == module.name; });
  for (int64_t i = 0; i < std::max<int64_t>(1, bridges); ++i)
    wanted.push_back({"row counts", DType::kInt64, {samples}, true});
  if (plan.data.packed_documents) wanted.push_back({"ends of documents", DType::kInt64, {kRunTime}, true});
  return wanted;
}

// Of an encoder: buffers are as long as the largest lane's.
std::vector<Wanted> Images(const Plan& plan, const Module& module, DType precision, bool pixels) {
  const LaneSamples lane = SamplesOfLane(plan.budget.block_samples, module.grid.dp, 0);
  std::vector<Wanted> wanted = {{"image sizes", DType::kInt64, {kRunTime, 2}, true},
                                {"row counts", DType::kInt64, {lane.end - lane.first}, true}};
  if (!pixels) return wanted;
  // of a patch from any file
  const auto values = 3 * static_cast<uint64_t>(module.size("patch")) * static_cast<uint64_t>(module.size("patch"));
  wanted.insert(wanted.begin(), {"patches", precision, {kRunTime, static_cast<int64_t>(values)}});
  if (module.grid.cp > 1) wanted.front().layout[Axis::kCp] = {AxisLayout::State::kSharded, 0};
  wanted.insert(wanted.begin() + 2, {"image numbers", DType::kInt64, {kRunTime, 2}, true});
  return wanted;
}

}  // namespace

string ReadProblem(const Plan& plan, const Module& module, const Instruction& read) {
  const DType precision = plan.dtype();
  const std::vector<Wanted> wanted = read.kind == OpKind::kReadTokens
                                         ? Tokens(plan, module, precision)
                                         : Images(plan, module, precision, read.kind == OpKind::kReadImages);
  if (read.outputs.size() != wanted.size())
    return absl::StrCat("reads ", read.outputs.size(), " values of ", module.name, ", not ", wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Output& made = read.outputs[i];
    if (Fits(made.type, wanted[i])) continue;
    return absl::StrCat("reads ", made.name, " as ", ShapeText(made.type), made.type.host ? " in host memory" : "",
                        ": that is not the type of ", wanted[i].what);
  }
  return "";
}

}  // namespace planwright
