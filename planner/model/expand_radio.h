// The RADIO vision transformer with its projector (facts 3.9, 3.10).
#pragma once

#include "planner/model/expand_model.h"

namespace planwright {

// Fills parameters, storages, layers and counts of `module`, whose name, grid and frozen parts are set. `stages`: of
// each layer. `patches`: of the images that FLOPs are counted for (sample_images.h).
void ExpandRadio(const RadioVitModel& model, const ProjectorTarget& target, const std::vector<int64_t>& patches,
                 const std::vector<int>& stages, Module& module);

}  // namespace planwright
