#include "planner/plan/source_rules.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <set>

#include "absl/strings/ascii.h"
#include "planner/base/text/limits.h"

namespace planwright {
namespace {

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool HasControl(std::string_view text) { return std::any_of(text.begin(), text.end(), absl::ascii_iscntrl); }

std::string SourceProblem(const SourcePlan& source) {
  if (!IsSourceName(source.name)) return "a source with a name that no file can have";
  const bool shards = RowOf(source.kind).shards;
  if (shards != source.path.empty() || shards == source.shards.empty() || (!shards && !source.ignore.empty()))
    return "a source that has not what its kind has: " + source.name;
  for (const std::vector<std::string>* texts : {&source.shards, &source.ignore}) {
    if (std::any_of(texts->begin(), texts->end(), [](const auto& text) { return text.empty() || HasControl(text); }))
      return "a source with a shard or an extension that is no text: " + source.name;
  }
  if (HasControl(source.path)) return "a source with a path that is no text: " + source.name;
  return source.weight < 1 || source.weight > kLongestPeriod ? "a weight out of range, of source " + source.name : "";
}

std::string MixtureProblem(const DataPlan& data) {
  if (data.sources.empty() || data.sources.size() > kMostSources) return "no sources, or more than a plan may have";
  std::set<std::string> names;
  int64_t period = 0;
  for (const SourcePlan& source : data.sources) {
    if (std::string problem = SourceProblem(source); !problem.empty()) return problem;
    if (!names.insert(source.name).second) return "two sources of one name: " + source.name;
    period += source.weight;
  }
  if (period > kLongestPeriod) return "weights of sources whose sum is above 1000000";
  return CommonDivisor(data.sources) == 1 ? "" : "weights of sources with a common divisor";
}

}  // namespace

bool IsSourceName(std::string_view name) {
  const auto good = [](unsigned char c) { return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.'; };
  return !name.empty() && name.size() <= 64 && name[0] != '.' && std::all_of(name.begin(), name.end(), good);
}

bool IsDigest(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

int64_t ShuffledTogether(std::string_view shuffle) {
  if (shuffle == "all" || shuffle == "none") return 0;
  int64_t count = 0;
  const auto [end, error] = std::from_chars(shuffle.data(), shuffle.data() + shuffle.size(), count);
  const bool number = error == std::errc() && end == shuffle.data() + shuffle.size();
  const bool plain = number && shuffle[0] != '0' && count >= 1 && count <= kLargestNumber;
  return plain ? count : -1;
}

int64_t CommonDivisor(const std::vector<SourcePlan>& sources) {
  int64_t divisor = 0;
  for (const SourcePlan& source : sources) divisor = std::gcd(divisor, source.weight);
  return divisor;
}

std::string SourcesProblem(const DataPlan& data) {
  if (!IsOneOf(data.balance, {"none", "images"})) return "an unknown order of samples within a step";
  if (!RowOf(data.kind).mixed) {
    return data.sources.empty() && data.tokenizer == "bytes" ? "" : "sources or ids in data of another kind";
  }
  if (std::string problem = MixtureProblem(data); !problem.empty()) return problem;
  if (!IsOneOf(data.tokenizer, {"bytes", "ids"})) return "an unknown tokenizer";
  for (const std::string& digest : {data.tokenizer_digest, data.template_digest}) {
    if (!digest.empty() && !IsDigest(digest)) return "a digest that is none";
  }
  if (data.tokenizer == "bytes") {
    const auto ids = [](const SourcePlan& source) { return RowOf(source.kind).ids_alone; };
    if (std::any_of(data.sources.begin(), data.sources.end(), ids)) return "a source of ids where text is bytes";
  } else if (data.pad_token < 0 || data.end_token < 0) {
    return "ids without those of padding and of a document's end";
  }
  if (data.pad_token == data.image_token || data.end_token == data.image_token)
    return "one id for images and for padding or the end";
  for (const EncoderData& encoder : data.encoders) {
    if (encoder.token == data.pad_token || encoder.token == data.end_token)
      return "one id for images and for padding or the end";
  }
  if (ShuffledTogether(data.shuffle) < 0) return "an unknown shuffle";
  if (!IsOneOf(data.packing, {"first_fit", "none"})) return "an unknown packing";
  if (!IsOneOf(data.long_documents, {"error", "cut", "skip"})) return "an unknown word for long documents";
  if (!IsOneOf(data.damaged, {"error", "skip"})) return "an unknown word for damaged documents";
  if (data.most_damaged < 0 || data.most_damaged > kLargestNumber) return "a seed or a count out of range";
  if (data.window < 1 || data.min_patches < 1 || data.min_patches > data.max_patches)
    return "a window or limits of patches out of range";
  return "";
}

}  // namespace planwright
