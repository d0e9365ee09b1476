// Fuzz target: reads any bytes as a plan. The plan is refused, or it is read and verified. The digest of a damaged plan
// is corrected first; otherwise every plan would be refused before the rules.
#include <cstdint>
#include <string>

#include "planner/plan/plan_json.h"
#include "planner/verify/verify.h"

namespace planwright {
namespace {

// `text` with the right digest. `refusal` is the message of ReadPlan, which says which digest the contents have.
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
