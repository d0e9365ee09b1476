// The recorded source (docs/training/data.md#recorded): the rows of a safetensors batch with token_ids, labels,
// loss_mask [samples, sequence]; with an encoder also images_per_sample [samples], patches [all patches, 3 patch^2] and
// image_grid [images, 2]; with several encoders the last two for each of them, as MODULE.patches; with packed documents
// also, if it has them, document_ends [documents] and documents_per_sample [samples]. Sample n is row n mod samples.
// The file is checked as a whole before the first step.
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <algorithm>
#include <functional>
#include <span>

#include "planner/data/samples/sample_source.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {
namespace {

// The elements of a tensor as T, which must be its dtype.
template <typename T>
absl::StatusOr<std::vector<T>> ReadAs(const SafetensorsFile& file, const StoredTensor& stored) {
  std::vector<T> values(stored.bytes / sizeof(T));
  const absl::Status status = file.file().Read(stored.offset, std::as_writable_bytes(std::span(values)));
  if (!status.ok()) return status;
  return values;
}

absl::Status TensorError(const SafetensorsFile& file, const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", name, " ", what));
}

absl::Status ShapeError(const SafetensorsFile& file, const std::string& name, const std::vector<int64_t>& found,
                        const std::vector<int64_t>& expected) {
  return TensorError(
      file, name,
      absl::StrCat("is [", absl::StrJoin(found, ", "), "], but the plan and the rest of the batch need [",
                   absl::StrJoin(expected, ", "), "]"));
}

absl::StatusOr<std::vector<int64_t>> Integers(const SafetensorsFile& file, const std::string& name,
                                              const std::vector<int64_t>& shape) {
  const absl::StatusOr<StoredTensor> stored = file.Find(name);
  if (!stored.ok()) return stored.status();
  if (stored->dtype != DType::kInt64) return TensorError(file, name, "is not I64");
  if (stored->shape != shape) return ShapeError(file, name, stored->shape, shape);
  return ReadAs<int64_t>(file, *stored);
}

absl::StatusOr<std::vector<double>> Reals(const SafetensorsFile& file, const std::string& name,
                                          const std::vector<int64_t>& shape) {
  const absl::StatusOr<StoredTensor> stored = file.Find(name);
  if (!stored.ok()) return stored.status();
  if (stored->shape != shape) return ShapeError(file, name, stored->shape, shape);
  // Samples are kept in fp64; fp32 is widened without loss.
  std::vector<double> values;
  if (stored->dtype == DType::kFp64) {
    absl::StatusOr<std::vector<double>> read = ReadAs<double>(file, *stored);
    if (!read.ok()) return read;
    values = *std::move(read);
  } else if (stored->dtype == DType::kFp32) {
    const absl::StatusOr<std::vector<float>> read = ReadAs<float>(file, *stored);
    if (!read.ok()) return read.status();
    values.assign(read->begin(), read->end());
  } else {
    return TensorError(file, name, "is neither F64 nor F32");
  }
  if (const auto at = FirstNotFinite(DType::kFp64, std::as_bytes(std::span(values))))
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", name, NotFinite(*at)));
  return values;
}

class RecordedSource : public SampleSource {
 public:
  absl::Status Read(const Plan& plan, const SafetensorsFile& file) {
    path_ = file.path();
    const int64_t length = plan.budget.sequence_length;
    const absl::StatusOr<StoredTensor> ids = file.Find("token_ids");
    if (!ids.ok()) return ids.status();
    const int64_t rows = ids->shape.size() == 2 ? ids->shape[0] : 0;
    if (rows == 0) return TensorError(file, "token_ids", "is not [samples, sequence]");
    const auto tokens = Integers(file, "token_ids", {rows, length}), labels = Integers(file, "labels", {rows, length});
    const auto mask = Reals(file, "loss_mask", {rows, length});
    if (!tokens.ok()) return tokens.status();
    if (!labels.ok()) return labels.status();
    if (!mask.ok()) return mask.status();
    // Checked here once: on a GPU an id outside the table would stop the device in the middle of a step.
    for (int64_t id : *tokens) {
      if (id < 0 || id >= plan.data.vocabulary)
        return TensorError(file, "token_ids", absl::StrCat("has ", id, ", outside the vocabulary"));
    }
    for (int64_t i = 0; i < rows * length; ++i) {
      if ((*mask)[i] != 0 && (*mask)[i] != 1) return TensorError(file, "loss_mask", "has values other than 0 and 1");
      // Labels of masked positions are not read, so they may be anything (often -100).
      if ((*mask)[i] != 0 && ((*labels)[i] < 0 || (*labels)[i] >= plan.data.vocabulary)) {
        return TensorError(file, "labels", absl::StrCat("has ", (*labels)[i], ", outside the vocabulary"));
      }
    }
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t begin = row * length, end = begin + length;
      Sample& sample = samples_.emplace_back();
      sample.tokens.assign(tokens->begin() + begin, tokens->begin() + end);
      sample.labels.assign(labels->begin() + begin, labels->begin() + end);
      sample.loss_mask.assign(mask->begin() + begin, mask->begin() + end);
    }
    if (plan.data.packed_documents) {
      if (absl::Status status = ReadDocuments(length, file); !status.ok()) return status;
    }
    for (const EncoderData& encoder : plan.data.encoders) {
      // With several encoders, what one of them sees has its module's name in front.
      const std::string prefix = plan.data.encoders.size() > 1 ? encoder.module + "." : "";
      if (absl::Status status = ReadImages(encoder, prefix, file); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Sample> Get(int64_t number, SampleParts parts) const override {
    const Sample& row = samples_[number % samples_.size()];
    if (parts == SampleParts::kAll) return row;
    Sample sample{row.tokens, row.labels, row.loss_mask, {}, row.document_ends};
    for (const std::vector<Image>& seen : row.images) {
      std::vector<Image>& sizes = sample.images.emplace_back();
      for (const Image& image : seen) sizes.push_back({image.rows, image.cols, {}});
    }
    return sample;
  }

  absl::StatusOr<int64_t> Patches(int64_t number) const override {
    const Sample& row = samples_[number % samples_.size()];
    int64_t patches = 0;
    if (!row.images.empty()) {
      for (const Image& image : row.images.front()) patches += image.rows * image.cols;
    }
    return patches;
  }

  SampleOrigin Origin(int64_t number) const override {
    const int64_t row = number % static_cast<int64_t>(samples_.size());
    const int64_t length = static_cast<int64_t>(samples_[row].tokens.size());
    return {.documents = {{.where = absl::StrCat(path_, ": row ", row), .first = 0, .end = length}}};
  }

 private:
  // A file without documents has one in each row.
  absl::Status ReadDocuments(int64_t length, const SafetensorsFile& file) {
    if (!file.tensors().contains("document_ends")) {
      for (Sample& sample : samples_) sample.document_ends = {length};
      return absl::OkStatus();
    }
    const auto per_sample = Integers(file, "documents_per_sample", {static_cast<int64_t>(samples_.size())});
    if (!per_sample.ok()) return per_sample.status();
    int64_t documents = 0;
    for (int64_t count : *per_sample) {
      if (count < 1 || count > length) return TensorError(file, "documents_per_sample", "has a count out of range");
      documents += count;
    }
    const auto ends = Integers(file, "document_ends", {documents});
    if (!ends.ok()) return ends.status();
    auto next = ends->begin();
    for (size_t row = 0; row < samples_.size(); ++row) {
      std::vector<int64_t>& own = samples_[row].document_ends;
      own.assign(next, next + (*per_sample)[row]);
      next += (*per_sample)[row];
      if (own.front() < 1 || own.back() != length ||
          std::adjacent_find(own.begin(), own.end(), std::greater_equal<>()) != own.end()) {
        return TensorError(file, "document_ends",
                           absl::StrCat("of row ", row, " do not ascend from above 0 to the sequence length ", length));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadImages(const EncoderData& encoder, const std::string& prefix, const SafetensorsFile& file) {
    const std::string grids = prefix + "image_grid", pixels_of = prefix + "patches";
    const int64_t values = 3 * encoder.patch * encoder.patch, side = encoder.side();
    const auto per_sample = Integers(file, "images_per_sample", {static_cast<int64_t>(samples_.size())});
    if (!per_sample.ok()) return per_sample.status();
    int64_t images = 0;
    for (int64_t count : *per_sample) {
      // The bound keeps the sums below from overflowing.
      if (count < 0 || count > INT32_MAX) return TensorError(file, "images_per_sample", "has a count out of range");
      images += count;
    }
    const auto grid = Integers(file, grids, {images, 2});
    if (!grid.ok()) return grid.status();
    int64_t patches = 0;
    for (int64_t size : *grid) {
      if (size < 1 || size > side || size % encoder.pixel_shuffle != 0) {
        return TensorError(file, grids,
                           absl::StrCat("has a side of ", size, " patches; the encoder takes multiples of ",
                                        encoder.pixel_shuffle, " up to ", side));
      }
    }
    for (int64_t i = 0; i < images; ++i) patches += (*grid)[2 * i] * (*grid)[2 * i + 1];
    const auto pixels = Reals(file, pixels_of, {patches, values});
    if (!pixels.ok()) return pixels.status();
    // Images of all samples lie one after another; each sample must have as many image tokens as its images need.
    auto next = pixels->begin();
    int64_t image = 0;
    for (size_t row = 0; row < samples_.size(); ++row) {
      std::vector<Image>& seen = samples_[row].images.emplace_back();
      int64_t wanted = 0;
      for (int64_t i = 0; i < (*per_sample)[row]; ++i, ++image) {
        const int64_t rows = (*grid)[2 * image], cols = (*grid)[2 * image + 1];
        const auto end = next + rows * cols * values;
        seen.push_back({rows, cols, {next, end}});
        next = end;
        wanted += ImageTokens(encoder, seen.back());
      }
      const auto& tokens = samples_[row].tokens;
      const int64_t image_tokens = std::count(tokens.begin(), tokens.end(), encoder.token);
      if (image_tokens != wanted) {
        return TensorError(
            file, "token_ids",
            absl::StrCat("row ", row, " has ", image_tokens, " image tokens, but its images need ", wanted));
      }
    }
    return absl::OkStatus();
  }

  std::string path_;
  std::vector<Sample> samples_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<SampleSource>> OpenRecorded(const Plan& plan) {
  const absl::StatusOr<SafetensorsFile> file = SafetensorsFile::Open(ResolvePath(plan.data.base, plan.data.path));
  if (!file.ok()) return file.status();
  auto source = std::make_unique<RecordedSource>();
  if (absl::Status status = source->Read(plan, *file); !status.ok()) return status;
  return source;
}

}  // namespace planwright
