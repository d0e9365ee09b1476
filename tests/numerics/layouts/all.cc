#include "tests/numerics/layouts.h"

namespace planwright::testing {

std::vector<Layout> AllLayouts() {
  std::vector<Layout> all;
  for (auto* of : {TinyLayouts, PipelineLayouts, ContextParallelLayouts, EncoderContextParallelLayouts, ExpertTpLayouts,
                   DispatchLayouts, FrozenLayouts, RecomputeLayouts, PackedDocumentLayouts, EncodersLayouts,
                   EdgeLayouts, FourGpuLayouts, UndividedLayouts, PublishedModelLayouts, ExpertWeightLayouts}) {
    for (Layout& layout : of()) all.push_back(std::move(layout));
  }
  return all;
}

}  // namespace planwright::testing
