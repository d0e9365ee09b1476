#include "planner/state/checkpoint/trained_files.h"

#include "absl/strings/str_cat.h"
#include "planner/base/digest/sha256.h"

namespace planwright {

std::vector<std::string> OtherFiles(const SourceDigests& before, const SourceDigests& now) {
  std::vector<std::string> names;
  for (const auto& [name, digest] : before) {
    const auto found = now.find(name);
    if (found != now.end() && found->second != digest) names.push_back(name);
  }
  return names;
}

std::vector<std::string> OtherFilesLines(const Manifest& checkpoint, const SourceDigests& now) {
  std::vector<std::string> lines;
  for (const std::string& name : OtherFiles(checkpoint.data, now)) {
    lines.push_back(
        absl::StrCat("the files of source ", name, " have other documents than the run was trained on (digest ",
                     now.at(name).substr(0, 12), " instead of ", checkpoint.data.at(name).substr(0, 12), ")"));
  }
  if (!lines.empty())
    lines.push_back(absl::StrCat("samples are other ones from sample ", checkpoint.counters.consumed_samples, " on"));
  return lines;
}

std::string DigestOfAll(const SourceDigests& digests) {
  if (digests.empty()) return "";
  std::string text;
  for (const auto& [name, digest] : digests) absl::StrAppend(&text, digest, " ", name, "\n");  // a digest has no space
  return Sha256Hex(text);
}

}  // namespace planwright
