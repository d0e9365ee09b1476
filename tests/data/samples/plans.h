// Plans that contain only what sample sources read.
#pragma once

#include "planner/plan/plan.h"
#include "tests/support/folders.h"

namespace planwright {

inline Plan MockPlan() {
  Plan plan;
  plan.budget.sequence_length = 64;
  plan.budget.global_samples = 8;
  plan.budget.microbatches = 2;
  plan.budget.block_samples = 4;
  Module module;
  module.name = "encoder";
  module.grid.dp = 2;
  plan.modules = {module};
  plan.data.kind = DataKind::kMock;
  plan.data.seed = 1234;
  plan.data.image_token = 255;
  plan.data.vocabulary = 256;
  plan.data.image_grids = {{4, 6}, {2, 4}, {6, 2}};
  plan.data.max_images = 3;
  plan.data.classes = 4;
  plan.data.text_tokens = 8;
  plan.data.encoders = {{"encoder", 255, 4, 2, 64}};
  return plan;
}

inline Plan RecordedPlan() {
  Plan plan = MockPlan();
  plan.budget.sequence_length = 48;
  plan.data.kind = DataKind::kRecorded;
  plan.data.path = "tests/golden/vlm_oracle/batch.safetensors";
  plan.data.base = InSource();
  plan.data.image_token = plan.data.encoders[0].token = 5;
  plan.data.vocabulary = 96;
  return plan;
}

}  // namespace planwright
