// Samples of several sources, mixed by weight (docs/training/data.md#sources). A sample is of one source, which has
// numbers for its own samples: epoch after epoch, each with every pack once. Nothing changes after opening but the
// tables of the latest epochs, which EpochOrder holds.
#include "planner/data/samples/mixed_source.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "planner/base/digest/sha256.h"
#include "planner/base/threads/threads.h"
#include "planner/data/samples/document_reader.h"
#include "planner/data/samples/mixture.h"
#include "planner/data/samples/packs.h"
#include "planner/data/samples/shuffle.h"
#include "planner/plan/sample_images.h"

namespace planwright {
namespace {

struct OpenSource {
  std::string name;
  std::unique_ptr<Documents> documents;
  Packs packs;
  std::unique_ptr<EpochOrder> order;
};

// Images of the samples of a source for one encoder.
struct ImageSums {
  int64_t images = 0, patches = 0, max_images = 0, max_patches = 0;
  std::map<int64_t, int64_t> of_size;  // images, by patches

  void AddSample(int64_t images_of_sample, int64_t patches_of_sample) {
    images += images_of_sample, patches += patches_of_sample;
    max_images = std::max(max_images, images_of_sample), max_patches = std::max(max_patches, patches_of_sample);
  }
  void Add(const ImageSums& other) {
    images += other.images, patches += other.patches;
    max_images = std::max(max_images, other.max_images), max_patches = std::max(max_patches, other.max_patches);
    for (const auto& [size, count] : other.of_size) of_size[size] += count;
  }
};

// Documents of a sample, or of several.
struct DocumentSums {
  int64_t documents = 0, squares = 0;

