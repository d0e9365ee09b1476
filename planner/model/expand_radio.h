// Expands a RADIO vision transformer and its projector into layers, parameters and storages
// (docs/model/vision_encoder.md).
#pragma once

#include "planner/model/expand_model.h"

namespace planwright {

// Fills the parameters, storages, layers and counts of `module`. Its name, grid and frozen parts must be set. `stages`:
// the pipeline stage of each layer. `patches`: the number of patches of each image whose FLOPs are counted
// (sample_images.h).
void ExpandRadio(const RadioVitModel& model, const ProjectorTarget& target, const std::vector<int64_t>& patches,
                 const std::vector<int>& stages, Module& module);

}  // namespace planwright
