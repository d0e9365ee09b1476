// Precompiled for the planner's rooms (cmake/precompiled.cmake): what many files include. Each file instantiates the
// templates that inline functions of these headers call, used or not: nlohmann/json.hpp would cost more than it saves.
// A build with PLANWRIGHT_EACH_FILE_ALONE=ON does not read this file, so nothing may depend on it.
#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
