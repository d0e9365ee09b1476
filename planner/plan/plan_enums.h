// Names in plan files of the enumerations that have none of their own.
#pragma once

#include <optional>
#include <string_view>

#include "planner/plan/plan.h"

namespace planwright {

// "zeros", "ones", "normal", "uniform", "log_uniform", "dt_bias"
std::string_view InitKindName(Init::Kind kind);
std::optional<Init::Kind> InitKindFromName(std::string_view name);
std::optional<TpGradient> TpGradientFromName(std::string_view name);
std::optional<View> ViewFromName(std::string_view name);

}  // namespace planwright
