#include "planner/exchange/logits/reference_logits.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "absl/strings/str_join.h"
#include "planner/base/text/status_macros.h"
#include "planner/base/text/text.h"
#include "planner/base/text/utf8.h"

namespace planwright {
namespace {

// As PyTorch writes them, and as recipes do.
const std::map<std::string, ComputedIn>& ComputedWords() {
  static const auto* words = new std::map<std::string, ComputedIn>{
      {"float64", ComputedIn::kFp64},  {"fp64", ComputedIn::kFp64},    {"float32", ComputedIn::kFp32},
      {"fp32", ComputedIn::kFp32},     {"float16", ComputedIn::kFp16}, {"fp16", ComputedIn::kFp16},
      {"bfloat16", ComputedIn::kBf16}, {"bf16", ComputedIn::kBf16}};
  return *words;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return Cat("[", absl::StrJoin(shape, ", "), "]"); }

template <typename Number>
std::vector<double> DoublesOf(std::string_view bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(Number));
  for (size_t i = 0; i < numbers.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
    numbers[i] = static_cast<double>(number);
  }
  return numbers;
}

}  // namespace

std::string ComputedInName(ComputedIn computed) {
  switch (computed) {
    case ComputedIn::kFp64: return "fp64";
    case ComputedIn::kFp32: return "fp32";
    case ComputedIn::kFp16: return "fp16";
    case ComputedIn::kBf16: break;
  }
  return "bf16";
}

ComputedIn ComputedInOf(DType dtype) {
  if (dtype == DType::kFp64) return ComputedIn::kFp64;
  return dtype == DType::kBf16 ? ComputedIn::kBf16 : ComputedIn::kFp32;
}

std::vector<double> AsDoubles(DType dtype, std::string_view bytes) {
  if (dtype == DType::kFp64) return DoublesOf<double>(bytes);
  if (dtype == DType::kFp32) return DoublesOf<float>(bytes);
  std::vector<double> numbers(bytes.size() / 2);
  for (size_t i = 0; i < numbers.size(); ++i) {
    // bf16 is the upper half of fp32.
    uint16_t half;
    std::memcpy(&half, bytes.data() + 2 * i, sizeof half);
    const uint32_t bits = uint32_t{half} << 16;
    float number;
    std::memcpy(&number, &bits, sizeof number);
    numbers[i] = number;
  }
  return numbers;
}

template <typename... What>
absl::Status ReferenceLogits::Wrong(const What&... what) const {
  return absl::InvalidArgumentError(Cat(path(), ": ", what...));
}

absl::StatusOr<ReferenceLogits> ReferenceLogits::Open(const std::string& path) {
  ReferenceLogits result;
  ABSL_ASSIGN_OR_RETURN(result.file_, SafetensorsFile::Open(path));
  for (const auto& [name, tensor] : result.file_.tensors()) {
    if (name == "token_ids" || name == "lengths" || name == "logits") continue;
    return result.Wrong("has a tensor ", Quoted(name),
                        "; a file of logits has token_ids, logits and, if its sequences are not equally long, lengths");
  }
  ABSL_RETURN_IF_ERROR(result.ReadTokens());
  ABSL_RETURN_IF_ERROR(result.ReadLogits());
  ABSL_RETURN_IF_ERROR(result.ReadMetadata());
  ABSL_RETURN_IF_ERROR(result.CheckNumbers());
  return result;
}

absl::Status ReferenceLogits::ReadTokens() {
  ABSL_ASSIGN_OR_RETURN(const StoredTensor ids, file_.Find("token_ids"));
  if (ids.dtype != DType::kInt64) return Wrong("token_ids is ", SafetensorsTypeName(ids.dtype), ", expected I64");
  if (ids.shape.size() != 2 || ids.shape[0] < 1 || ids.shape[1] < 1)
    return Wrong("token_ids is ", ShapeText(ids.shape), ", expected [sequences, positions]");
  columns_ = ids.shape[1];
  const auto integers = [&](const StoredTensor& tensor) -> absl::StatusOr<std::vector<int64_t>> {
    std::vector<int64_t> numbers(tensor.bytes / sizeof(int64_t));
    ABSL_RETURN_IF_ERROR(file_.file().Read(tensor.offset, std::as_writable_bytes(std::span(numbers))));
    return numbers;
  };
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> all, integers(ids));
  std::vector<int64_t> lengths(ids.shape[0], columns_);
  if (file_.tensors().contains("lengths")) {
    ABSL_ASSIGN_OR_RETURN(const StoredTensor stored, file_.Find("lengths"));
    if (stored.dtype != DType::kInt64 || stored.shape != std::vector<int64_t>{ids.shape[0]}) {
      return Wrong("lengths is ", SafetensorsTypeName(stored.dtype), " ", ShapeText(stored.shape), ", expected I64 [",
                   ids.shape[0], "], one for each sequence of token_ids");
    }
    ABSL_ASSIGN_OR_RETURN(lengths, integers(stored));
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] < 1 || lengths[i] > columns_)
      return Wrong("lengths has ", lengths[i], " for sequence ", i, ", expected 1 to ", columns_);
    const auto begin = all.begin() + static_cast<int64_t>(i) * columns_;
    tokens_.emplace_back(begin, begin + lengths[i]);
  }
  return absl::OkStatus();
}

