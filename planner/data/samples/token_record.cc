#include "planner/data/samples/token_record.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
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
  DigestBytes sample, sum;
};
static_assert(sizeof(RecordFile) == 8 + 2 * 32 + 2 * 8 + 2 * 32);

// The last character but one is the version.
constexpr size_t kVersionAt = 6;
constexpr std::array<char, 8> kMagic = {'P', 'W', 'T', 'O', 'K', 'E', '2', '\n'};

DigestBytes SumOf(const RecordFile& file) {
  return BytesOfDigest(Sha256Hex({reinterpret_cast<const char*>(&file), offsetof(RecordFile, sum)}));
}

}  // namespace

absl::StatusOr<DigestBytes> SampleOfBin(const PlainFile& bin) {
  constexpr int64_t kWindows = 64, kWindow = 4096;
  Sha256 digest;
  std::string bytes;
  const int64_t last = std::max<int64_t>(bin.bytes() - kWindow, 0);
  for (int64_t i = 0, before = -1; i < kWindows; ++i) {
    // The first at the begin, the last at the end.
    const int64_t at = last / (kWindows - 1) * i + last % (kWindows - 1) * i / (kWindows - 1);
    if (at == before) continue;
    before = at;
    bytes.resize(static_cast<size_t>(std::min(kWindow, bin.bytes() - at)));
    if (absl::Status status = bin.Read(at, std::as_writable_bytes(std::span(bytes))); !status.ok()) return status;
    digest.Add(bytes.data(), bytes.size());
  }
  return BytesOfDigest(digest.Hex());
}

DigestBytes TokenSettingsDigest(const DataPlan& data, const SourcePlan& source, const TokenIdx& idx) {
  const TokenRule rule = TokenRuleOf(data);
  return BytesOfDigest(Sha256Hex(absl::StrCat(rule.vocabulary, "\n", absl::StrJoin(rule.image_tokens, " "), "\n",
                                              idx.digest(), "\n", source.path)));
}

absl::StatusOr<TokenRecord> ReadTokenRecord(const std::string& path) {
  const absl::StatusOr<PlainFile> opened = PlainFile::Open(path);
  if (!opened.ok()) return opened.status();
  RecordFile file{};
  const auto known = std::min<int64_t>(opened->bytes(), sizeof file);
  const auto into = std::as_writable_bytes(std::span(&file, 1)).first(static_cast<size_t>(known));
  if (absl::Status status = opened->Read(0, into); !status.ok()) return status;
  std::array<char, 8> other = file.magic;
  other[kVersionAt] = kMagic[kVersionAt];
  if (other == kMagic && file.magic != kMagic) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": an index of version ", std::string(1, file.magic[kVersionAt]),
                     "; this program reads version ", std::string(1, kMagic[kVersionAt])));
  }
  if (opened->bytes() != sizeof file || file.magic != kMagic || file.sum != SumOf(file))
    return absl::DataLossError(absl::StrCat(path, " is damaged"));
  return TokenRecord{file.settings, file.ids, file.bytes, file.changed, file.sample};
}

absl::Status WriteTokenRecord(const std::string& path, const TokenRecord& record) {
  RecordFile file{kMagic, record.settings, record.ids, record.bytes, record.changed, record.sample, {}};
  file.sum = SumOf(file);
  return WriteFileAtomically(path, {reinterpret_cast<const char*>(&file), sizeof file});
}

std::string TokenDigest(const TokenIdx& idx, const TokenRecord& record) {
  return Sha256Hex(absl::StrCat("tokens\n", idx.digest(), "\n", HexOfDigest(record.ids)));
}

}  // namespace planwright
