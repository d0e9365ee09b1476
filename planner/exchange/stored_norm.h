// By what a folder's encoder normalizes pixels, where its weights say it: RADIO's input_conditioner
// (docs/hugging_face.md#what-goes-in). transformers and RADIO's code compute with these tensors, and not with
// config.json.
#pragma once

#include "planner/exchange/findings.h"
#include "planner/state/weights/weight_files.h"

namespace planwright {

// A problem for each input_conditioner.norm_mean and norm_std whose numbers are not those of CLIP, rounded to the
// tensor's type, or that is no list of three. Reads these few numbers.
void CheckStoredNorm(WeightFiles& files, Findings& findings);

}  // namespace planwright
