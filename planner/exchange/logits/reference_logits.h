// Logits that another program computed of a few tokens, in a file of its own
// (docs/hugging_face.md#the-file-of-logits). It comes from elsewhere, so everything is checked before a rank starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/wire/records/safetensors.h"

namespace planwright {

// How exact numbers are that a program computed: what its weights and activations are.
enum class ComputedIn { kFp64, kFp32, kFp16, kBf16 };
std::string ComputedInName(ComputedIn computed);  // "fp64", as recipes have it
ComputedIn ComputedInOf(DType dtype);             // of kInt64: fp32

class ReferenceLogits {
 public:
  // Reads the whole file once. InvalidArgument with the path and what is wrong: another kind of file, tensors that are
  // missing or unknown, types and shapes, ids beyond the vocabulary of the logits, numbers that are not finite. Errors
  // of SafetensorsFile.
  static absl::StatusOr<ReferenceLogits> Open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  int64_t sequences() const { return static_cast<int64_t>(tokens_.size()); }
  const std::vector<int64_t>& tokens(int64_t sequence) const { return tokens_[sequence]; }  // without padding
  int64_t longest() const;                                                                  // of the sequences
  int64_t positions() const;                                                                // of all sequences together
  int64_t vocabulary() const { return logits_.shape[2]; }
  ComputedIn computed_in() const { return computed_in_; }
  // What the file says of itself, for people: "transformers 5.23.0, torch 2.11.0; Qwen3-0.6B". Empty: nothing.
  const std::string& said() const { return said_; }

  // The logits of a position, by token id. Errors of PlainFile::Read.
  absl::StatusOr<std::vector<double>> Row(int64_t sequence, int64_t position) const;

  // Whether a plan can compute them: InvalidArgument says why not, and what to do. `plan`: as the recipe gives it.
  absl::Status CheckFits(const Plan& plan) const;

 private:
  absl::Status ReadTokens();
  absl::Status ReadLogits();
  absl::Status ReadMetadata();
  absl::Status CheckNumbers() const;
  template <typename... What>
  absl::Status Wrong(const What&... what) const;

  SafetensorsFile file_;
  std::vector<std::vector<int64_t>> tokens_;
  int64_t columns_ = 0;  // positions of a sequence with its padding
  StoredTensor logits_;
  ComputedIn computed_in_ = ComputedIn::kFp32;
  std::string said_;
};

// Numbers of the file, of a float type, as fp64.
std::vector<double> AsDoubles(DType dtype, std::string_view bytes);

}  // namespace planwright
