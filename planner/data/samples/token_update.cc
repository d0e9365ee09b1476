#include "planner/data/samples/token_update.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>

#include "planner/base/digest/sha256.h"
#include "planner/base/files/file_io.h"
#include "planner/base/text/utf8.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/file_window.h"
#include "planner/data/samples/image_meter.h"
#include "planner/data/samples/index_settings.h"
#include "planner/data/samples/index_writer.h"

namespace planwright {
namespace {

// The digest is made of those of parts, so that several threads can make it. A part ends with the sequence that fills
// it; so the digest depends on this number.
constexpr int64_t kPartBytes = 1 << 22;
constexpr int64_t kReadBytes = 1 << 18;  // a multiple of the bytes of any token
constexpr size_t kMostTold = 20;         // documents with wrong ids

}  // namespace

absl::StatusOr<TokenUpdate> TokenUpdate::Open(const DataPlan& data, const SourcePlan& source) {
  absl::StatusOr<TokenIdx> idx = TokenIdx::Open(ResolvePath(data.base, source.path));
  if (!idx.ok()) return idx.status();
  return TokenUpdate(data, source, *std::move(idx));
}

TokenUpdate::TokenUpdate(const DataPlan& data, const SourcePlan& source, TokenIdx idx)
    : name_(source.name), record_path_(IndexPath(data, source)), rule_(TokenRuleOf(data)), idx_(std::move(idx)) {
  now_.settings = TokenSettingsDigest(data, source, idx_);
}

void TokenUpdate::Look(bool anew) {
  fresh_ = false;
  note_.clear();
  const absl::StatusOr<NamedFile> about = StatFile("", idx_.bin().path(), IndexedFileKind::kPlain);
  if (!about.ok()) return;  // Read says why
  now_.bytes = about->bytes;
  now_.changed = about->changed;
  const absl::StatusOr<DigestBytes> sample = SampleOfBin(idx_.bin());
  if (!sample.ok()) return;
  now_.sample = *sample;
  const absl::StatusOr<TokenRecord> kept = ReadTokenRecord(record_path_);
  if (absl::IsFailedPrecondition(kept.status()))
    note_ = absl::StrCat(kept.status().message(), ": all ids are read again");
  if (!kept.ok() || anew) return;  // one that is damaged is made anew
  now_.ids = kept->ids;
  fresh_ = *kept == now_;
  if (kept->bytes == now_.bytes && kept->changed == now_.changed && kept->sample != now_.sample) {
    note_ =
        absl::StrCat(idx_.bin().path(), " has the size and the time that it had, and other ids: they are read again");
  }
}

absl::Status TokenUpdate::Read(int jobs, absl::FunctionRef<void(int64_t documents, int64_t bytes)> progress) {
  std::vector<Part> parts = Parts();
  ForEachItem(jobs, static_cast<int64_t>(parts.size()), [&](int64_t number) {
    Part& part = parts[number];
    part.status = ReadPart(part);
    int64_t bytes = 0;
    for (int64_t i = part.first; i < part.end; ++i) bytes += idx_.Bytes(i);
    // Documents that begin here.
    const int64_t before = part.first == 0 ? 0 : idx_.DocumentOf(part.first - 1) + 1;
    progress(std::max<int64_t>(idx_.DocumentOf(part.end - 1) + 1 - before, 0), bytes);
  });
  std::string digests;
  std::vector<std::string> lines;
  int64_t told = -1;
  for (const Part& part : parts) {
    if (!part.status.ok()) return part.status;
    absl::StrAppend(&digests, part.digest, "\n");
    for (const auto& [document, why] : part.wrong) {
      if (document == told || lines.size() == kMostTold) continue;
      told = document;
      lines.push_back(Printable(absl::StrCat(idx_.bin().path(), ": document ", document, ": ", why)));
    }
  }
  const absl::StatusOr<NamedFile> after = StatFile("", idx_.bin().path(), IndexedFileKind::kPlain);
  if (!after.ok()) return after.status();
  if (after->bytes != now_.bytes || after->changed != now_.changed || after->bytes != idx_.bin().bytes())
    return absl::UnavailableError(absl::StrCat(idx_.bin().path(), ": it was changed while it was read"));
  const absl::StatusOr<DigestBytes> sample = SampleOfBin(idx_.bin());
  if (!sample.ok()) return sample.status();
  now_.sample = *sample;
  if (!lines.empty()) return absl::InvalidArgumentError(absl::StrJoin(lines, "\n"));
  now_.ids = BytesOfDigest(Sha256Hex(digests));
  read_ = true;
  return absl::OkStatus();
}

std::vector<TokenUpdate::Part> TokenUpdate::Parts() const {
  std::vector<Part> parts;
  int64_t first = 0, bytes = 0;
  for (int64_t i = 0; i < idx_.sequences(); ++i) {
    bytes += idx_.Bytes(i);
    if (bytes < kPartBytes && i + 1 < idx_.sequences()) continue;
    parts.push_back({first, i + 1, {}, {}, {}});
    first = i + 1;
    bytes = 0;
  }
  return parts;
}

absl::Status TokenUpdate::ReadPart(Part& part) const {
  Sha256 digest;
  FileWindow window(idx_.bin());
  std::vector<int64_t> ids;
  int64_t document = idx_.DocumentOf(part.first), place = 0;
  for (int64_t i = idx_.FirstSequence(document); i < part.first; ++i) place += idx_.Length(i);
  for (int64_t i = part.first; i < part.end; ++i) {
    for (; idx_.FirstSequence(document + 1) <= i; ++document) place = 0;
    for (int64_t at = 0; at < idx_.Bytes(i); at += kReadBytes) {
      const int64_t count = std::min(kReadBytes, idx_.Bytes(i) - at);
      const absl::StatusOr<std::string_view> bytes = window.Read(idx_.Offset(i) + at, count);
      if (!bytes.ok()) return bytes.status();
      digest.Add(bytes->data(), bytes->size());
      const bool known = part.wrong.size() == kMostTold || (!part.wrong.empty() && part.wrong.back().first == document);
      ids.clear();
      idx_.AppendTokens(*bytes, ids);
      std::string why = known ? "" : WrongId(rule_, ids, place);
      if (!why.empty()) part.wrong.emplace_back(document, std::move(why));
      place += static_cast<int64_t>(ids.size());
    }
  }
  part.digest = digest.Hex();
  return absl::OkStatus();
}

IndexedSource TokenUpdate::Summary() const {
  IndexedSource summary;
  summary.name = name_;
  summary.kind = SourceKind::kTokens;
  summary.path = record_path_;
  summary.shards = 1;
  summary.shards_read = read_ ? 1 : 0;
  summary.made = read_;
  summary.left_out = static_cast<int64_t>(idx_.empty().size());
  summary.documents = idx_.documents() - summary.left_out;
  int64_t end = 0;
  for (int64_t i = 0; i < idx_.sequences(); ++i) {
    summary.tokens += idx_.Length(i);
    end = std::max(end, idx_.Offset(i) + idx_.Bytes(i));
  }
  if (end < idx_.bin().bytes()) {
    summary.notes.push_back(absl::StrCat(idx_.bin().path(), " has ", idx_.bin().bytes() - end,
                                         " bytes behind the last sequence of its .idx, which are not read"));
  }
  summary.digest = TokenDigest(idx_, now_);
  return summary;
}

}  // namespace planwright