absl::Status ReferenceLogits::ReadLogits() {
  ABSL_ASSIGN_OR_RETURN(logits_, file_.Find("logits"));
  if (logits_.dtype == DType::kInt64) return Wrong("logits is I64, expected F64, F32 or BF16");
  const std::vector<int64_t>& shape = logits_.shape;
  if (shape.size() != 3 || shape[0] != sequences() || shape[1] != columns_ || shape[2] < 2) {
    return Wrong("logits is ", ShapeText(shape), ", expected [", sequences(), ", ", columns_,
                 ", vocabulary], as token_ids has ", sequences(), " sequences of ", columns_, " positions");
  }
  for (size_t i = 0; i < tokens_.size(); ++i) {
    for (const int64_t id : tokens_[i]) {
      if (id < 0 || id >= vocabulary())
        return Wrong("token_ids has ", id, " in sequence ", i, ", and logits has ", vocabulary(), " token ids");
    }
  }
  return absl::OkStatus();
}

absl::Status ReferenceLogits::ReadMetadata() {
  const std::map<std::string, std::string>& metadata = file_.metadata();
  computed_in_ = ComputedInOf(logits_.dtype);
  if (const auto word = metadata.find("dtype"); word != metadata.end()) {
    const auto found = ComputedWords().find(word->second);
    if (found == ComputedWords().end()) {
      return Wrong("its metadata says dtype ", Quoted(word->second),
                   ", expected float64, float32, float16 or bfloat16: what the logits were computed in");
    }
    // Who computes in fp32 and stores bf16 has rounded.
    computed_in_ = std::max(computed_in_, found->second);
  }
  for (const char* key : {"program", "model"}) {
    const auto found = metadata.find(key);
    if (found == metadata.end() || found->second.empty()) continue;
    Append(said_, said_.empty() ? "" : "; ", Printable(found->second.substr(0, 200)));
  }
  return absl::OkStatus();
}

// Of the positions that are compared: padding may have anything.
absl::Status ReferenceLogits::CheckNumbers() const {
  for (int64_t sequence = 0; sequence < sequences(); ++sequence) {
    const auto length = static_cast<int64_t>(tokens(sequence).size());
    for (int64_t position = 0; position < length; ++position) {
      ABSL_ASSIGN_OR_RETURN(const std::vector<double> row, Row(sequence, position));
      if (const auto at = FirstNotFinite(DType::kFp64, std::as_bytes(std::span(row)))) {
        return Wrong("logits of sequence ", sequence, ", position ", position, ", token id ", *at, " is ",
                     row[*at] != row[*at] ? "NaN" : "infinite",
                     ": what computed it has failed, so there is nothing to compare with");
      }
    }
  }
  return absl::OkStatus();
}

int64_t ReferenceLogits::longest() const {
  size_t longest = 0;
  for (const std::vector<int64_t>& sequence : tokens_) longest = std::max(longest, sequence.size());
  return static_cast<int64_t>(longest);
}

int64_t ReferenceLogits::positions() const {
  size_t positions = 0;
  for (const std::vector<int64_t>& sequence : tokens_) positions += sequence.size();
  return static_cast<int64_t>(positions);
}

absl::StatusOr<std::vector<double>> ReferenceLogits::Row(int64_t sequence, int64_t position) const {
  const int64_t bytes = logits_.bytes / (sequences() * columns_);
  std::string row(static_cast<size_t>(bytes), '\0');
  const int64_t offset = logits_.offset + (sequence * columns_ + position) * bytes;
  ABSL_RETURN_IF_ERROR(file_.file().Read(offset, std::as_writable_bytes(std::span(row))));
  return AsDoubles(logits_.dtype, row);
}

absl::Status ReferenceLogits::CheckFits(const Plan& plan) const {
  if (vocabulary() != plan.data.vocabulary) {
    return Wrong("logits has ", vocabulary(), " token ids, and the model of the recipe has a vocabulary of ",
                 plan.data.vocabulary, ": it was computed with another model");
  }
  if (longest() > plan.budget.sequence_length) {
    return Wrong("has a sequence of ", longest(), " tokens, and batch.sequence_length is ", plan.budget.sequence_length,
                 ": add batch.sequence_length=N with a longer one, or compute the logits of fewer tokens");
  }
  for (int64_t sequence = 0; sequence < sequences(); ++sequence) {
    for (const EncoderData& encoder : plan.data.encoders) {
      const std::vector<int64_t>& ids = tokens(sequence);
      const auto found = std::find(ids.begin(), ids.end(), encoder.token);
      if (found == ids.end()) continue;
      return Wrong("sequence ", sequence, " has the image token ", encoder.token, " at position ", found - ids.begin(),
                   "; images are not compared: use text alone");
    }
  }
  return absl::OkStatus();
}

}  // namespace planwright
