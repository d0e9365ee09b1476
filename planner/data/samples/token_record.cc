#include "planner/data/samples/token_record.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <array>
#include <cstddef>
#include <span>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/data/samples/index_writer.h"
#include "planner/data/samples/token_rule.h"

namespace planwright {
namespace {

// The file: all of it. Its sum is that of the bytes before it.
struct RecordFile {
  std::array<char, 8> magic;
  DigestBytes settings, ids;
  int64_t bytes, changed;
  DigestBytes sum;
};
static_assert(sizeof(RecordFile) == 8 + 2 * 32 + 2 * 8 + 32);

// The last character but one is the version.
constexpr std::array<char, 8> kMagic = {'P', 'W', 'T', 'O', 'K', 'E', '1', '\n'};

DigestBytes SumOf(const RecordFile& file) {
  return BytesOfDigest(Sha256Hex({reinterpret_cast<const char*>(&file), offsetof(RecordFile, sum)}));
}

}  // namespace

DigestBytes TokenSettingsDigest(const DataPlan& data, const SourcePlan& source, const TokenIdx& idx) {
  const TokenRule rule = TokenRuleOf(data);
  return BytesOfDigest(Sha256Hex(absl::StrCat(rule.vocabulary, "\n", absl::StrJoin(rule.image_tokens, " "), "\n",
                                              idx.digest(), "\n", source.path)));
}

absl::StatusOr<TokenRecord> ReadTokenRecord(const std::string& path) {
  const absl::StatusOr<PlainFile> opened = PlainFile::Open(path);
  if (!opened.ok()) return opened.status();
  RecordFile file{};
  if (opened->bytes() == sizeof file) {
    if (absl::Status status = opened->Read(0, std::as_writable_bytes(std::span(&file, 1))); !status.ok()) return status;
  }
  if (file.magic != kMagic || file.sum != SumOf(file))
    return absl::DataLossError(absl::StrCat(path, " is damaged, or of another version"));
  return TokenRecord{file.settings, file.ids, file.bytes, file.changed};
}

absl::Status WriteTokenRecord(const std::string& path, const TokenRecord& record) {
  RecordFile file{kMagic, record.settings, record.ids, record.bytes, record.changed, {}};
  file.sum = SumOf(file);
  return WriteFileAtomically(path, {reinterpret_cast<const char*>(&file), sizeof file});
}

std::string TokenDigest(const TokenIdx& idx, const TokenRecord& record) {
  return Sha256Hex(absl::StrCat("tokens\n", idx.digest(), "\n", HexOfDigest(record.ids)));
}

}  // namespace planwright
