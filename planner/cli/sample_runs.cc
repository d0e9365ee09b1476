#include "planner/cli/sample_runs.h"

#include <algorithm>

namespace planwright {
namespace {

// Where the padding of a sample begins. Documents of a mixture say it. Else it is the tokens at the end that are all
// the same and not learnt.
int64_t PaddingBegin(const Sample& sample, const std::vector<int64_t>& ends) {
  const int64_t length = static_cast<int64_t>(sample.tokens.size());
  if (!ends.empty()) return ends.back();
  int64_t begin = length;
  while (begin > 1 && sample.tokens[begin - 1] == sample.tokens.back() && sample.loss_mask[begin - 2] == 0) --begin;
  return begin;
}

}  // namespace

const char* SortName(TokenRun::Sort sort) {
  switch (sort) {
    case TokenRun::Sort::kLearnt: return "learnt";
    case TokenRun::Sort::kNotLearnt: return "not learnt";
    case TokenRun::Sort::kImage: return "image";
    case TokenRun::Sort::kPadding: return "padding";
  }
  return "";
}

std::vector<TokenRun> RunsOfSample(const DataPlan& data, const Sample& sample, const SampleOrigin& origin) {
  std::vector<int64_t> ends;  // of documents
  for (const DocumentPart& part : origin.documents)
    ends.push_back((ends.empty() ? 0 : ends.back()) + part.end - part.first);
  const int64_t padding = PaddingBegin(sample, ends), length = static_cast<int64_t>(sample.tokens.size());
  std::vector<int64_t> images(data.encoders.size(), 0);  // that came so far
  std::vector<TokenRun> runs;
  size_t document = 0;
  for (int64_t i = 0; i < length;) {
    while (document < ends.size() && ends[document] <= i) ++document;
    TokenRun run{.first = i, .end = i + 1, .document = document < ends.size() ? static_cast<int64_t>(document) : -1};
    const auto encoder = std::find_if(data.encoders.begin(), data.encoders.end(),
                                      [&](const EncoderData& known) { return known.token == sample.tokens[i]; });
    if (i >= padding) {
      run.sort = TokenRun::Sort::kPadding;
      run.end = length;
    } else if (encoder != data.encoders.end()) {
      run.sort = TokenRun::Sort::kImage;
      run.encoder = static_cast<size_t>(encoder - data.encoders.begin());
      run.image = images[run.encoder]++;
      const std::vector<Image>& seen = sample.images[run.encoder];
      const int64_t tokens = run.image < static_cast<int64_t>(seen.size()) ? ImageTokens(*encoder, seen[run.image]) : 1;
      run.end = std::min(i + std::max<int64_t>(tokens, 1), length);
    } else {
      run.sort = i > 0 && sample.loss_mask[i - 1] != 0 ? TokenRun::Sort::kLearnt : TokenRun::Sort::kNotLearnt;
    }
    i = run.end;
    const bool text = run.sort == TokenRun::Sort::kLearnt || run.sort == TokenRun::Sort::kNotLearnt;
    if (text && !runs.empty() && runs.back().sort == run.sort && runs.back().document == run.document) {
      runs.back().end = run.end;
    } else {
      runs.push_back(run);
    }
  }
  return runs;
}

}  // namespace planwright
