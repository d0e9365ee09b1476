#include "planner/data/samples/packs.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

#include "planner/base/text/bug.h"
#include "planner/data/samples/first_fit.h"
#include "planner/data/samples/shuffle.h"

namespace planwright {
namespace {

constexpr uint32_t kPieceBit = uint32_t{1} << 31;
constexpr int64_t kMostDocuments = kPieceBit;  // and as many pieces
constexpr int64_t kShownProblems = 5;

// The first few problems with documents, and how many there are.
class Problems {
 public:
  void Add(const Documents& documents, int64_t document, absl::string_view what) {
    if (++count_ <= kShownProblems)
      absl::StrAppend(&text_, text_.empty() ? "" : "\n", documents.Where(document), ": ", what);
  }
  absl::Status Take(absl::string_view help) const {
    if (count_ == 0) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        text_, count_ > kShownProblems ? absl::StrCat("\nand ", count_ - kShownProblems, " more documents") : "",
        help));
  }

 private:
  std::string text_;
  int64_t count_ = 0;
};

}  // namespace

class Packer {
 public:
  Packer(const DataPlan& data, const std::string& source, const Documents& documents, int64_t sequence_length)
      : data_(data), documents_(documents), length_(sequence_length),
        order_(ShuffleRuleOf(data.shuffle), data.seed, source, documents.shard_begins()), first_fit_(sequence_length) {
    packs_.counts_.source = source;
    packs_.counts_.damaged = documents.left_out();
    packs_.counts_.without_tokens = documents.without_tokens();
    packs_.counts_.documents = documents.size() + documents.without_tokens();
  }

  absl::StatusOr<Packs> Pack() {
    if (documents_.size() >= kMostDocuments)
      return absl::InvalidArgumentError(absl::StrCat("a source of ", documents_.size(), " documents; at most ",
                                                     kMostDocuments - 1, " fit: divide it in several sources"));
    if (absl::Status status = Measure(); !status.ok()) return status;
    if (pieces_ >= kMostDocuments)
      return absl::InvalidArgumentError(absl::StrCat("the long documents of a source are cut into ", pieces_,
                                                     " pieces; at most ", kMostDocuments - 1,
                                                     " fit: divide it in several sources"));
    const std::vector<int64_t>& stretches = order_.stretches();
    for (size_t stretch = 0; stretch + 1 < stretches.size(); ++stretch) {
      packs_.stretch_packs_.push_back(packs_.size());
      const int64_t count = stretches[stretch + 1] - stretches[stretch];
      for (int64_t first = 0; first < count; first += data_.window)
        PackWindow(static_cast<int64_t>(stretch), first, std::min(first + data_.window, count));
    }
    packs_.stretch_packs_.push_back(packs_.size());
    packs_.counts_.pieces = static_cast<int64_t>(packs_.pieces_.size());
    packs_.counts_.samples = packs_.size();
    if (packs_.size() == 0) {
      return absl::InvalidArgumentError(absl::StrCat("source ", packs_.counts_.source, ": none of its ",
                                                     documents_.size(), " documents can be used"));
    }
    return std::move(packs_);
  }

 private:
  // The tokens of each document, in lengths_; 0 for those that are left out. Makes the pieces of those that are cut:
  // so problems are known before anything is packed, and all of them at once.
  absl::Status Measure() {
    Problems long_ones, misfits;
    SourceCounts& counts = packs_.counts_;
    const bool error = data_.long_documents == "error", skip = data_.long_documents == "skip";
    std::vector<TokenRange> ranges;
    lengths_.assign(documents_.size(), 0);
    for (int64_t document = 0; document < documents_.size(); ++document) {
      const auto misfit = [&](const absl::Status& status) {
        ++counts.misfit;
        if (data_.damaged == "error") misfits.Add(documents_, document, status.message());
      };
      ExpandDocument(data_, documents_, document, expanded_);
      for (size_t image = 0; image < expanded_.pictures.size(); ++image) {
        const PictureRef& ref = expanded_.refs[image];
        const PictureScale scale = ScaleOfPicture(data_, data_.encoders.front(), ref.height, ref.width);
        ++counts.images;
        counts.larger += scale == PictureScale::kLarger;
        if (scale != PictureScale::kSmaller) continue;
        ++counts.smaller;
        if (ref.height * ref.width <= counts.largest_height * counts.largest_width) continue;
        counts.largest_document = document, counts.largest_image = static_cast<int64_t>(image);
        counts.largest_height = ref.height, counts.largest_width = ref.width;
      }
      const bool padded = expanded_.damaged();
      if (padded) {
        ++counts.padded;
        absl::StrAppend(&packs_.padded_, document, "\n");
      }
      if (expanded_.tokens == 0) {
        ++counts.without_tokens;
      } else if (expanded_.tokens <= length_) {
        ++counts.whole;
        counts.tokens += padded ? 0 : expanded_.tokens;
        lengths_[document] = expanded_.tokens;
      } else if (error) {
        long_ones.Add(documents_, document,
                      absl::StrCat("its ", expanded_.tokens, " tokens do not fit the sequence of ", length_));
      } else if (skip) {
        ++counts.skipped;
      } else if (const absl::Status status = CutDocument(expanded_, length_, ranges); !status.ok()) {
        misfit(status);
      } else {
        ++counts.cut;
        pieces_ += std::ssize(ranges);
        counts.tokens += padded ? 0 : expanded_.tokens;
        lengths_[document] = expanded_.tokens;
      }
    }
    counts.damaged -= counts.padded;  // which the index counts, too
    if (absl::Status status = misfits.Take("\n`damaged: skip` leaves such documents out"); !status.ok()) return status;
    return long_ones.Take("\n`long: cut` divides such documents, `long: skip` leaves them out");
  }

