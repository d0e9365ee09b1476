// A sample as a rank keeps it until its reads have taken it: decoded, and its pixels rounded to the type of the run.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "planner/data/samples/sample_source.h"

namespace planwright::executor {

// What the reads of one rank take of a sample.
struct SampleNeed {
  int64_t number = 0;
  int reads = 0;  // that take anything of it
  // Reads of its pixels for one encoder. `bands`: they take some rows of each image, and which ones follows from all
  // images of the lane (cp).
  struct Pixels {
    int reads = 0;
    bool bands = false;
  };
  std::vector<Pixels> pixels;  // by DataPlan::encoders

  SampleParts parts() const;
};

struct DecodedSample {
  // The patches of an image stay only where bands of it are read: the rest of them is not rounded.
  Sample sample;
  // By encoder: of each image the patches [rows * cols, 3 patch^2], rounded once. Empty where no read takes them, or
  // bands.
  std::vector<std::vector<at::Tensor>> pixels;

  int64_t bytes() const;
  void DropPixels(size_t encoder);  // its last read has taken them
};

// The memory that Decode takes for a sample with so many patches for the first encoder, at its fullest moment.
int64_t BytesToDecode(const DataPlan& data, int64_t sequence_length, const SampleNeed& need, int64_t patches);

// Reads and decodes. May run on several threads at once. FileError with the message of the source, which names the
// sample.
DecodedSample Decode(const DataPlan& data, const SampleSource& source, const SampleNeed& need, at::ScalarType dtype);

// Sources give fp64: rounds `count` values once, to the dtype of `into`, from its value `first` on.
void Round(const double* values, int64_t count, const at::Tensor& into, int64_t first);

}  // namespace planwright::executor
