#include "planner/plan/plan_enums.h"

namespace planwright {
namespace {

constexpr std::string_view kInitKinds[] = {"zeros", "ones", "normal", "uniform", "log_uniform", "dt_bias"};

}  // namespace

std::string_view InitKindName(Init::Kind kind) { return kInitKinds[static_cast<int>(kind)]; }

std::optional<Init::Kind> InitKindFromName(std::string_view name) {
  for (size_t i = 0; i < std::size(kInitKinds); ++i) {
    if (kInitKinds[i] == name) return static_cast<Init::Kind>(i);
  }
  return std::nullopt;
}

std::optional<TpGradient> TpGradientFromName(std::string_view name) {
  for (TpGradient value : {TpGradient::kSharded, TpGradient::kReplicated, TpGradient::kPartial}) {
    if (TpGradientName(value) == name) return value;
  }
  return std::nullopt;
}

std::optional<View> ViewFromName(std::string_view name) {
  for (View value : {View::kDense, View::kExpert}) {
    if (ViewName(value) == name) return value;
  }
  return std::nullopt;
}

}  // namespace planwright
