#include "planner/data/samples/token_rule.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace planwright {

TokenRule TokenRuleOf(const DataPlan& data) {
  TokenRule rule{.vocabulary = data.vocabulary, .image_tokens = {}};
  for (const EncoderData& encoder : data.encoders) rule.image_tokens.push_back(encoder.token);
  std::sort(rule.image_tokens.begin(), rule.image_tokens.end());
  return rule;
}

std::string WrongId(const TokenRule& rule, std::span<const int64_t> ids, int64_t first) {
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids[i], number = first + static_cast<int64_t>(i);
    if (id < 0 || id >= rule.vocabulary)
      return absl::StrCat("token ", number, " is ", id, ", and the vocabulary ", rule.vocabulary);
    if (std::find(rule.image_tokens.begin(), rule.image_tokens.end(), id) != rule.image_tokens.end())
      return absl::StrCat("token ", number, " is ", id, ", the image token; it has no images");
  }
  return "";
}

}  // namespace planwright
