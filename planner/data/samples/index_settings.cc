#include "planner/data/samples/index_settings.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/data/samples/index_writer.h"
#include "planner/data/samples/token_rule.h"

namespace planwright {
namespace {

// A name of a source may be any text: what no file should be called is written as its bytes.
std::string FileNameOf(const std::string& source) {
  std::string name;
  for (char c : source) {
    const bool plain = absl::ascii_isalnum(c) || c == '_' || c == '-' || (c == '.' && !name.empty());
    name += plain ? std::string(1, c) : absl::StrFormat("%%%02x", static_cast<unsigned char>(c));
  }
  return name;
}

// Of what a recipe says that the index depends on. Recipes that say other things have other files in one folder, so
// none overwrites that of another.
std::string NameOfSettings(const DataPlan& data, const SourcePlan& source) {
  constexpr size_t kDigits = 12;
  if (RowOf(source.kind).shards) return HexOfDigest(SourceDigest(data, source)).substr(0, kDigits);
  const TokenRule rule = TokenRuleOf(data);
  return Sha256Hex(absl::StrCat(rule.vocabulary, "\n", absl::StrJoin(rule.image_tokens, " "), "\n", source.path))
      .substr(0, kDigits);
}

std::string PathOf(const DataPlan& data, const SourcePlan& source, const char* ending) {
  return absl::StrCat(IndexFolder(data), "/", FileNameOf(source.name), ".", NameOfSettings(data, source), ending);
}

}  // namespace

std::string IndexFolder(const DataPlan& data) { return ResolvePath(data.base, data.index); }

std::string IndexPath(const DataPlan& data, const SourcePlan& source) { return PathOf(data, source, ".index"); }

std::vector<std::string> OtherIndexPaths(const DataPlan& data, const SourcePlan& source) {
  const std::string own = IndexPath(data, source), begin = FileNameOf(source.name) + ".";
  std::vector<std::pair<std::filesystem::file_time_type, std::string>> found;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(IndexFolder(data), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(begin) || !name.ends_with(".index") || entry->path() == own) continue;
    std::error_code gone;
    const std::filesystem::file_time_type written = entry->last_write_time(gone);
    if (!gone) found.emplace_back(written, entry->path().string());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> paths;
  for (auto& [written, path] : found) paths.push_back(std::move(path));
  return paths;
}

std::string IndexPartsFolder(const DataPlan& data, const SourcePlan& source) { return PathOf(data, source, ".parts"); }

std::string LeftOutPath(const DataPlan& data, const SourcePlan& source) {
  return PathOf(data, source, ".left_out.txt");
}

ReadingSettings ReadingOf(const DataPlan& data, const SourcePlan& source) {
  ReadingSettings settings;
  settings.ids = data.tokenizer == "ids";
  for (const std::string& extension : source.ignore) settings.ignore.insert(absl::AsciiStrToLower(extension));
  settings.decode_images = settings.keep_damaged = data.damaged == "skip";
  settings.turned = data.orientation == "exif";
  if (!settings.ids) return settings;
  settings.vocabulary = data.vocabulary;
  settings.image_token = data.image_token;
  for (const EncoderData& encoder : data.encoders) {
    if (encoder.token != data.image_token) settings.other_image_tokens.insert(encoder.token);
  }
  return settings;
}

DigestBytes SourceDigest(const DataPlan& data, const SourcePlan& source) {
  return BytesOfDigest(
      Sha256Hex(absl::StrCat(HexOfDigest(ReadingOf(data, source).Digest()), "\n", absl::StrJoin(source.shards, "\n"),
                             "\n\n", data.tokenizer_digest, "\n", data.template_digest)));
}

}  // namespace planwright
