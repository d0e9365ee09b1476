#include "planner/verify/v4_values/read_problem.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "planner/verify/shared/typed_instruction.h"

namespace planwright {
namespace {

using std::string;

constexpr int64_t kRunTime = -1;  // a dim whose size is known only at run time

struct WantedOutput {
  const char* what;
  DType dtype;
  std::vector<int64_t> dims;
  bool host = false;
  Layout layout = {};
};

bool Fits(const Dim& dim, int64_t wanted) {
  const auto* number = std::get_if<int64_t>(&dim);
  return number ? *number == wanted : wanted == kRunTime;
}

bool Fits(const ValueType& type, const WantedOutput& wanted) {
  const auto fits = [](const Dim& dim, int64_t size) { return Fits(dim, size); };
  return type.dtype == wanted.dtype && type.host == wanted.host && type.layout == wanted.layout && !type.gradient &&
         std::equal(type.dims.begin(), type.dims.end(), wanted.dims.begin(), wanted.dims.end(), fits);
}

string WantedText(const WantedOutput& wanted) {
  const auto append = [](string* out, int64_t dim) {
    dim == kRunTime ? out->append("*") : out->append(absl::StrCat(dim));
  };
  return absl::StrCat(string(DTypeName(wanted.dtype)), "[", absl::StrJoin(wanted.dims, ",", append), "]",
                      wanted.host ? " in host memory" : "", wanted.layout.empty() ? "" : " in parts", ", the type of ",
                      wanted.what);
}

// read_tokens: every rank of a lane reads whole sequences. Blocks cut them over tp or cp where they need a part.
std::vector<WantedOutput> TokenOutputs(const Plan& plan, const Module& module, DType precision) {
  const int64_t samples = plan.budget.micro_samples, sequence = plan.budget.sequence_length;
  const std::vector<int64_t> whole = {samples, sequence};
  std::vector<WantedOutput> wanted = {{"tokens", DType::kInt64, whole},
                                      {"labels", DType::kInt64, whole},
                                      {"a loss mask", precision, whole},
                                      {"loss tokens", DType::kInt64, {1}}};
  // For each bridge, how many image rows each sample takes. A model without bridges still has one such count.
  const auto bridges = std::count_if(plan.bridges.begin(), plan.bridges.end(),
                                     [&](const Bridge& bridge) { return bridge.to == module.name; });
  for (int64_t i = 0; i < std::max<int64_t>(1, bridges); ++i)
    wanted.push_back({"row counts", DType::kInt64, {samples}, true});
  if (plan.data.packed_documents) wanted.push_back({"ends of documents", DType::kInt64, {kRunTime}, true});
  return wanted;
}

// read_sources: of each sample.
std::vector<WantedOutput> SourceOutputs(const Plan& plan) {
  const int64_t samples = plan.budget.micro_samples;
  return {{"parts of sums", DType::kInt64, {samples}}, {"counts of loss tokens", DType::kInt64, {samples}}};
}

// read_positions: of each token; with rows and columns of image tokens where heads turn by them.
std::vector<WantedOutput> PositionOutputs(const Plan& plan, const Module& module) {
  const int64_t axes = module.size("rope.height") > 0 || module.size("rope.width") > 0 ? 3 : 1;
  return {{"positions", DType::kInt64, {axes, plan.budget.sequence_length, plan.budget.micro_samples}}};
}

// read_images and read_image_sizes. Lanes can differ by a sample; values are as long as the largest lane, the first
// (docs/layouts/bridges.md#samples).
std::vector<WantedOutput> ImageOutputs(const Plan& plan, const Module& module, DType precision, bool pixels) {
  const LaneSamples lane = SamplesOfLane(plan.budget.block_samples, module.grid.dp, 0);
  std::vector<WantedOutput> wanted = {{"image sizes", DType::kInt64, {kRunTime, 2}, true},
                                      {"row counts", DType::kInt64, {lane.end - lane.first}, true}};
  if (!pixels) return wanted;
  // Three colors of each pixel of a patch. Unsigned: a plan from any file may have a patch whose square is no int64.
  const auto values = 3 * static_cast<uint64_t>(module.size("patch")) * static_cast<uint64_t>(module.size("patch"));
  wanted.insert(wanted.begin(), {"patches", precision, {kRunTime, static_cast<int64_t>(values)}});
  // Over cp each rank gets the patches of its part of the lane (docs/layouts/sequence.md#context-parallelism).
  if (module.grid.cp > 1) wanted.front().layout[Axis::kCp] = {AxisLayout::State::kSharded, 0};
  wanted.insert(wanted.begin() + 2, {"image numbers", DType::kInt64, {kRunTime, 2}, true});
  return wanted;
}

}  // namespace

string ReadProblem(const Plan& plan, const Module& module, const Instruction& read) {
  const DType precision = plan.dtype();
  const std::vector<WantedOutput> wanted =
      read.kind == OpKind::kReadTokens      ? TokenOutputs(plan, module, precision)
      : read.kind == OpKind::kReadPositions ? PositionOutputs(plan, module)
      : read.kind == OpKind::kReadSources   ? SourceOutputs(plan)
                                            : ImageOutputs(plan, module, precision, read.kind == OpKind::kReadImages);
  if (read.outputs.size() != wanted.size())
    return absl::StrCat("reads ", read.outputs.size(), " values of ", module.name, ", not ", wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Output& made = read.outputs[i];
    if (Fits(made.type, wanted[i])) continue;
    return absl::StrCat("reads ", made.name, " as ", ShapeText(made.type), made.type.host ? " in host memory" : "",
                        made.type.layout.empty() ? "" : " in parts", ", not as ", WantedText(wanted[i]));
  }
  return "";
}

}  // namespace planwright