  // The documents at the places [first, end) of a stretch.
  void PackWindow(int64_t stretch, int64_t first, int64_t end) {
    window_.clear();
    order_.Append(stretch, first, end, window_);
    items_.clear();
    for (int64_t document : window_) {
      if (lengths_[document] == 0) continue;
      if (lengths_[document] <= length_) {
        items_.push_back({static_cast<uint32_t>(document), lengths_[document], 0});
      } else {
        AddPieces(document);
      }
    }
    const bool fit = data_.packing == "first_fit";
    if (fit) first_fit_.Begin(static_cast<int64_t>(items_.size()));
    // How many items each pack gets, then where they go: packs follow each other in one list.
    const uint32_t begin = static_cast<uint32_t>(packs_.items_.size());
    ends_.clear();
    for (size_t i = 0; i < items_.size(); ++i) {
      items_[i].pack = fit ? first_fit_.Place(items_[i].tokens) : static_cast<int64_t>(i);
      if (items_[i].pack == static_cast<int64_t>(ends_.size())) ends_.push_back(0);
      ++ends_[items_[i].pack];
    }
    uint32_t next = begin;
    for (uint32_t& count : ends_) {
      const uint32_t items = count;
      count = next;
      next += items;
      packs_.begins_.push_back(next);
    }
    packs_.items_.resize(next);
    for (const Item& item : items_) packs_.items_[ends_[item.pack]++] = item.code;
  }

  void AddPieces(int64_t document) {
    ExpandDocument(data_, documents_, document, expanded_);
    // Measure has seen that it does not fail.
    Require(CutDocument(expanded_, length_, ranges_).ok(), "a document that was measured and cannot be cut");
    for (const TokenRange& range : ranges_) {
      items_.push_back({kPieceBit | static_cast<uint32_t>(packs_.pieces_.size()), range.end - range.first, 0});
      packs_.pieces_.push_back({static_cast<uint32_t>(document), range});
    }
  }

  struct Item {
    uint32_t code = 0;  // as in Packs::items_
    int64_t tokens = 0, pack = 0;
  };

  const DataPlan& data_;
  const Documents& documents_;
  const int64_t length_;
  const DocumentOrder order_;
  FirstFit first_fit_;
  Packs packs_;
  std::vector<int64_t> lengths_;
  int64_t pieces_ = 0;  // of all documents that are cut
  // Used again for each document and window.
  ExpandedDocument expanded_;
  std::vector<TokenRange> ranges_;
  std::vector<int64_t> window_;
  std::vector<Item> items_;
  std::vector<uint32_t> ends_;
};

absl::StatusOr<Packs> Packs::Make(const DataPlan& data, const std::string& source, const Documents& documents,
                                  int64_t sequence_length) {
  return Packer(data, source, documents, sequence_length).Pack();
}

void Packs::Items(int64_t pack, std::vector<PackItem>& items) const {
  items.clear();
  for (uint32_t i = begins_[pack]; i < begins_[pack + 1]; ++i) {
    if ((items_[i] & kPieceBit) == 0) {
      items.push_back({items_[i], {}});
    } else {
      const Piece& piece = pieces_[items_[i] - kPieceBit];
      items.push_back({piece.document, piece.range});
    }
  }
}

}  // namespace planwright
