// Samples of several sources, mixed by weight (docs/training/data.md#sources). A sample is of one source, which has
// numbers for its own samples: epoch after epoch, each with every pack once. Nothing changes after opening but the
// tables of the latest epochs, which EpochOrder holds.
#include "planner/data/samples/mixed_source.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "planner/base/digest/sha256.h"
#include "planner/base/text/bug.h"
#include "planner/data/samples/document_reader.h"
#include "planner/data/samples/mixture.h"
#include "planner/data/samples/packs.h"
#include "planner/data/samples/shuffle.h"

namespace planwright {
namespace {

struct OpenSource {
  std::string name;
  std::unique_ptr<Documents> documents;
  Packs packs;
  std::unique_ptr<EpochOrder> order;
};

class MixedSource : public SampleSource {
 public:
  MixedSource(const Plan& plan, std::vector<OpenSource> sources, const std::vector<int64_t>& weights)
      : data_(plan.data), length_(plan.budget.sequence_length), sources_(std::move(sources)), mixture_(weights),
        reader_(data_) {
    std::string all;
    for (const OpenSource& source : sources_)
      absl::StrAppend(&all, source.name, "\n", source.documents->digest(), "\n", source.documents->left_out(), "\n");
    digest_ = Sha256Hex(all);
  }

  absl::StatusOr<Sample> Get(int64_t number, SampleParts parts) const override {
    const Place place = Find(number);
    Sample sample;
    sample.images.resize(data_.encoders.size());
    sample.tokens.reserve(length_);
    std::vector<uint8_t> learnt;
    learnt.reserve(length_);
    for (const PackItem& item : place.items) {
      const absl::Status status = reader_.Append(*place.source->documents, item, parts, sample, learnt);
      if (!status.ok()) return status;
    }
    FinishSample(data_, length_, data_.pad_token, sample, learnt);
    return sample;
  }

  absl::StatusOr<int64_t> Patches(int64_t number) const override {
    if (data_.encoders.empty()) return 0;
    const Place place = Find(number);
    ExpandedDocument expanded;
    int64_t patches = 0;
    for (const PackItem& item : place.items) {
      const absl::Status status = ExpandDocument(data_, *place.source->documents, item.document, expanded);
      if (!status.ok()) return status;
      for (const ExpandedPicture& picture : expanded.pictures) {
        if (item.piece.end != 0 && (picture.first < item.piece.first || picture.end > item.piece.end)) continue;
        patches += picture.grids.front().rows * picture.grids.front().cols;
      }
    }
    return patches;
  }

  SampleOrigin Origin(int64_t number) const override {
    const Place place = Find(number);
    SampleOrigin origin{.source = place.source->name, .epoch = place.epoch, .pack = place.pack, .documents = {}};
    ExpandedDocument expanded;
    for (const PackItem& item : place.items) {
      // Packs has seen that it does not fail.
      const absl::Status status = ExpandDocument(data_, *place.source->documents, item.document, expanded);
      Require(status.ok(), "a document that was packed and does not expand");
      const TokenRange range = item.piece.end == 0 ? TokenRange{0, expanded.tokens} : item.piece;
      origin.documents.push_back(
          {place.source->documents->Where(item.document), range.first, range.end, expanded.tokens});
    }
    return origin;
  }

  std::string digest() const override { return digest_; }

  std::map<std::string, std::string> SourceDigests() const override {
    std::map<std::string, std::string> digests;
    for (const OpenSource& source : sources_) digests[source.name] = source.documents->digest();
    return digests;
  }

  std::vector<SourceCounts> Counts() const override {
    std::vector<SourceCounts> counts;
    for (const OpenSource& source : sources_) counts.push_back(source.packs.counts());
    return counts;
  }

 private:
  struct Place {
    const OpenSource* source = nullptr;
    int64_t epoch = 0, pack = 0;
    std::vector<PackItem> items;
  };

  Place Find(int64_t number) const {
    const Mixture::Turn turn = mixture_.At(number);
    Place place{.source = &sources_[turn.source], .epoch = 0, .pack = 0, .items = {}};
    place.epoch = turn.number / place.source->packs.size();
    place.pack = place.source->order->Pack(place.epoch, turn.number % place.source->packs.size());
    place.source->packs.Items(place.pack, place.items);
    return place;
  }

  const DataPlan data_;
  const int64_t length_;
  const std::vector<OpenSource> sources_;
  const Mixture mixture_;
  const DocumentReader reader_;
  std::string digest_;
};

// More damaged documents than the recipe allows, of the index and those whose images do not fit.
absl::Status CheckDamaged(const DataPlan& data, const std::vector<OpenSource>& sources) {
  int64_t damaged = 0;
  std::string each;
  for (const OpenSource& source : sources) {
    const int64_t here = source.packs.counts().damaged + source.packs.counts().misfit;
    damaged += here;
    if (here > 0) absl::StrAppend(&each, each.empty() ? "" : ", ", source.name, " ", here);
  }
  if (data.damaged != "skip" || damaged <= data.most_damaged) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(damaged, " documents are damaged or have images that do not fit (",
                                                 each, "), but most_damaged is ", data.most_damaged));
}

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> MixSources(const Plan& plan,
                                                         std::vector<std::unique_ptr<Documents>> documents) {
  std::vector<OpenSource> sources;
  std::vector<int64_t> weights;
  std::string problems;
  const ShuffleRule shuffle = ShuffleRuleOf(plan.data.shuffle);
  for (size_t i = 0; i < documents.size(); ++i) {
    const SourcePlan& source = plan.data.sources[i];
    absl::StatusOr<Packs> packs = Packs::Make(plan.data, source.name, *documents[i], plan.budget.sequence_length);
    if (!packs.ok()) {
      absl::StrAppend(&problems, problems.empty() ? "" : "\n", packs.status().message());
      continue;
    }
    auto order =
        std::make_unique<EpochOrder>(shuffle, plan.data.seed, source.name, packs->stretch_packs(), packs->kept());
    sources.push_back({source.name, std::move(documents[i]), *std::move(packs), std::move(order)});
    weights.push_back(source.weight);
  }
  if (!problems.empty()) return absl::InvalidArgumentError(problems);
  if (absl::Status status = CheckDamaged(plan.data, sources); !status.ok()) return status;
  return std::make_unique<MixedSource>(plan, std::move(sources), weights);
}

absl::StatusOr<std::unique_ptr<SampleSource>> OpenSources(const Plan& plan) {
  std::vector<std::unique_ptr<Documents>> documents;
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string problems;
  for (const SourcePlan& source : plan.data.sources) {
    absl::StatusOr<std::unique_ptr<Documents>> opened = OpenDocuments(plan.data, source);
    if (opened.ok()) {
      documents.push_back(*std::move(opened));
      continue;
    }
    if (problems.empty()) code = opened.status().code();
    absl::StrAppend(&problems, problems.empty() ? "" : "\n", opened.status().message());
  }
  if (!problems.empty()) return absl::Status(code, problems);
  return MixSources(plan, std::move(documents));
}

}  // namespace planwright
