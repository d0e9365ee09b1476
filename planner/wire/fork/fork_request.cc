#include "planner/wire/fork/fork_request.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace planwright {

std::string ForkRequestText(const ForkRequest& request) {
  std::string text = absl::StrCat(request.launcher, " ", request.tell, " ", request.go);
  for (const ForkedRank& rank : request.ranks)
    absl::StrAppend(&text, " ", rank.rank, " ", rank.local_rank, " ", rank.output, " ", rank.errors);
  return text;
}

absl::StatusOr<ForkRequest> ReadForkRequest(absl::string_view text) {
  std::vector<int> numbers;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (!absl::SimpleAtoi(word, &numbers.emplace_back()) || numbers.back() < 0) numbers.clear();
    if (numbers.empty()) break;
  }
  if (numbers.size() < 7 || numbers.size() % 4 != 3)
    return absl::InvalidArgumentError(absl::StrCat(kForkVariable, "=\"", text, "\" is not what a launcher writes"));
  ForkRequest request = {.launcher = numbers[0], .tell = numbers[1], .go = numbers[2]};
  for (size_t i = 3; i < numbers.size(); i += 4)
    request.ranks.push_back({numbers[i], numbers[i + 1], numbers[i + 2], numbers[i + 3]});
  return request;
}

}  // namespace planwright
