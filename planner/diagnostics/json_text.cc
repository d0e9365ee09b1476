#include "planner/diagnostics/json_text.h"

#include <nlohmann/json.hpp>

namespace planwright {
namespace {

template <typename Json>
std::string Text(const Json& json, int indent) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace

std::string JsonText(const nlohmann::ordered_json& json, int indent) { return Text(json, indent); }
std::string JsonText(const nlohmann::json& json, int indent) { return Text(json, indent); }

}  // namespace planwright
