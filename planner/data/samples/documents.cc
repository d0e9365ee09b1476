#include "planner/data/samples/documents.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "planner/base/files/file_io.h"
#include "planner/data/samples/index_file.h"
#include "planner/data/samples/index_settings.h"
#include "planner/data/samples/tar_documents.h"
#include "planner/data/samples/token_documents.h"
#include "planner/data/samples/token_record.h"
#include "planner/data/samples/token_rule.h"

namespace planwright {
namespace {

constexpr size_t kMostOpenShards = 256;  // of all sources of a process

absl::Status RunIndex(const SourcePlan& source, const std::string& what) {
  return absl::FailedPreconditionError(
      absl::StrCat("source ", source.name, ": ", what, ": run `plan data index` with the recipe"));
}

absl::StatusOr<std::unique_ptr<Documents>> OpenIndexed(const DataPlan& data, const SourcePlan& source) {
  const std::string path = IndexPath(data, source);
  absl::StatusOr<IndexFile> index = IndexFile::Open(path);
  if (absl::IsNotFound(index.status())) return RunIndex(source, absl::StrCat("there is no index ", path));
  if (absl::IsFailedPrecondition(index.status()) || absl::IsDataLoss(index.status()))
    return RunIndex(source, std::string(index.status().message()));
  if (!index.ok()) return index.status();
  if (index->header().source != SourceDigest(data, source))
    return RunIndex(source, absl::StrCat("the index ", path, " was made with other settings or shards"));
  const size_t sources = std::max<size_t>(data.sources.size(), 1);
  return MakeTarDocuments(*std::move(index), {.base = data.base,
                                              .ids = data.tokenizer == "ids",
                                              .image_token = data.image_token,
                                              .end_token = data.end_token,
                                              .turned = data.orientation == "exif",
                                              .open_files = std::max<size_t>(kMostOpenShards / sources, 4)});
}

absl::StatusOr<std::unique_ptr<Documents>> OpenTokens(const DataPlan& data, const SourcePlan& source) {
  absl::StatusOr<TokenIdx> idx = TokenIdx::Open(ResolvePath(data.base, source.path));
  if (!idx.ok()) return idx.status();
  const std::string path = IndexPath(data, source);
  const absl::StatusOr<TokenRecord> record = ReadTokenRecord(path);
  if (absl::IsNotFound(record.status())) return RunIndex(source, absl::StrCat("there is no index ", path));
  if (absl::IsFailedPrecondition(record.status()) || absl::IsDataLoss(record.status()))
    return RunIndex(source, std::string(record.status().message()));
  if (!record.ok()) return record.status();
  if (record->settings != TokenSettingsDigest(data, source, *idx))
    return RunIndex(source, absl::StrCat("the index ", path, " was made with other settings, or of another .idx"));
  if (record->bytes != idx->bin().bytes()) {
    return RunIndex(source, absl::StrCat(idx->bin().path(), " has ", idx->bin().bytes(), " bytes, and it had ",
                                         record->bytes, " when the index was made"));
  }
  const absl::StatusOr<DigestBytes> sample = SampleOfBin(idx->bin());
  if (!sample.ok()) return sample.status();
  if (record->sample != *sample) {
    return RunIndex(source, absl::StrCat(idx->bin().path(),
                                         " has other ids than when the index was made, though its size is the same"));
  }
  std::string digest = TokenDigest(*idx, *record);
  return MakeTokenDocuments(*std::move(idx), TokenRuleOf(data), std::move(digest));
}

}  // namespace

std::string Documents::PictureName(int64_t document, int64_t index) const {
  return absl::StrCat(Where(document), ": image ", index + 1);
}

absl::StatusOr<std::unique_ptr<Documents>> OpenDocuments(const DataPlan& data, const SourcePlan& source) {
  switch (source.kind) {
    case SourceKind::kWebdataset: return OpenIndexed(data, source);
    case SourceKind::kTokens: break;
  }
  return OpenTokens(data, source);
}

}  // namespace planwright
