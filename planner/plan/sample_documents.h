// What is known about the documents of a sample before any sample is read: what attention costs where each document is
// alone in its sample (docs/training/data.md#packed-documents).
#pragma once

#include <cstdint>

#include "planner/plan/plan.h"

namespace planwright {

struct SampleDocuments {
  double mean = 1;  // documents of a sample on average, padding too
  // Of the scores of one document as long as the sample, those within its documents: the sum of the squares of their
  // tokens over the square of the sample's, on average over samples.
  double share = 1;
  // False: documents see each other, or nobody has counted them. Then a sample counts as one document.
  bool known = false;
};

// mock: as its section draws them. sources: what is counted (DataPlan::counted), each source by its weight. `sequence`:
// tokens of a sample.
SampleDocuments DocumentsOfSample(const DataPlan& data, int64_t sequence);

}  // namespace planwright
