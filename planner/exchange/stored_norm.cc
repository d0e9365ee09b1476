#include "planner/exchange/stored_norm.h"

#include <cmath>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "planner/exchange/config_keys.h"
#include "planner/exchange/convert.h"
#include "planner/state/weights/pixel_norm.h"

namespace planwright {
namespace {

constexpr size_t kColours = 3;

// How far a number may be from CLIP's: what the type rounds, and what configs leave away.
double Tolerance(const std::string& type) {
  if (type == "BF16") return 1.0 / (1 << 9);
  return type == "F16" ? 1.0 / (1 << 12) : 1e-6;
}

std::string ProblemOf(WeightFiles& files, const std::string& name, const WeightTensor& tensor,
                      const std::array<double, kColours>& expected) {
  const std::optional<TensorType> type = files.TypeOf(name);
  if (!type) return absl::StrCat(" has type ", tensor.type, ", which is not read");
  if (ElementsOf(tensor.shape) != int64_t{kColours}) return " has not one number for each of three colours";
  const DType dtype = type->dtype;
  std::array<std::byte, kColours * sizeof(double)> bytes{};
  const auto stored = std::span(bytes).first(kColours * static_cast<size_t>(DTypeBytes(dtype)));
  const absl::Status read = files.Read(name, {{0, 0, kColours}}, stored, ElementReader::Numbers::kAny);
  if (!read.ok()) return absl::StrCat(": ", std::string(read.message()));
  std::array<double, kColours> numbers{};
  ConvertNumbers(dtype, stored, DType::kFp64, std::as_writable_bytes(std::span(numbers)));
  for (size_t i = 0; i < kColours; ++i) {
    // Not a number is far from each.
    if (std::fabs(numbers[i] - expected[i]) <= Tolerance(tensor.type)) continue;
    return absl::StrCat(": element ", i, " is ", ShortestText(numbers[i]),
                        ", which cannot be expressed: images are normalized by that of CLIP, ",
                        ShortestText(expected[i]));
  }
  return "";
}

}  // namespace

void CheckStoredNorm(WeightFiles& files, Findings& findings) {
  for (const auto& [name, tensor] : files.all()) {
    const bool mean = absl::EndsWith(name, "radio_model.input_conditioner.norm_mean");
    if (!mean && !absl::EndsWith(name, "radio_model.input_conditioner.norm_std")) continue;
    const std::string problem = ProblemOf(files, name, tensor, mean ? kPixelMean : kPixelDeviation);
    if (!problem.empty()) findings.Problem(absl::StrCat("tensor ", name, problem), "", "");
  }
}

}  // namespace planwright