  void AddDocument(int64_t tokens) { ++documents, squares += tokens * tokens; }
  void Add(const DocumentSums& other) { documents += other.documents, squares += other.squares; }
};

// CountedImages::sizes: image number i of n, by size, is in group i * groups / n.
std::vector<int64_t> SizesOf(const ImageSums& sums) {
  const int64_t groups = std::min(kMostImageSizes, sums.images);
  std::vector<int64_t> sizes;
  int64_t number = 0;  // of images that are done
  auto size = sums.of_size.begin();
  int64_t left = size == sums.of_size.end() ? 0 : size->second;
  for (int64_t group = 0; group < groups; ++group) {
    const int64_t end = (group + 1) * sums.images / groups, members = end - number;
    int64_t patches = 0;
    while (number < end) {
      const int64_t taken = std::min(left, end - number);
      patches += taken * size->first, number += taken, left -= taken;
      if (left == 0 && ++size != sums.of_size.end()) left = size->second;
    }
    sizes.push_back((patches + members / 2) / members);
  }
  return sizes;
}

class MixedSource : public SampleSource {
 public:
  MixedSource(const Plan& plan, std::vector<OpenSource> sources, const std::vector<int64_t>& weights)
      : data_(plan.data), length_(plan.budget.sequence_length), sources_(std::move(sources)), mixture_(weights),
        reader_(data_) {
    std::string all;
    for (const OpenSource& source : sources_)
      absl::StrAppend(&all, source.name, "\n", source.documents->digest(), "\n", source.documents->left_out(), "\n",
                      source.packs.padded());
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
      ExpandDocument(data_, *place.source->documents, item.document, expanded);
      if (expanded.damaged()) continue;
      for (const ExpandedPicture& picture : expanded.pictures) {
        if (!IsIn(picture, item)) continue;
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
      ExpandDocument(data_, *place.source->documents, item.document, expanded);
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

  absl::StatusOr<std::vector<CountedImages>> CountImages() const override {
    std::vector<std::vector<ImageSums>> all;  // by source, then by encoder
    for (const OpenSource& source : sources_) all.push_back(SumsOf(source));
    std::vector<CountedImages> counted;
    for (size_t e = 0; e < data_.encoders.size(); ++e) {
      for (size_t s = 0; s < sources_.size(); ++s) {
        const ImageSums& sums = all[s][e];
        counted.push_back({.encoder = data_.encoders[e].module,
                           .source = sources_[s].name,
                           .samples = sources_[s].packs.size(),
                           .images = sums.images,
                           .patches = sums.patches,
                           .max_images = sums.max_images,
                           .max_patches = sums.max_patches,
                           .sizes = SizesOf(sums)});
      }
    }
    return counted;
  }

  std::vector<CountedDocuments> CountDocuments() const override {
    std::vector<CountedDocuments> counted;
    if (!data_.packed_documents) return counted;
    for (const OpenSource& source : sources_) {
      CountedDocuments& one = counted.emplace_back();
      one.source = source.name, one.samples = source.packs.size();
      const auto add_pack = [&](int64_t pack, DocumentSums& sums) {
        std::vector<PackItem> items;
        source.packs.Items(pack, items);
        sums.Add(DocumentsOf(source, items));
      };
      // The squares of a stretch are whole numbers; of all they may be too many for one.
      const std::vector<DocumentSums> parts = SumStretches(source, DocumentSums(), add_pack);
      double squares = 0;
      for (const DocumentSums& part : parts)
        one.documents += part.documents, squares += static_cast<double>(part.squares);
      one.mean_squares = std::llround(squares / static_cast<double>(one.samples));
    }
    return counted;
  }

  int64_t DocumentSquares(int64_t number) const override {
    if (!data_.packed_documents) return 0;
    const Place place = Find(number);
    return DocumentsOf(*place.source, place.items).squares;
  }

  std::vector<SourceCounts> Counts() const override {
    std::vector<SourceCounts> counts;
    for (const OpenSource& source : sources_) {
      SourceCounts& one = counts.emplace_back(source.packs.counts());
      if (one.largest_document >= 0)
        one.largest = source.documents->PictureName(one.largest_document, one.largest_image);
    }
    return counts;
  }

 private:
  struct Place {
    const OpenSource* source = nullptr;
    int64_t epoch = 0, pack = 0;
    std::vector<PackItem> items;
  };

  // What add_pack(pack, sums) adds to `none` for the packs of each stretch, in their order, whatever the threads that
  // take stretches.
  template <typename Sums, typename AddPack>
  static std::vector<Sums> SumStretches(const OpenSource& source, const Sums& none, const AddPack& add_pack) {
    constexpr int64_t kStretch = 4096;
    const int64_t packs = source.packs.size(), stretches = (packs + kStretch - 1) / kStretch;
    std::vector<Sums> parts(stretches, none);
    ForEachItem(ThreadsOfRank(), stretches, [&](int64_t stretch) {
      for (int64_t pack = stretch * kStretch; pack < std::min(packs, (stretch + 1) * kStretch); ++pack)
        add_pack(pack, parts[stretch]);
    });
    return parts;
  }

  // By encoder.
  std::vector<ImageSums> SumsOf(const OpenSource& source) const {
    std::vector<ImageSums> sums(data_.encoders.size());
    const auto add_pack = [&](int64_t pack, std::vector<ImageSums>& of) { AddPack(source, pack, of); };
    const std::vector<std::vector<ImageSums>> parts = SumStretches(source, sums, add_pack);
    for (const std::vector<ImageSums>& part : parts) {
      for (size_t e = 0; e < sums.size(); ++e) sums[e].Add(part[e]);
    }
    return sums;
  }

  // The documents of a sample of these items: as Get ends them.
  DocumentSums DocumentsOf(const OpenSource& source, const std::vector<PackItem>& items) const {
    DocumentSums sums;
    int64_t padding = length_;
    ExpandedDocument expanded;
    for (const PackItem& item : items) {
      int64_t tokens = item.piece.end - item.piece.first;
      if (item.piece.end == 0) {
        ExpandDocument(data_, *source.documents, item.document, expanded);
        tokens = expanded.tokens;
      }
      sums.AddDocument(tokens);
      padding -= tokens;
    }
    if (padding > 0) sums.AddDocument(padding);
    return sums;
  }

  void AddPack(const OpenSource& source, int64_t pack, std::vector<ImageSums>& sums) const {
    std::vector<PackItem> items;
    source.packs.Items(pack, items);
    int64_t images = 0;
    std::vector<int64_t> patches(sums.size());
    ExpandedDocument expanded;
    for (const PackItem& item : items) {
      ExpandDocument(data_, *source.documents, item.document, expanded);
      if (expanded.damaged()) continue;
      for (const ExpandedPicture& picture : expanded.pictures) {
        if (!IsIn(picture, item)) continue;
        ++images;
        for (size_t e = 0; e < sums.size(); ++e) {
          const int64_t size = picture.grids[e].rows * picture.grids[e].cols;
          patches[e] += size;
          ++sums[e].of_size[size];
        }
      }
    }
    for (size_t e = 0; e < sums.size(); ++e) sums[e].AddSample(images, patches[e]);
  }

  static bool IsIn(const ExpandedPicture& picture, const PackItem& item) {
    return item.piece.end == 0 || (picture.first >= item.piece.first && picture.end <= item.piece.end);
  }

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

// More damaged documents than the recipe allows, of the index and those with an image that is longer than a sample.
absl::Status CheckDamaged(const DataPlan& data, const std::vector<OpenSource>& sources) {
  int64_t damaged = 0;
  std::string each;
  for (const OpenSource& source : sources) {
    const SourceCounts& counts = source.packs.counts();
    const int64_t here = counts.damaged + counts.padded + counts.misfit;
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
