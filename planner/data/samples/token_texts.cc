#include "planner/data/samples/token_texts.h"

#include <absl/strings/str_cat.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "planner/base/files/file_io.h"
#include "planner/base/json/json_text.h"
#include "planner/data/samples/shard_list.h"

namespace planwright {
namespace {

// A character from U+0000 to U+00FF is the byte of this number. Nothing for any other.
absl::StatusOr<std::string> BytesOfPiece(const std::string& piece) {
  std::string bytes;
  for (size_t i = 0; i < piece.size(); ++i) {
    const unsigned char lead = static_cast<unsigned char>(piece[i]);
    if (lead < 0x80) {
      bytes += piece[i];
    } else if ((lead == 0xC2 || lead == 0xC3) && i + 1 < piece.size()) {
      bytes += static_cast<char>((lead & 3) << 6 | (static_cast<unsigned char>(piece[++i]) & 0x3F));
    } else {
      return absl::InvalidArgumentError("has a character above U+00FF");
    }
  }
  return bytes;
}

// Where a source's shards lie. Of a mixture without this source, or one without a shard: NotFound.
absl::StatusOr<std::filesystem::path> FolderOfShards(const DataPlan& data, const std::string& name) {
  for (const SourcePlan& source : data.sources) {
    if (source.name != name) continue;
    if (!RowOf(source.kind).shards) return std::filesystem::path(ResolvePath(data.base, source.path)).parent_path();
    const absl::StatusOr<std::vector<std::string>> shards = ExpandAllShards(data.base, source.shards);
    if (!shards.ok()) return shards.status();
    if (!shards->empty()) return std::filesystem::path(ResolvePath(data.base, shards->front())).parent_path();
  }
  return absl::NotFoundError(absl::StrCat("source ", name, " has no shards"));
}

}  // namespace

absl::StatusOr<TokenTexts> TokenTexts::Open(const DataPlan& data, const std::string& source) {
  TokenTexts texts;
  texts.bytes_ = data.tokenizer == "bytes";
  if (texts.bytes_) return texts;
  const absl::StatusOr<std::filesystem::path> folder = FolderOfShards(data, source);
  if (!folder.ok()) return folder.status();
  const std::string path = *folder / kPiecesFile;
  std::error_code unreadable;  // then reading says why
  if (!std::filesystem::exists(path, unreadable) && !unreadable) return absl::NotFoundError(absl::StrCat("no ", path));
  const absl::StatusOr<std::string> file = ReadWholeFile(path, kPiecesJson.bytes);
  if (!file.ok()) return file.status();
  const absl::StatusOr<nlohmann::json> json = ParseJson(*file, kPiecesJson);
  const auto wrong = [&](absl::string_view what) { return absl::InvalidArgumentError(absl::StrCat(path, ": ", what)); };
  if (!json.ok()) return wrong(json.status().message());
  if (!json->is_array()) return wrong("is not a list");
  for (const nlohmann::json& piece : *json) {
    if (!piece.is_string()) return wrong(absl::StrCat("entry ", texts.pieces_.size(), " is not a text"));
    absl::StatusOr<std::string> bytes = BytesOfPiece(piece.get<std::string>());
    if (!bytes.ok()) return wrong(absl::StrCat("entry ", texts.pieces_.size(), " ", bytes.status().message()));
    texts.pieces_.push_back(*std::move(bytes));
  }
  return texts;
}

std::string TokenTexts::Bytes(int64_t token) const {
  if (token < 0) return "";
  if (bytes_) return token < 256 ? std::string(1, static_cast<char>(token)) : "";
  return token < static_cast<int64_t>(pieces_.size()) ? pieces_[token] : "";
}

}  // namespace planwright
