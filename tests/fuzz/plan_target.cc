// Any bytes as a plan: it is refused, or read and proved. The digest of a damaged plan is mended first, so that the
// rules behind it are reached.
#include <cstdint>
#include <string>

#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

// ReadPlan says which digest the contents have; `text` with that one in its place.
std::string WithItsDigest(std::string text, std::string_view refusal) {
  constexpr std::string_view kSaying = "its contents give ", kField = "\"digest\":";
  constexpr size_t kDigits = 64;
  const size_t said = refusal.find(kSaying), field = text.find(kField);
  if (said == std::string_view::npos || field == std::string::npos) return text;
  const size_t open = text.find('"', field + kField.size()), close = text.find('"', open + 1);
  if (close == std::string::npos) return text;
  return text.replace(open + 1, close - open - 1, refusal.substr(said + kSaying.size(), kDigits));
}

void TryPlan(const std::string& text) {
  absl::StatusOr<Plan> plan = ReadPlan(text);
  if (!plan.ok()) plan = ReadPlan(WithItsDigest(text, std::string(plan.status().message())));
  if (plan.ok()) VerifyPlan(*plan);
}

}  // namespace
}  // namespace planwright

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  planwright::TryPlan(std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
